"""Paths of fields as people write them: ``spec.containers[main].env[0].value``."""

from __future__ import annotations

import re
from typing import Any, Final

from kubetailor.workloads import Json, JsonMap
from kubetailor.workloads.draft import Draft, Key, Path

__all__ = ["ABSENT", "field_at", "with_field"]


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""The value of a field that is not there, which null is not."""

_PART = re.compile(
    r"""\.?(?:(?P<key>[^.\[\]'"]+)|\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]|\[(?P<entry>[^\]]+)\])"""
)


def _resolved(root: JsonMap, path: str) -> Path:
    """Keys and indexes; a named entry that is not there gets the index after the last."""
    keys: list[Key] = []
    node: Any = root
    position = 0
    while position < len(path):
        match = _PART.match(path, position)
        if match is None:
            raise ValueError(f"not a path: {path!r}, from {path[position:]!r} on")
        position = match.end()
        key: Key = match["key"] or match["quoted"] or match["entry"]
        if match["entry"] is not None:
            entries = node if isinstance(node, list) else []
            names = [entry.get("name") if isinstance(entry, dict) else None for entry in entries]
            if match["entry"].isdigit():
                key = int(match["entry"])
            else:
                key = names.index(match["entry"]) if match["entry"] in names else len(names)
        keys.append(key)
        if isinstance(node, dict):
            node = node.get(str(key))
        elif isinstance(node, list) and isinstance(key, int):
            node = node[key] if key < len(node) else None
        else:
            node = None
    return tuple(keys)


def field_at(root: JsonMap, path: str) -> Json:
    """What is at a path, or `ABSENT`."""
    keys = _resolved(root, path)
    parent, last = Draft(root).get(keys[:-1]), keys[-1]
    if isinstance(parent, dict):
        return parent.get(last, ABSENT)
    if isinstance(parent, list) and isinstance(last, int) and last < len(parent):
        return parent[last]
    return ABSENT


def with_field(root: JsonMap, path: str, value: Json) -> JsonMap:
    """The object with another value at a path, or without it; the object itself stays."""
    keys = _resolved(root, path)
    draft = Draft(root)
    if value is ABSENT:
        parent = draft.edit(keys[:-1], list if isinstance(keys[-1], int) else dict)
        del parent[keys[-1]]
    elif isinstance(keys[-1], int):
        entries = draft.edit(keys[:-1], list)
        entries[keys[-1] : keys[-1] + 1] = [value]
    else:
        draft.put(keys, value)
    return draft.checkpoint()
