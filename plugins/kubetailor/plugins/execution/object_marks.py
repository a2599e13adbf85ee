"""What earlier phases wrote on an object for this one: the stamp, and the execution's own keys.

Whoever may launch may write either, so they are hints: they may spare `defaults`, `steps` and the
override.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.workloads import (
    InvalidObjectError,
    JsonMap,
    Kind,
    Pod,
    Workload,
    read_json,
)
from kubetailor.workloads.metadata import MapName

__all__ = [
    "EXECUTION_KEYS",
    "Keys",
    "Stamp",
    "execution_keys",
    "find_stamp",
    "kept_as_they_were",
    "keys_text",
    "places",
    "read_stamp",
    "stamped",
]

EXECUTION_KEYS: Final = "kubetailor.dev/execution-keys"
"""The annotation in which `launch` names the execution's labels and annotations:
``{"labels": [...], "annotations": [...]}``."""

_STAMP_LIMIT: Final = 16 * 1024
"""Characters. It is written on every pod of an object, of which there may be thousands."""

Keys = dict[MapName, frozenset[str]]


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


def places(workload: Workload) -> list[Workload | Pod]:
    """Where an object has labels and annotations: its own, and its pods'."""
    return [workload, *workload.pods()]


def find_stamp(workload: Workload) -> Stamp | None:
    """The stamp of an object, or of its pods; None if there is none that can be read.

    One of which no step had run yet says nothing either.
    """
    for place in places(workload):
        stamp = read_stamp(place.annotations.get(STAMP))
        if stamp is not None:
            return stamp
    return None


def read_stamp(text: Any) -> Stamp | None:
    """The stamp that an annotation holds; None if it cannot be read or no step had run."""
    said = _json(text)
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


def execution_keys(workload: Workload) -> Keys:
    """The keys that were given to the execution; empty if none are said."""
    said = _json(workload.annotations.get(EXECUTION_KEYS)) or {}
    found: Keys = {}
    for name in ("labels", "annotations"):
        keys = said.get(name)
        if isinstance(keys, list):
            found[name] = frozenset(key for key in keys if isinstance(key, str))
    return {name: keys for name, keys in found.items() if keys}


def _json(text: Any) -> JsonMap | None:
    if not isinstance(text, str):
        return None
    try:
        said = read_json(text)
    except InvalidObjectError:
        return None
    return said if isinstance(said, dict) else None


def stamped(obj: JsonMap, kind: Kind, text: str) -> JsonMap:
    """The object with a stamp on it, and on its pods that have annotations of their own."""
    workload = Workload(obj, kind)
    for place in places(workload):
        if isinstance(place, Workload) or place.has_metadata:
            place.annotate(STAMP, text)
    return workload.commit()


def kept_as_they_were(
    before: JsonMap, after: JsonMap, kind: Kind, keys: Keys
) -> tuple[JsonMap, list[str]]:
    """`after`, where these labels and annotations are what they were, and what was put back.

    Only the places that had the key before are looked at.
    """
    if before is after or not keys:
        return after, []
    old, new = Workload(before, kind), Workload(after, kind)
    back: list[str] = []
    for was, now in zip(places(old), places(new), strict=False):
        for name, names in keys.items():
            entries, found = getattr(was, name), getattr(now, name)
            for key in sorted(names & entries.keys()):
                if found.get(key) != entries[key]:
                    (now.label if name == "labels" else now.annotate)(key, entries[key])
                    back.append(key)
    return new.commit(), sorted(set(back))
