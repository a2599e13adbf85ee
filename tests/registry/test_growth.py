"""What grows with the object or the chain grows in proportion to it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kubetailor.registry import Chain, Step, TaskContext
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import compile_selector
from kubetailor.workloads import BUILTIN_KINDS, KindTable
from kubetailor.workloads.kinds import PodPath

TRANSFORMERS = Plugins.load(entry_points=False).transformers


def _job(pods: int) -> dict[str, Any]:
    # Which of the two containers is the primary one cannot be told: steps about it fail.
    spec = {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {
            "replicatedJobs": [
                {"name": f"job-{n}", "template": {"spec": {"template": {"spec": dict(spec)}}}}
                for n in range(pods)
            ]
        },
    }


def _chain(use: str, arguments: dict[str, Any], layer: Any) -> Chain:
    transformer = TRANSFORMERS[use]
    given = read_parameters(transformer, arguments)
    return Chain("one", (Step(use, layer, transformer, given, compile_selector(None)),))


@pytest.mark.parametrize("layer", ["defaults", "steps"])
@pytest.mark.parametrize(
    ("use", "arguments", "fails"),
    [("env", {"set": {"A": "1"}}, True), ("node_selector", {"set": {"a": "b"}}, False)],
)
def test_the_pods_of_a_workload_are_looked_for_as_often_whatever_their_number(
    monkeypatch: pytest.MonkeyPatch, use: str, arguments: dict[str, Any], fails: bool, layer: str
) -> None:
    looked: list[int] = []
    templates = PodPath.templates

    def counted(self: PodPath, root: Any) -> Any:
        looked.append(1)
        return templates(self, root)

    monkeypatch.setattr(PodPath, "templates", counted)
    counts = []
    for pods in (3, 30):
        looked.clear()
        job = _job(pods)
        kind = KindTable(BUILTIN_KINDS).of(job)
        assert kind is not None
        result = _chain(use, arguments, layer).run(job, kind, TaskContext("admit"))
        assert len(result.warnings) == (pods if fails else 0)
        counts.append(len(looked))
    assert counts[0] == counts[1]


# whatever has many entries ------------------------------------------------------------------------


def _container(number: int) -> dict[str, Any]:
    return {
        "name": f"c{number}",
        "image": "a:1",
        "env": [{"name": "OLD", "value": "x"}],
        "resources": {"limits": {"cpu": "1"}},
        "volumeMounts": [{"name": "v0", "mountPath": "/data"}],
    }


def _pod(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "train", "annotations": {"primary_container_name": "c0"}}
    spec = {"containers": [_container(0)], "volumes": [{"name": "v0", "emptyDir": {}}], **fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _with_env(entries: int) -> dict[str, Any]:
    env = [{"name": f"E{n}", "value": "x"} for n in range(entries)]
    return _pod(containers=[{**_container(0), "env": env}])


def _with_mounts(entries: int) -> dict[str, Any]:
    mounts = [{"name": "v0", "mountPath": f"/m{n}"} for n in range(entries)]
    return _pod(containers=[{**_container(0), "volumeMounts": mounts}])


def _jobs(pods: int) -> dict[str, Any]:
    job = _job(pods)
    for entry in job["spec"]["replicatedJobs"]:
        entry["template"]["spec"]["template"]["spec"] = _pod()["spec"]
    return job


def _groups(groups: int) -> dict[str, Any]:
    workers = [
        {"groupName": f"g{n}", "replicas": 1, "rayStartParams": {}, "template": _pod_template()}
        for n in range(groups)
    ]
    head = {"rayStartParams": {}, "template": _pod_template()}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "train"},
        "spec": {"headGroupSpec": head, "workerGroupSpecs": workers},
    }


def _pod_template() -> dict[str, Any]:
    return {"spec": _pod()["spec"]}


GROWING: dict[str, Callable[[int], dict[str, Any]]] = {
    "containers": lambda n: _pod(containers=[_container(i) for i in range(n)]),
    "init containers": lambda n: _pod(initContainers=[_container(i + 1) for i in range(n)]),
    "env": _with_env,
    "mounts": _with_mounts,
    "volumes": lambda n: _pod(volumes=[{"name": f"v{i}", "emptyDir": {}} for i in range(n)]),
    "tolerations": lambda n: _pod(tolerations=[{"key": f"t{i}"} for i in range(n)]),
    "labels of nodes": lambda n: _pod(nodeSelector={f"n{i}": "x" for i in range(n)}),
    "pods": _jobs,
    "worker groups": _groups,
}
STEPS: dict[str, dict[str, Any]] = {
    "labels": {"set": {"a": "b"}, "on": ["pods"]},
    "env": {"set": {"NEW": "$(OLD)"}, "container": "c0"},
    "node_selector": {"set": {"a": "b"}},
    "tolerations": {"add": [{"key": "a", "operator": "Exists"}]},
    "shared_memory": {"size_limit": "1Gi", "container": "c0"},
    "resources": {"limits": {"memory": "1Gi"}, "container": "c0"},
    "priority_class": {"name": "high"},
}


def _calls(work: Callable[[], object]) -> int:
    """How many functions are called, of Python and of C."""
    work()  # so that what is remembered is there
    counted = itertools.count()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, arg: next(counted) if "call" in event else None)
    try:
        work()
    finally:
        sys.setprofile(before)
    return next(counted)


@pytest.mark.parametrize("layer", ["defaults", "steps"])
@pytest.mark.parametrize("use", STEPS)
@pytest.mark.parametrize("what", GROWING)
def test_ten_times_the_entries_are_ten_times_the_work(what: str, use: str, layer: str) -> None:
    chain = _chain(use, STEPS[use], layer)

    def work(size: int) -> Callable[[], object]:
        obj = GROWING[what](size)
        kind = KindTable(BUILTIN_KINDS).of(obj)
        assert kind is not None

        def run() -> object:
            result = chain.run(obj, kind, TaskContext("admit"))
            assert result.changed
            return result.patch(), result.changes()

        return run

    assert _calls(work(200)) < 10 * 1.1 * _calls(work(20))
