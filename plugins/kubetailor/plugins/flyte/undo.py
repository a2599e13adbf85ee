"""The way back from what a chain made to what the author wrote.

It is kept as JSON text beside the result: a map of JSON pointers, each with the old value (none
where the place was empty) and a short hash of what the chain wrote there (none where it took the
place away). Lists are kept whole.
"""

from __future__ import annotations

import hashlib
import json
import re
from itertools import pairwise

from kubetailor.workloads import (
    Draft,
    InvalidObjectError,
    Json,
    JsonMap,
    Path,
    diff,
    read_json,
)
from kubetailor.workloads.diff import pointer
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["TASK_PLACE", "UNDO", "undo", "with_undo"]

UNDO = "kubetailor.dev/undo"
"""The key that holds the way back."""

TASK_PLACE: Path = ("config", UNDO)
"""Where a TaskTemplate keeps it."""

_REPLACED_BY_ADMIN: Path = ("container", "resources")
"""FlyteAdmin writes its defaults here when a task is launched."""

_KEYS = 100
_LENGTH = 4096
"""A place has at most as many keys, and its pointer as many characters."""


def with_undo(after: JsonMap, author: JsonMap, place: Path = TASK_PLACE) -> JsonMap:
    """What the chain made, with the way back to what the author wrote.

    Args:
        after: what the chain made.
        author: what the author wrote.
        place: where to keep the way back.
    """
    draft = Draft(after)
    draft.put(place, "")
    final = draft.checkpoint()
    entries = {
        pointer(op.path): {
            **({} if op.op == "remove" else {"old": op.new}),
            **({} if op.op == "add" else _written(op.old, op.path, place)),
        }
        for op in diff(final, author, whole_lists=True)
    }
    draft.put(place, _compact(entries))
    return draft.checkpoint()


def undo(obj: JsonMap, place: Path = TASK_PLACE) -> tuple[JsonMap, list[str]]:
    """What the author wrote, and a warning for each place that changed since.

    Args:
        obj: a task template, or what else keeps its way back at `place`.
        place: where it is kept.

    Raises:
        InvalidObjectError: the way back cannot be read, or leads where no chain goes. Whoever may
            register a task may write it.
    """
    draft = Draft(obj)
    text = draft.get(place)
    if text is None:
        return obj, []
    warnings = []
    for path, entry in _entries(text, place).items():
        there, value = _look(obj, path)
        wrote = _written(value, path, place).get("wrote") if there else None
        if wrote != entry.get("wrote") and path[: len(_REPLACED_BY_ADMIN)] != _REPLACED_BY_ADMIN:
            warnings.append(
                f"{pointer(path)} is not what the chain wrote there; it is put back to what the "
                "author wrote"
            )
        if "old" in entry:
            draft.put(path, entry["old"])
        else:
            draft.drop(path)
    return draft.checkpoint(), warnings


def _entries(text: Json, place: Path) -> dict[Path, JsonMap]:
    """The places of a way back, none of them within another."""
    try:
        said = read_json(text)
    except InvalidObjectError:
        said = None
    if not isinstance(said, dict):
        raise _fault(place)
    found: dict[Path, JsonMap] = {}
    for name, entry in said.items():
        root, *keys = name[: _LENGTH + 1].split("/")
        path = tuple(key.replace("~1", "/").replace("~0", "~") for key in keys)
        if root or not path or len(path) > _KEYS or len(name) > _LENGTH or path in found:
            raise _fault(place)
        if not isinstance(entry, dict):
            raise _fault(place)
        found[path] = entry
    if any(one == other[: len(one)] for one, other in pairwise(sorted(found))):
        raise _fault(place)
    if place == TASK_PLACE:
        for path in found:
            if any(path[: len(own)] == own for own in TASK_TEMPLATE.identity):
                raise _fault(place, f"; it changes {pointer(path)}, which no chain does")
    return found


def _fault(place: Path, why: str = "") -> InvalidObjectError:
    text = f"it is not what kubetailor writes{why}"
    return InvalidObjectError(text, field=pointer(place))


def _look(obj: JsonMap, path: Path) -> tuple[bool, Json]:
    """Whether there is anything at a path, and what."""
    node: Json = obj
    for key in path:
        if not isinstance(node, dict) or key not in node:
            return False, None
        node = node[str(key)]
    return True, node


def _written(value: Json, path: Path, place: Path) -> JsonMap:
    """The hash of what the chain wrote; the way back itself is no part of it."""
    rest = place[len(path) :]
    if rest and place[: len(path)] == path:
        draft = Draft(value)
        draft.drop(rest)
        value = draft.root
    elif path == place:
        value = None
    if _STRUCTS.isdisjoint(path):
        value = _bare(value)
    if value is None:
        return {}
    text = _compact(value)
    if ".0" in text:  # whole numbers of a Struct come back as integers
        text = _WHOLE_FLOAT.sub(r"\1", text)
    return {"wrote": hashlib.sha256(text.encode()).hexdigest()[:8]}


_STRUCTS = frozenset({"custom", "podSpec"})
_WHOLE_FLOAT = re.compile(r"(?<![^:,\[])(-?[0-9]+)\.0(?![^,}\]])")


def _bare(value: Json) -> Json:
    """A value without what protobuf leaves out (false, 0, empty), so that it is the same later."""
    if isinstance(value, dict):
        pairs = [(key, item if key in _STRUCTS else _bare(item)) for key, item in value.items()]
        return {key: item for key, item in pairs if item is not None} or None
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return [_bare(item) for item in value]
    return value or None


_compact = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
