"""What the checks have in common: they look at what is not shared with the version before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kubetailor.workloads.draft import Json, JsonMap, Key, Path, dotted, unshared
from kubetailor.workloads.errors import InvalidObjectError

__all__ = ["Check", "Checks", "as_list", "as_map", "differs", "fault", "given", "new"]

Check: TypeAlias = Callable[[Json, Json, Path], None]
"""Given a value before and after, which are not one, and its path: raises on the first fault."""

Checks: TypeAlias = Mapping[str, Check]
"""Checks by the key of the value, wherever it is in an object."""


def fault(error: object, *path: Key) -> InvalidObjectError:
    """The error for a fault at a path."""
    return InvalidObjectError(str(error), field=dotted(path))


def as_map(value: Json) -> JsonMap:
    """The value, or an empty map if it is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """The value, or an empty list if it is none."""
    return value if isinstance(value, list) else []


def new(before: Json, after: Json) -> list[tuple[int, JsonMap]]:
    """The (index, entry) of each map in a list that is not shared with the list before."""
    return [
        (index, entry)
        for index, entry in unshared(as_list(before), as_list(after))
        if isinstance(entry, dict)
    ]


def differs(before: Json, after: JsonMap, *keys: str) -> bool:
    """Whether any of these keys has another value than before; what has not is the author's."""
    old = as_map(before)
    return any(old.get(key) != after.get(key) for key in keys)


def given(value: JsonMap, keys: Iterable[str]) -> list[str]:
    """Those of the keys that have a value."""
    return [key for key in keys if value.get(key) is not None]
