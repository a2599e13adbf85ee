"""A pod of a task in the words of the transformers; `editable` says what stands where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubetailor.registry import Accelerator, Catalogue
from kubetailor.registry.marks import stated_pairs
from kubetailor.transformers._gpu_asks import gpus_of
from kubetailor.transformers._gpu_flyte import device_on
from kubetailor.transformers._gpu_placement import pairs_on
from kubetailor.workloads import CannotChangeError, JsonMap, Pod
from kubetailor.workloads.container import Container

__all__ = ["editable_pod"]

_SIMPLE_ENV: Final = frozenset({"name", "value"})


def editable_pod(pod: Pod, catalogue: Catalogue) -> JsonMap:
    """A pod of a task in the words of the transformers.

    Args:
        pod: the pod.
        catalogue: the accelerators.
    """
    try:
        primary = pod.primary
    except CannotChangeError:
        return {"rest": pod.get()}
    found: JsonMap = {}
    if gpu := _gpu(pod, primary, catalogue):
        found["gpu"] = gpu
    found["resources"] = _resources(pod, primary, catalogue)
    found["image"] = primary.image
    if pod.is_replica:
        return found
    found["env"] = {
        entry["name"]: entry.get("value", "")
        for entry in primary.env
        if entry.keys() <= _SIMPLE_ENV
    }
    found["node_selector"] = pod.node_selector
    found["tolerations"] = pod.tolerations
    found["priority_class"] = pod.peek("priorityClassName")
    if rest := _rest(pod, primary):
        found["rest"] = rest
    return found


def _gpu(pod: Pod, primary: Container, catalogue: Catalogue) -> JsonMap | None:
    """The accelerator by its name in the catalogue, and how many; None without a GPU."""
    asked = gpus_of(pod, catalogue.marks.resources)
    own = asked.get(primary.name) or next(iter(asked.values()), {})
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
    stated = list(stated_pairs(entry))
    return bool(stated) and all(pair in pairs for pair in stated)


def _resources(pod: Pod, primary: Container, catalogue: Catalogue) -> JsonMap:
    """Requests and limits, but for GPUs, which are said by their count."""
    full = {alias: name for name, alias in pod.workload.resource_aliases.items()}
    return {
        part: {
            name: value
            for name, value in _map(primary.resources.get(part)).items()
            if full.get(name, name) not in catalogue.marks.resources
        }
        for part in ("requests", "limits")
    }


def _rest(pod: Pod, primary: Container) -> JsonMap:
    """The pod spec without what other words say of it."""
    spec = _map(pod.get())
    rest = {key: value for key, value in spec.items() if key not in _SAID and value}
    containers: list[Any] = []
    for container in spec.get("containers") or []:
        kept = dict(container)
        if container.get("name") == primary.name:
            kept = {key: value for key, value in kept.items() if key not in _SAID_OF_PRIMARY}
            env = [entry for entry in primary.env if not entry.keys() <= _SIMPLE_ENV]
            if env:
                kept["env"] = env
        containers.append({key: value for key, value in kept.items() if value})
    return {**rest, **({"containers": containers} if containers else {})}


_SAID: Final = frozenset({"containers", "nodeSelector", "tolerations", "priorityClassName"})
_SAID_OF_PRIMARY: Final = frozenset({"image", "resources", "env"})


def _map(value: Any) -> JsonMap:
    return value if isinstance(value, dict) else {}
