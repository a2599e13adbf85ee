"""Ray's groups follow their pod templates."""

from __future__ import annotations

from typing import Any

import pytest

from kubetailor.workloads import BUILTIN_KINDS, CannotChangeError, KindTable, Workload

TABLE = KindTable(BUILTIN_KINDS)


def group(gpus: Any = None, resource: str = "nvidia.com/gpu", **more: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "ray"}
    if gpus is not None:
        container["resources"] = {"limits": {resource: gpus}}
    return {"template": {"spec": {"containers": [container, {"name": "sidecar"}]}}, **more}


KINDS = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
}


def obj_of(kind: str, *workers: Any, **spec: Any) -> Any:
    cluster: Any = {"headGroupSpec": group(1, rayStartParams={"num-gpus": "1"})}
    cluster["workerGroupSpecs"] = [{"groupName": f"g{n}", **g} for n, g in enumerate(workers)]
    found: Any = {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "r"}}
    found["spec"] = cluster if kind == "RayCluster" else {KINDS[kind][-1]: cluster, **spec}
    return found


def workload_of(obj: Any) -> Workload:
    kind = TABLE.of(obj)
    assert kind is not None
    return Workload(obj, kind)


def workers_after(workload: Workload, kind: str = "RayCluster") -> Any:
    found = workload.commit()
    for key in KINDS[kind]:
        found = found[key]
    return found["workerGroupSpecs"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_gpus_follows(kind: str) -> None:
    obj = obj_of(
        kind, *(group(1, rayStartParams={"num-gpus": "1", "block": "true"}) for _ in range(2))
    )
    workload = workload_of(obj)
    workload.pods("worker:g1")[0].container("ray").set_resources(limits={"nvidia.com/gpu": 4})
    first, second = workers_after(workload, kind)
    assert first["rayStartParams"] == {"num-gpus": "1", "block": "true"}
    assert second["rayStartParams"] == {"num-gpus": "4", "block": "true"}
    workload.pods("worker:g1")[0].container("ray").set_resources(limits={"nvidia.com/gpu": 1})
    assert workers_after(workload, kind)[1]["rayStartParams"]["num-gpus"] == "1"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"rayStartParams": {"num-gpus": "0"}}, {"rayStartParams": {"num-gpus": "0"}}),
        ({"rayStartParams": {}}, {"rayStartParams": {}}),
        ({}, {}),
        ({"resources": {"GPU": "1", "CPU": "2"}}, {"resources": {"GPU": "4", "CPU": "2"}}),
        ({"resources": {"nvidia.com/gpu": "1"}}, {"resources": {"nvidia.com/gpu": "4"}}),
    ],
)
def test_what_the_group_says_of_gpus(fields: Any, expected: Any) -> None:
    workload = workload_of(obj_of("RayCluster", group(1, **fields)))
    workload.pods("worker")[0].container("ray").set_resources(limits={"nvidia.com/gpu": 4})
    (found,) = workers_after(workload)
    assert {key: found[key] for key in ("rayStartParams", "resources") if key in found} == expected


def test_another_resource_is_a_gpu_too_and_none_is_none() -> None:
    given = group(1, "nvidia.com/mig-1g.10gb", rayStartParams={"num-gpus": "1"})
    workload = workload_of(obj_of("RayCluster", given))
    ray = workload.pods("worker")[0].container("ray")
    ray.set_resources(limits={"nvidia.com/mig-1g.10gb": None, "amd.com/gpu": 2})
    assert workers_after(workload)[0]["rayStartParams"] == {"num-gpus": "2"}
    ray.set_resources(limits={"amd.com/gpu": None})
    assert workers_after(workload)[0]["rayStartParams"] == {}


def test_what_has_not_changed_stays_as_the_author_has_it() -> None:
    odd = [
        group(1, rayStartParams={"num-gpus": "3"}),
        group("many", rayStartParams={"num-gpus": "3"}),
        group(rayStartParams=None),
    ]
    workload = workload_of(obj_of("RayCluster", *odd))
    for pod in workload.pods():
        pod.tolerate("t")
    for was, now in zip(odd, workers_after(workload), strict=True):
        assert now["rayStartParams"] == was["rayStartParams"]


def test_groups_are_told_apart_by_name() -> None:
    """One that a step adds is as it says."""
    workload = workload_of(obj_of("RayCluster", group(1, rayStartParams={"num-gpus": "1"})))
    added = {"groupName": "new", **group(8, rayStartParams={"num-gpus": "2"})}
    workload.edit("spec", "workerGroupSpecs", empty=list).insert(0, added)
    first, second = workers_after(workload)
    assert first == added
    assert second["rayStartParams"] == {"num-gpus": "1"}


def test_labels_of_a_group_beat_those_of_its_template() -> None:
    workload = workload_of(obj_of("RayCluster", group(labels={"zone": "a"})))
    (pod,) = workload.pods("worker")
    pod.label("zone", "a")
    pod.label("other", "b")
    workload.commit()
    pod.label("zone", "b")
    with pytest.raises(CannotChangeError, match="the label zone of these pods is not read"):
        workload.commit()


@pytest.mark.parametrize(
    ("spec", "roles"),
    [
        ({}, ["head", "worker:g0", "submitter"]),
        ({"submissionMode": "K8sJobMode"}, ["head", "worker:g0", "submitter"]),
        ({"submissionMode": "HTTPMode"}, ["head", "worker:g0"]),
        ({"clusterSelector": {"ray.io/cluster": "c"}}, ["submitter"]),
    ],
)
def test_a_ray_job_has_the_pods_that_are_made(spec: Any, roles: list[str]) -> None:
    submitter = {"spec": {"containers": [{"name": "ray-job-submitter"}]}}
    obj = obj_of("RayJob", group(), submitterPodTemplate=submitter, **spec)
    assert [pod.role for pod in workload_of(obj).pods()] == roles
