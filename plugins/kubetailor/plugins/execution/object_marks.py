"""What earlier phases wrote on an object for this one: the stamp, and the execution's own keys.

Whoever may launch may write either, so they are hints: they may spare `defaults`, `steps` and the
override.
"""

from __future__ import annotations

from kubetailor.plugins.execution.marks import EXECUTION_KEYS, Stamp, json_of, read_stamp
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.workloads import JsonMap, Kind, Pod, Workload
from kubetailor.workloads.metadata import MapName

__all__ = [
    "Keys",
    "execution_keys",
    "find_stamp",
    "kept_as_they_were",
    "places",
    "stamped",
]

Keys = dict[MapName, frozenset[str]]


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


def execution_keys(workload: Workload) -> Keys:
    """The keys that were given to the execution; empty if none are said."""
    said = json_of(workload.annotations.get(EXECUTION_KEYS)) or {}
    found: Keys = {}
    for name in ("labels", "annotations"):
        keys = said.get(name)
        if isinstance(keys, list):
            found[name] = frozenset(key for key in keys if isinstance(key, str))
    return {name: keys for name, keys in found.items() if keys}


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
