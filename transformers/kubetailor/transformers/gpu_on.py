"""The GPUs of a pod as it is, in the words of `gpu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubetailor.registry import Accelerator, Catalogue, Pod
from kubetailor.transformers._gpu_asks import gpus_of
from kubetailor.transformers._gpu_flyte import device_on
from kubetailor.transformers._gpu_placement import pairs_on
from kubetailor.workloads import JsonMap

__all__ = ["gpu_on"]


def gpu_on(pod: Pod, catalogue: Catalogue) -> JsonMap | None:
    """What `gpu` would be given for a pod as it is; None without a GPU.

    Args:
        pod: the pod; which container is its primary one must be known.
        catalogue: the accelerators.

    Returns:
        `type`, None where no entry or more than one may be meant; `one_of`, their names where it is
        more than one; `device`, Flyte's word, where the task has it; and `count`, if any is asked
        for.
    """
    asked = gpus_of(pod, catalogue.marks.resources)
    own = asked.get(pod.primary.name) or next(iter(asked.values()), {})
    device = device_on(pod.workload, catalogue.flyte)
    if not (own or device):
        return None
    placed = pod.base if pod.is_replica and pod.base else pod
    pairs = [*pairs_on(placed), *device.items()]
    count = next(iter(own.values()), None)
    present = catalogue.marks.present(pairs, own)
    # Entries for whole GPUs and for slices share marks: one whose every pair is there is meant.
    whole = [each for each in present if _is_placed(catalogue.at(each.name, count or 1), pairs)]
    names = sorted(each.name for each in whole or present)
    found: JsonMap = {"type": names[0] if len(names) == 1 else None}
    if named := pod.workload.get("extendedResources", "gpuAccelerator", "device"):
        found["device"] = named
    elif len(names) > 1:
        found["one_of"] = names
    if count is not None:
        found["count"] = count
    return found


def _is_placed(entry: Accelerator, pairs: Sequence[tuple[str, Any]]) -> bool:
    stated = list(entry.stated_pairs())
    return bool(stated) and all(pair in pairs for pair in stated)
