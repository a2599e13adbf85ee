"""What one phase writes on an object for the next: the stamp, and the execution's own keys.

Whoever may launch may write either, so they are hints: they may spare `defaults`, `steps` and the
override.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubetailor.plugins.execution.override import JUDGED, judged
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.registry.overrides.document import OVERRIDE
from kubetailor.workloads import Draft, InvalidObjectError, JsonMap, read_json
from kubetailor.workloads.metadata import FLYTE_LABELS, MapName

__all__ = ["EXECUTION_KEYS", "Stamp", "json_of", "keys_text", "read_stamp", "with_marks"]

EXECUTION_KEYS: Final = "kubetailor.dev/execution-keys"
"""The annotation in which `launch` names the execution's labels and annotations:
``{"labels": [...], "annotations": [...]}``."""

_OURS: Final = "kubetailor.dev/"

_STAMP_LIMIT: Final = 16 * 1024
"""Characters. It is written on every pod of an object, of which there may be thousands."""


@dataclass(frozen=True)
class Stamp:
    """What ran in an earlier phase.

    Attributes:
        text: the annotation.
        chain: the name of the chain.
        digest: its digest then.
        task: the task that it was written for, or None.
        version: the task's version, or None.
        override: the digest of the override that was among them, or None.
        done: how many steps had run, counted from the chain's start.
    """

    text: str
    chain: str
    digest: str
    task: str | None
    version: str | None
    override: str | None
    done: int

    def is_for(self, known: JsonMap) -> bool:
        """Whether it was written for this task, and not copied from another one."""
        return all(
            theirs is None or known.get(field) is None or known[field] == theirs
            for field, theirs in (("task", self.task), ("version", self.version))
        )


def read_stamp(text: Any) -> Stamp | None:
    """The stamp that an annotation holds; None if it cannot be read or no step had run."""
    said = json_of(text)
    if said is None or len(text) > _STAMP_LIMIT:
        return None
    chain, digest, done = said.get("chain"), said.get("digest"), said.get("done")
    task, version, override = (said.get(name) for name in ("task", "version", "override"))
    if not (isinstance(chain, str) and isinstance(digest, str) and type(done) is int and done > 0):
        return None
    if not all(value is None or isinstance(value, str) for value in (task, version, override)):
        return None
    return Stamp(text, chain, digest, task, version, override, done)


def keys_text(keys: Mapping[MapName, Iterable[str]]) -> str:
    """The annotation that names the execution's own keys."""
    return json.dumps({name: sorted(found) for name, found in keys.items()}, separators=(",", ":"))


def json_of(text: Any) -> JsonMap | None:
    """The object that an annotation holds as JSON; None if it holds none."""
    if not isinstance(text, str):
        return None
    try:
        said = read_json(text)
    except InvalidObjectError:
        return None
    return said if isinstance(said, dict) else None


def with_marks(after: JsonMap, before: JsonMap) -> JsonMap:
    """A FlyteWorkflow that says which labels and annotations are its own, and what was judged.

    No stamp goes with it: what is written here reaches every object, and every child execution.

    Args:
        after: the FlyteWorkflow as it comes out.
        before: the same as it came in.
    """
    draft = Draft(after)
    keys: dict[MapName, list[str]] = {}
    for name in ("labels", "annotations"):
        found = draft.get(("metadata", name))
        own = [
            key
            for key in (found if isinstance(found, dict) else ())
            if key not in FLYTE_LABELS and not key.startswith(_OURS)
        ]
        if own:
            keys[name] = own
    draft.drop(("metadata", "annotations", STAMP))
    if draft.get(("metadata", "annotations", OVERRIDE)) is None:
        draft.drop(("metadata", "annotations", JUDGED))
    else:
        draft.put(("metadata", "annotations", JUDGED), judged(before))
    if not keys:
        draft.drop(("metadata", "annotations", EXECUTION_KEYS))
    elif draft.get(("metadata", "annotations", EXECUTION_KEYS)) != keys_text(keys):
        draft.edit(("metadata", "annotations"))[EXECUTION_KEYS] = keys_text(keys)
    return draft.checkpoint()
