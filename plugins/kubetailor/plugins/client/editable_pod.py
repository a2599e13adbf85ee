"""A pod of a task in the words of the transformers; `editable` says what stands where."""

from __future__ import annotations

from typing import Any, Final

from kubetailor.registry import Catalogue
from kubetailor.transformers.gpu_on import gpu_on
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
    if gpu := gpu_on(pod, catalogue):
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


def _resources(pod: Pod, primary: Container, catalogue: Catalogue) -> JsonMap:
    """Requests and limits, but for GPUs, which are said by their count."""
    full = {alias: name for name, alias in pod.workload.resource_aliases.items()}
    return {
        part: {
            name: value
            for name, value in (primary.resources.get(part) or {}).items()
            if full.get(name, name) not in catalogue.marks.resources
        }
        for part in ("requests", "limits")
    }


def _rest(pod: Pod, primary: Container) -> JsonMap:
    """The pod spec without what other words say of it."""
    spec: JsonMap = pod.get()
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
