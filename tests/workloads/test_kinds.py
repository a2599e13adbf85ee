"""Every row of the kinds table: where its pods are, and what its operator reads."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubetailor.workloads import (
    BUILTIN_KINDS,
    CannotChangeError,
    ConflictError,
    InvalidObjectError,
    Kind,
    KindTable,
    PodPath,
    Workload,
)

TABLE = KindTable(BUILTIN_KINDS)


def spec(name: str = "c") -> Any:
    return {"containers": [{"name": name, "image": "img"}]}


def template(name: str = "c") -> Any:
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec(name)}


def replicas(**names: str) -> Any:
    return {role: {"replicas": 1, "template": template(name)} for role, name in names.items()}


RAY = {
    "headGroupSpec": {"template": template("ray-head")},
    "workerGroupSpecs": [
        {"groupName": "cpu", "template": template("ray-worker")},
        {"groupName": "gpu", "template": template("ray-worker")},
    ],
}
DASK = {"worker": {"spec": spec("worker")}, "scheduler": {"spec": spec("scheduler")}}

# apiVersion, kind, spec (or whole object), {role: path of its pod spec}
ROWS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("v1", "Pod", spec(), {"primary": "spec"}),
    ("batch/v1", "Job", {"template": template()}, {"primary": "spec.template.spec"}),
    *(
        ("apps/v1", kind, {"template": template()}, {"primary": "spec.template.spec"})
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
    ),
    (
        "batch/v1",
        "CronJob",
        {"jobTemplate": {"spec": {"template": template()}}},
        {"primary": "spec.jobTemplate.spec.template.spec"},
    ),
    (
        "ray.io/v1",
        "RayService",
        {"rayClusterConfig": RAY},
        {
            "head": "spec.rayClusterConfig.headGroupSpec.template.spec",
            "worker:cpu": "spec.rayClusterConfig.workerGroupSpecs[0].template.spec",
            "worker:gpu": "spec.rayClusterConfig.workerGroupSpecs[1].template.spec",
        },
    ),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        {"pytorchReplicaSpecs": replicas(Master="pytorch", Worker="pytorch")},
        {
            "master": "spec.pytorchReplicaSpecs.Master.template.spec",
            "worker": "spec.pytorchReplicaSpecs.Worker.template.spec",
        },
    ),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        {"elasticPolicy": {}, "pytorchReplicaSpecs": replicas(Worker="pytorch")},
        {"worker": "spec.pytorchReplicaSpecs.Worker.template.spec"},
    ),
    (
        "kubeflow.org/v1",
        "TFJob",
        {"tfReplicaSpecs": replicas(Chief="tensorflow", PS="tensorflow", Evaluator="tensorflow")},
        {
            "chief": "spec.tfReplicaSpecs.Chief.template.spec",
            "ps": "spec.tfReplicaSpecs.PS.template.spec",
            "evaluator": "spec.tfReplicaSpecs.Evaluator.template.spec",
        },
    ),
    *(
        (
            f"kubeflow.org/{version}",
            "MPIJob",
            {"mpiReplicaSpecs": replicas(Launcher="mpi", Worker="mpi")},
            {
                "launcher": "spec.mpiReplicaSpecs.Launcher.template.spec",
                "worker": "spec.mpiReplicaSpecs.Worker.template.spec",
            },
        )
        for version in ("v1", "v2beta1")
    ),
    (
        "ray.io/v1",
        "RayJob",
        {"rayClusterSpec": RAY, "submitterPodTemplate": template("ray-job-submitter")},
        {
            "head": "spec.rayClusterSpec.headGroupSpec.template.spec",
            "worker:cpu": "spec.rayClusterSpec.workerGroupSpecs[0].template.spec",
            "worker:gpu": "spec.rayClusterSpec.workerGroupSpecs[1].template.spec",
            "submitter": "spec.submitterPodTemplate.spec",
        },
    ),
    (
        "ray.io/v1",
        "RayCluster",
        RAY,
        {
            "head": "spec.headGroupSpec.template.spec",
            "worker:cpu": "spec.workerGroupSpecs[0].template.spec",
            "worker:gpu": "spec.workerGroupSpecs[1].template.spec",
        },
    ),
    (
        "kubernetes.dask.org/v1",
        "DaskJob",
        {"job": {"spec": spec("job")}, "cluster": {"spec": DASK}},
        {
            "job-runner": "spec.job.spec",
            "scheduler": "spec.cluster.spec.scheduler.spec",
            "worker": "spec.cluster.spec.worker.spec",
        },
    ),
    (
        "kubernetes.dask.org/v1",
        "DaskCluster",
        DASK,
        {"scheduler": "spec.scheduler.spec", "worker": "spec.worker.spec"},
    ),
    (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "leader", "template": {"spec": {"template": template()}}}]},
        {"leader": "spec.replicatedJobs[0].template.spec.template.spec"},
    ),
]
QUEUES = {
    "Deployment",
    "RayService",
    "StatefulSet",
    "Pod",
    "Job",
    "PyTorchJob",
    "TFJob",
    "MPIJob",
    "RayJob",
    "RayCluster",
    "JobSet",
    "SparkApplication",
}


def object_of(version: str, kind: str, body: Any) -> Any:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "j"},
        "spec": copy.deepcopy(body),
    }


def workload_of(obj: Any, table: KindTable = TABLE) -> Workload:
    kind = table.of(obj)
    assert kind is not None
    return Workload(obj, kind)


@pytest.mark.parametrize(
    ("version", "kind", "body", "places"),
    ROWS,
    ids=[f"{row[1]}-{row[0]}-{len(row[3])}" for row in ROWS],
)
def test_roles_and_places(version: str, kind: str, body: Any, places: dict[str, str]) -> None:
    obj = object_of(version, kind, body)
    workload = workload_of(obj)
    assert {role: pod.where() for pod in workload.pods() for role in pod.roles} == places
    for pod in workload.pods():
        pod.tolerate("t")
        pod.select_node("k", pod.role.replace(":", "-"))
        assert pod.primary.name == pod.containers[0].name
        if pod.has_metadata:
            pod.label("l", "v")
    after = workload.commit()
    assert obj == object_of(version, kind, body), "the input is not changed"
    # Taken off again at the places that the table names, nothing else is left.
    for pod in workload_of(after).pods():
        assert pod.node_selector == {"k": pod.role.replace(":", "-")}
        pod.untolerate("t")
        pod.deselect_node("k")
        pod.unlabel("l")
        after = pod.workload.commit()
    assert after == obj
    owner = workload.queue_owner
    assert (owner is workload) is (kind in QUEUES)


def test_the_table_has_a_test_for_each_row() -> None:
    tested = {(version.rpartition("/")[0], kind) for version, kind, _, _ in ROWS}
    others = {
        ("", "PodTemplate"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        ("flyte", "TaskTemplate"),
    }
    assert set(TABLE) == tested | others


def test_a_pod_template_object_has_its_pod_at_the_top() -> None:
    workload = workload_of({"apiVersion": "v1", "kind": "PodTemplate", "template": template()})
    (pod,) = workload.pods()
    assert (pod.where(), pod.labels, pod.is_object) == ("template.spec", {"app": "x"}, False)


def test_roles_with_a_group_are_found_by_the_role_alone() -> None:
    workload = workload_of(object_of("ray.io/v1", "RayCluster", RAY))
    assert [pod.role for pod in workload.pods("worker")] == ["worker:cpu", "worker:gpu"]
    assert [pod.role for pod in workload.pods("worker:gpu")] == ["worker:gpu"]
    assert workload.pods("work") == ()


def test_the_container_that_the_operator_runs_is_the_primary_one() -> None:
    body = {"pytorchReplicaSpecs": replicas(Worker="pytorch")}
    containers = body["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    containers[:0] = [{"name": "main"}, {"name": "other"}]
    (pod,) = workload_of(object_of("kubeflow.org/v1", "PyTorchJob", body)).pods()
    assert pod.primary.name == "pytorch"


def test_parts_that_are_missing_or_of_another_form_hold_no_pods() -> None:
    for body in (None, {}, {"pytorchReplicaSpecs": None}, {"pytorchReplicaSpecs": {"Worker": "x"}}):
        obj = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": body}
        assert workload_of(obj).pods() == ()
    ray = object_of(
        "ray.io/v1", "RayCluster", {"workerGroupSpecs": [None, "x", {"template": spec()}]}
    )
    assert [pod.role for pod in workload_of(ray).pods()] == ["worker:{groupName}"]


# ------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"kind": "Pod"},
        {"apiVersion": "v1"},
        {"kind": 1, "apiVersion": "v1"},
        {"kind": "", "apiVersion": "v1"},
    ],
)
def test_an_object_without_a_kind_is_none(obj: Any) -> None:
    with pytest.raises(InvalidObjectError, match="an object needs `apiVersion` and `kind`"):
        TABLE.of(obj)


def test_kinds_are_told_apart_by_group_and_not_by_version() -> None:
    assert TABLE.of({"apiVersion": "kubeflow.org/v9", "kind": "PyTorchJob"}) is not None
    assert TABLE.of({"apiVersion": "batch/v1", "kind": "Pod"}) is None
    assert TABLE.of({"apiVersion": "v1", "kind": "Service"}) is None


def test_a_plugin_adds_rows_and_replaces_none() -> None:
    table = KindTable(BUILTIN_KINDS)
    row = Kind("Run", "acme.example.com", (PodPath("{name}", "spec.parts[].template"),))
    table.add(row)
    table.add(row)
    obj = {
        "apiVersion": "acme.example.com/v1",
        "kind": "Run",
        "spec": {"parts": [{"name": "a", "template": template()}]},
    }
    assert [pod.role for pod in workload_of(obj, table).pods()] == ["a"]
    with pytest.raises(
        ConflictError, match=r"kind Run of group 'acme.example.com' is there already"
    ):
        table.add(Kind("Run", "acme.example.com"))
    with pytest.raises(ConflictError):
        table.add(Kind("Pod", ""))


@pytest.mark.parametrize(
    ("owners", "child"),
    [
        (None, False),
        ([], False),
        ([{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "controller": True}], True),
        ([{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}], False),
        (
            [
                {
                    "apiVersion": "flyte.lyft.com/v1alpha1",
                    "kind": "FlyteWorkflow",
                    "controller": True,
                }
            ],
            False,
        ),
        (["x", {"apiVersion": "batch/v1", "kind": "Job", "controller": True}], True),
    ],
)
def test_children_of_workloads(owners: Any, child: bool) -> None:
    assert TABLE.is_child({"ownerReferences": owners}) is child
    pod = object_of("v1", "Pod", spec())
    kind = TABLE.of(pod)
    assert kind is not None
    assert (Workload(pod, kind, is_child=child).queue_owner is None) is child


# ------------------------------------------------------------------------------- SparkApplication


def spark(**extra: Any) -> Any:
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
        "spec": {
            "driver": {"cores": 1, "memory": "2g"},
            "executor": {
                "cores": 4,
                "instances": 8,
                "gpu": {"name": "nvidia.com/gpu", "quantity": 1},
            },
            **extra,
        },
    }


def test_driver_and_executor_are_written_where_the_operator_reads_them() -> None:
    obj = spark()
    workload = workload_of(obj)
    driver, executor = workload.pods()
    assert (driver.roles, executor.roles) == (("driver",), ("executor",))
    for pod in workload.pods():
        pod.tolerate("t")
        pod.set_env("A", "1")
        pod.label("l", "v")
        pod.edit("securityContext")["runAsUser"] = 1
    executor.set_resources(limits={"amd.com/gpu": "2", "nvidia.com/gpu": None})
    common = {
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "env": [{"name": "A", "value": "1"}],
        "labels": {"l": "v"},
        "podSecurityContext": {"runAsUser": 1},
    }
    after = workload.commit()
    assert after["spec"] == {
        "driver": {"cores": 1, "memory": "2g", **common},
        "executor": {
            "cores": 4,
            "instances": 8,
            "gpu": {"name": "amd.com/gpu", "quantity": 2},
            **common,
        },
    }
    assert obj == spark()
    for pod in workload_of(after).pods():
        assert pod.tolerations == common["tolerations"]


def test_each_role_keeps_the_volumes_of_the_other() -> None:
    workload = workload_of(
        spark(volumes=[{"name": "own", "emptyDir": {}}, {"name": "old", "emptyDir": {}}])
    )
    driver, executor = workload.pods()
    driver.add_volume("a", {"emptyDir": {}})
    driver.remove_volume("old")
    executor.add_volume("b", {"emptyDir": {}})
    names = [volume["name"] for volume in workload.commit()["spec"]["volumes"]]
    assert names == ["own", "a", "b"]
    executor.add_volume("c", {"emptyDir": {}})
    names = [volume["name"] for volume in workload.commit()["spec"]["volumes"]]
    assert names == ["own", "a", "b", "c"]


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (
            lambda p: p.set_field("runtimeClassName", "nvidia"),
            "runtimeClassName of a driver is not read",
        ),
        (lambda p: p.set_resources(limits={"memory": "1Gi"}), "cores and memory are Spark's own"),
        (lambda p: p.set_resources(limits={"a.com/x": 1, "b.com/y": 1}), "one GPU resource"),
        (lambda p: p.primary.set_field("imagePullPolicy", "Always"), "imagePullPolicy of a driver"),
    ],
)
def test_what_the_operator_does_not_read_is_refused(verb: Any, message: str) -> None:
    workload = workload_of(spark())
    verb(workload.pods()[0])
    with pytest.raises(CannotChangeError, match=message):
        workload.commit()


def test_a_gpu_comes_and_goes() -> None:
    workload = workload_of(spark())
    driver, executor = workload.pods()
    driver.set_resources(requests={"nvidia.com/gpu": "1e0"})
    executor.set_resources(limits={"nvidia.com/gpu": None})
    after = workload.commit()["spec"]
    assert after["driver"]["gpu"] == {"name": "nvidia.com/gpu", "quantity": 1}
    assert "gpu" not in after["executor"]


def test_a_view_that_is_out_of_date_refuses_changes() -> None:
    workload = workload_of(spark())
    driver, _ = workload.pods()
    workload.reset(spark())
    workload.pods()
    with pytest.raises(RuntimeError, match="out of date"):
        driver.tolerate("t")
