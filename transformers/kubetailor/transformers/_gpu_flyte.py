"""What Flyte and Ray say of GPUs outside the pod: `gpuAccelerator`, and `num-gpus`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubetailor.registry import Accelerator, Workload
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.workloads import same
from kubetailor.workloads.task_pods import ray_groups

__all__ = ["device_on", "set_device", "set_ray_gpus"]

_DEVICE = ("extendedResources", "gpuAccelerator")

_NUM_GPUS = "num-gpus"


def device_on(workload: Workload, flyte: FlyteSettings) -> Mapping[str, str]:
    """The node labels by which FlytePropeller will place a task: `gpuAccelerator` as pairs."""
    found = workload.draft.get(_DEVICE) if workload.is_task_template else None
    if not isinstance(found, dict):
        return {}
    return flyte.pairs(found.get("device"), found.get("partitionSize"))


def set_device(workload: Workload, entry: Accelerator | None) -> None:
    """Let FlytePropeller place a task by an accelerator's device, or not at all.

    flyteidl/core/tasks.proto, `GPUAccelerator`: `unpartitioned` and `partitionSize` are a union.
    """
    there = workload.draft.get(_DEVICE)
    if entry is None:
        if there is not None:
            alone = len(workload.draft.get(_DEVICE[:1])) == 1
            gone: dict[str, Any] = {_DEVICE[1]: None}
            workload.merge({_DEVICE[0]: None if alone else gone})
        return
    wanted: dict[str, Any] = {"device": entry.device, "partitionSize": entry.partition}
    if entry.partition is not None:
        wanted["unpartitioned"] = None
    kept = {key: value for key, value in (there or {}).items() if key not in wanted}
    new = {**kept, **{key: value for key, value in wanted.items() if value is not None}}
    if not same(there, new):
        workload.merge({_DEVICE[0]: {_DEVICE[1]: wanted}})


def set_ray_gpus(workload: Workload, counts: Mapping[str, int]) -> None:
    """Let Ray's own count of GPUs follow in a task; 0 keeps Ray's tasks off a group, and stays.

    KubeRay's objects see to that themselves (`RayKind`).
    https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/gpu.html

    Args:
        workload: the workload.
        counts: role -> number of GPUs, of the pods that were changed.
    """
    if not workload.is_task_template:
        return
    for path, role in list(ray_groups(workload.draft.root)):
        there = workload.draft.get((*path, "rayStartParams", _NUM_GPUS))
        count = counts.get(role)
        if count is not None and there is not None and str(there) not in ("0", str(count)):
            workload.edit(*path, "rayStartParams")[_NUM_GPUS] = str(count)
