"""Numbers of processes that were those of the GPUs: they stay, with a warning."""

from __future__ import annotations

from typing import Any

import pytest

from kubetailor.registry.testing import TailorBench


def container(name: str, gpus: int) -> dict[str, Any]:
    return {"name": name, "image": "i:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}


def replica(name: str, gpus: int) -> dict[str, Any]:
    return {"replicas": 1, "template": {"spec": {"containers": [container(name, gpus)]}}}


def train_job(number: Any, gpus: int = 4) -> dict[str, Any]:
    trainer = {
        "numNodes": 2,
        "numProcPerNode": number,
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer},
    }


def kubeflow(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": {"name": "t"},
        "spec": spec,
    }


def mpi_job(number: Any, gpus: int = 4, version: str = "v1") -> dict[str, Any]:
    launcher = {
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "mpi", "image": "i:1"}]}},
    }
    specs = {"Launcher": launcher, "Worker": replica("mpi", gpus)}
    return kubeflow(version, "MPIJob", {"slotsPerWorker": number, "mpiReplicaSpecs": specs})


def mpi_job_v2(number: Any, gpus: int = 4) -> dict[str, Any]:
    return mpi_job(number, gpus, "v2beta1")


def pytorch_job(number: Any, gpus: int = 4) -> dict[str, Any]:
    specs = {"Master": replica("pytorch", gpus), "Worker": replica("pytorch", gpus)}
    return kubeflow("v1", "PyTorchJob", {"nprocPerNode": str(number), "pytorchReplicaSpecs": specs})


def elastic_job(number: Any, gpus: int = 4) -> dict[str, Any]:
    specs = {"Worker": replica("pytorch", gpus)}
    return kubeflow(
        "v1",
        "PyTorchJob",
        {"elasticPolicy": {"nProcPerNode": number}, "pytorchReplicaSpecs": specs},
    )


def task(type_: str, custom: dict[str, Any], gpus: int) -> dict[str, Any]:
    resources = {"limits": [{"name": "GPU", "value": str(gpus)}]}
    return {
        "id": {"resourceType": "TASK", "name": "t"},
        "type": type_,
        "metadata": {},
        "container": {"image": "i:1", "args": ["run"], "resources": resources},
        "custom": custom,
    }


def elastic_task(number: Any, gpus: int = 4) -> dict[str, Any]:
    custom = {
        "elasticConfig": {"minReplicas": 2, "maxReplicas": 2, "nprocPerNode": number},
        "workerReplicas": {"replicas": 2},
    }
    return task("pytorch", custom, gpus)


def mpi_task(number: Any, gpus: int = 4) -> dict[str, Any]:
    custom = {
        "workerReplicas": {"replicas": 2},
        "launcherReplicas": {"replicas": 1},
        "slots": number,
    }
    return task("mpi", custom, gpus)


FIELDS = [
    (train_job, "spec.trainer.numProcPerNode"),
    (mpi_job, "spec.slotsPerWorker"),
    (mpi_job_v2, "spec.slotsPerWorker"),
    (pytorch_job, "spec.nprocPerNode"),
    (elastic_job, "spec.elasticPolicy.nProcPerNode"),
    (elastic_task, "custom.elasticConfig.nprocPerNode"),
    (mpi_task, "custom.slots"),
]


def ran(tailor: TailorBench, obj: dict[str, Any], given: str, before: str = "") -> Any:
    step = f"{{use: gpu, with: {given}, when: {{requests: nvidia.com/gpu}}}}"
    chain = tailor.chain(f"chains: {{default: {{steps: [{before}{step}]}}}}")
    phase: Any = "admit" if "kind" in obj else "serialize"
    return chain.run(obj, phase=phase)


def at(obj: Any, path: str) -> Any:
    for key in path.split("."):
        obj = obj[key]
    return obj


@pytest.mark.parametrize(("make", "field"), FIELDS)
def test_another_count_leaves_it_and_says_so(tailor: TailorBench, make: Any, field: str) -> None:
    given = make(4)
    done = ran(tailor, given, "{type: nvidia-l4, count: 8}")
    (warning,) = [text for text in done.warnings if "number of GPUs" in text]
    assert field in warning
    assert "stays 4" in warning
    assert "has 8 now" in warning
    assert at(done.after, field) == at(given, field)


@pytest.mark.parametrize(("make", "field"), FIELDS)
@pytest.mark.parametrize(
    ("number", "given"),
    [
        (4, "{type: nvidia-l4}"),
        (4, "{type: nvidia-l4, count: 4}"),
        (1, "{type: nvidia-l4, count: 8}"),
    ],
)
def test_nothing_is_said_where_it_still_holds_or_never_did(
    tailor: TailorBench, make: Any, field: str, number: int, given: str
) -> None:
    assert not [t for t in ran(tailor, make(number), given).warnings if "number of GPUs" in t]


@pytest.mark.parametrize("number", ["auto", "gpu"])
def test_a_number_that_follows_by_itself_is_right(tailor: TailorBench, number: str) -> None:
    assert ran(tailor, train_job(number), "{type: nvidia-l4, count: 8}").warnings == []


def test_a_step_before_it_sets_the_number(tailor: TailorBench) -> None:
    patch = "{use: patch, with: {object: {spec: {slotsPerWorker: 8}}}}, "
    done = ran(tailor, mpi_job(4), "{type: nvidia-l4, count: 8}", patch)
    assert done.warnings == []
    assert done.after["spec"]["slotsPerWorker"] == 8
    config = "{use: task_config, with: {set: {elasticConfig: {nprocPerNode: 8}}}}, "
    done = ran(tailor, elastic_task(4), "{type: nvidia-l4, count: 8}", config)
    assert not [text for text in done.warnings if "number of GPUs" in text]
