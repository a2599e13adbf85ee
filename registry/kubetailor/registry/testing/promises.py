"""What every transformer promises, and the proof of it for one object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from kubetailor.registry.result import Result
from kubetailor.registry.testing.outcome import Outcome, lines, must, text_of
from kubetailor.workloads import Json, JsonMap, deep_copy, same

__all__ = ["Run", "parts_of", "patched", "proven"]

Run: TypeAlias = Callable[[JsonMap], Result]

_PROBE = "kubetailorProbe"


def proven(run: Run, obj: JsonMap) -> Outcome:
    """Run over an object and fail unless the promises hold that every transformer gives."""
    given = text_of(obj)
    result = run(obj)
    outcome = Outcome(result)
    must(text_of(obj) == given, "the object that was given is changed in place")

    again = run(result.after)
    more = lines(result.after, again.after)
    must(not more, "a second run changes more:", *more)

    applied = patched(deep_copy(obj), outcome.patch)
    must(same(applied, result.after), "the patch does not lead to what came out")

    before = outcome.before
    probed = run(_with_probes(before, before)).after
    lost = lines(_with_probes(result.after, before), probed)
    must(not lost, "fields that are not known are lost or moved:", *lost)

    other = run(deep_copy(obj)).after
    shared = parts_of(result.after) & parts_of(other)
    must(not shared, "two results share a part that can be changed")
    return outcome


def patched(root: Json, patch: list[JsonMap]) -> Json:
    """RFC 6902, written down apart from what made the patch."""
    holder = {"": root}
    for entry in patch:
        *parents, last = [
            key.replace("~1", "/").replace("~0", "~") for key in entry["path"].split("/")
        ]
        node: Any = holder
        for key in parents:
            node = node[int(key)] if isinstance(node, list) else node[key]
        place: Any = int(last) if isinstance(node, list) else last
        if entry["op"] == "remove":
            del node[place]
        elif entry["op"] == "add" and isinstance(node, list):
            node.insert(place, deep_copy(entry["value"]))
        else:
            node[place] = deep_copy(entry["value"])
    return holder[""]


def _with_probes(value: Json, given: Json, *, root: bool = True) -> Json:
    """A copy with a field that nobody knows in the object, its pod specs and its containers.

    Args:
        value: what came out, or what was given.
        given: what was given; what is not in it is new, and has no such field.
        root: whether it is the object itself.
    """
    if given is None or not isinstance(value, dict | list):
        return deep_copy(value)
    if isinstance(value, list):
        pairs = zip(value, _counterparts(value, given), strict=True)
        return [_with_probes(item, other, root=False) for item, other in pairs]
    old = given if isinstance(given, dict) else {}
    copied = {k: _with_probes(item, old.get(k), root=False) for k, item in value.items()}
    for field in ("containers", "initContainers"):
        found = copied.get(field)
        entries: list[Json] = found if isinstance(found, list) else []
        for entry, other in zip(entries, _counterparts(entries, old.get(field)), strict=True):
            if isinstance(entry, dict) and other is not None:
                entry[_PROBE] = {"kept": [1, None]}
    if root or isinstance(copied.get("containers"), list):
        copied[_PROBE] = {"kept": [1, None]}
    return copied


def _counterparts(entries: list[Json], given: Json) -> list[Json]:
    """The entry of the list that was given for each of another, by name or else by index."""
    others = given if isinstance(given, list) else []
    named = {entry["name"]: entry for entry in others if _named(entry)}
    return [
        named.get(entry["name"])
        if _named(entry)
        else others[index]
        if index < len(others)
        else None
        for index, entry in enumerate(entries)
    ]


def _named(entry: Json) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)


def parts_of(value: Json) -> set[int]:
    """The ids of every dict and list."""

    def walk(node: Json) -> Iterator[int]:
        if isinstance(node, dict | list):
            yield id(node)
            for item in node.values() if isinstance(node, dict) else node:
                yield from walk(item)

    return set(walk(value))
