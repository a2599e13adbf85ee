"""The roles of a Flyte task, and what its `custom` holds of their pods.

Sources: flyteidl/plugins/*.proto, and how flyteplugins reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubetailor.workloads.draft import JsonMap, Path, value_at

__all__ = ["REPLICAS", "overlay_places", "own_roles", "ray_groups"]

REPLICAS = {
    "pytorch": {"master": ("masterReplicas",), "worker": ("workerReplicas",)},
    "tensorflow": {
        "chief": ("chiefReplicas",),
        "worker": ("workerReplicas",),
        "ps": ("psReplicas",),
        "evaluator": ("evaluatorReplicas",),
    },
    "mpi": {"launcher": ("launcherReplicas",), "worker": ("workerReplicas",)},
    "dask": {"scheduler": ("scheduler",), "worker": ("workers",)},
}
"""Type of a task -> role -> where `custom` keeps what is said of its replicas alone."""

_RAY_CLUSTER: Path = ("custom", "rayCluster")


def own_roles(template: JsonMap) -> Iterator[str]:
    """The roles that the task's own pod spec serves."""
    kind = str(template.get("type"))
    custom: Mapping[str, Any] = template.get("custom") or {}
    if kind == "pytorch":
        if not custom.get("elasticConfig"):
            yield "master"
        yield "worker"
    elif kind == "tensorflow":
        for role, (field,) in REPLICAS[kind].items():
            if (custom.get(field) or {}).get("replicas"):
                yield role
    elif kind == "mpi":
        yield from ("launcher", "worker")
    elif kind == "ray":
        yield "head"
        yield from (role for _, role in ray_groups(template) if role != "head")
        yield "submitter"
    elif kind == "spark":
        yield from ("driver", "executor")
    elif kind == "dask":
        yield from ("job-runner", "scheduler", "worker")
    else:
        yield "primary"


def ray_groups(template: JsonMap) -> Iterator[tuple[Path, str]]:
    """The (path, role) of each group of a Ray task's cluster, the head's first."""
    if template.get("type") != "ray":
        return
    head: Path = (*_RAY_CLUSTER, "headGroupSpec")
    if isinstance(value_at(template, head), dict):
        yield head, "head"
    workers: Path = (*_RAY_CLUSTER, "workerGroupSpec")
    groups = value_at(template, workers)
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        if isinstance(group, dict):
            yield (*workers, index), f"worker:{group.get('groupName')}"


def overlay_places(template: JsonMap) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    """The (path, role, container names) of the K8sPods that `custom` may hold."""
    for path, role in ray_groups(template):
        name = "ray-head" if role == "head" else "ray-worker"
        yield (*path, "k8sPod"), role, (name,)
    if template.get("type") == "spark":
        yield ("custom", "driverPod"), "driver", ("spark-kubernetes-driver",)
        yield ("custom", "executorPod"), "executor", ("spark-kubernetes-executor",)
