"""The stamp: an annotation that says what ran. It is a hint for later phases, and no proof."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubetailor.registry import Chain, Result
from kubetailor.workloads import Draft, JsonMap, Path
from kubetailor.workloads.task_pods import overlay_places
from kubetailor.workloads.task_template import object_is_pod

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
    if "k8sPod" in template and not object_is_pod(template.get("type")):
        yield _PODS
    for path, *_ in overlay_places(template):  # their metadata would beat the task's
        if isinstance(Draft(template).get(path), dict):
            yield (*path, "metadata")
