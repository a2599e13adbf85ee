"""The stamp: an annotation that says what ran. It is a hint for later phases, and no proof."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubetailor.registry import Chain, Result
from kubetailor.workloads import Draft, JsonMap, Path
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["STAMP", "stamp_of", "stamped"]

STAMP = "kubetailor.dev/applied"
"""The annotation."""

_OBJECT: Path = ("metadata", "metadata")
_PODS: Path = ("k8sPod", "metadata")


def stamp_of(result: Result, chain: Chain | None, task: str | None, version: str | None) -> str:
    """The text of the stamp.

    Args:
        result: what the run did.
        chain: the chain; None if it could not be selected yet.
        task: the name of the task; None where that is not known.
        version: its version; None where that is not known.
    """
    said: dict[str, Any] = {
        "chain": chain.name if chain else None,
        "digest": chain.digest if chain else None,
        "task": task,
        "version": version,
        "override": chain.override.digest if chain and chain.override else None,
        "done": result.done,
        "deferred": list(result.deferred),
    }
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def stamped(template: JsonMap, stamp: str) -> JsonMap:
    """A task template with the stamp on its object and on the pods with metadata of their own."""
    draft = Draft(template)
    for place in _places(template):
        draft.edit((*place, "annotations"))[STAMP] = stamp
    return draft.checkpoint()


def _places(template: JsonMap) -> Iterator[Path]:
    """The metadata that is to have the stamp."""
    yield _OBJECT
    if "k8sPod" in template and _pods_have_their_own(template):
        yield _PODS
    find = _GROUPS.get(str(template.get("type")))
    for path in find(template.get("custom") or {}) if find else ():
        if isinstance(Draft(template).get(("custom", *path)), dict):
            yield ("custom", *path, "metadata")


def _pods_have_their_own(template: JsonMap) -> bool:
    """Whether the pods are not the object itself, or do not get its metadata."""
    kind = TASK_TEMPLATE.object_kind(template)
    return kind != "Pod" or template.get("type") == "container_array"


def _ray_groups(custom: JsonMap) -> Iterator[Path]:
    yield ("rayCluster", "headGroupSpec", "k8sPod")
    for index in range(len((custom.get("rayCluster") or {}).get("workerGroupSpec") or ())):
        yield ("rayCluster", "workerGroupSpec", index, "k8sPod")


def _spark_groups(custom: JsonMap) -> Iterator[Path]:
    yield ("driverPod",)
    yield ("executorPod",)


_GROUPS: Mapping[str, Callable[[JsonMap], Iterable[Path]]] = {
    "ray": _ray_groups,
    "spark": _spark_groups,
}
"""Where task types keep pods of their own, whose metadata would beat the task's."""
