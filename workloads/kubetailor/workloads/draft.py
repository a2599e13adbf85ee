"""Copy on write over plain JSON data.

A step edits a draft. What it changes is copied once, along the path that leads there; all else is
shared with the version before. So keeping every version costs little, and a `diff` of two of them
skips whatever they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, compress, count
from operator import is_not
from typing import Any, TypeAlias

from kubetailor.workloads.errors import InvalidObjectError

__all__ = [
    "Draft",
    "Json",
    "JsonMap",
    "Key",
    "Path",
    "as_list",
    "as_map",
    "deep_copy",
    "dotted",
    "same",
    "segment",
    "shared_run",
    "unshared",
    "value_at",
]

Json: TypeAlias = Any  # dict, list, str, int, float, bool or None, all the way down
JsonMap: TypeAlias = dict[str, Any]
Key: TypeAlias = str | int
Path: TypeAlias = tuple[Key, ...]


def as_map(value: Json) -> JsonMap:
    """The value, or an empty map if it is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """The value, or an empty list if it is none."""
    return value if isinstance(value, list) else []


def deep_copy(value: Json) -> Json:
    """A copy of JSON data that shares no dict or list with it (so YAML aliases are broken)."""
    if isinstance(value, dict):
        return {key: deep_copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [deep_copy(item) for item in value]
    return value


def same(a: Json, b: Json) -> bool:
    """Whether two JSON values are equal in type too: 1 is neither True nor 1.0."""
    if a is b:
        return True
    if type(a) is not type(b) or a != b:
        return False
    if isinstance(a, dict):
        return all(same(value, b[key]) for key, value in a.items())
    return all(map(same, a, b)) if isinstance(a, list) else True


def shared_run(old: list[Any], new: list[Any]) -> int:
    """How many entries two lists share from the start on: the same objects, not only equal ones."""
    return next(compress(count(), map(is_not, old, new)), min(len(old), len(new)))


def unshared(old: list[Any], new: list[Any]) -> list[tuple[int, Json]]:
    """The (index, entry) of each entry of `new` that `old` does not hold: that object itself."""
    start = shared_run(old, new)
    if start == len(old):
        return list(enumerate(new[start:], start))
    known = set(map(id, old))
    # Of many pods that are changed one by one, each time all but one are where they were.
    moved = chain(compress(count(), map(is_not, old, new)), range(len(old), len(new)))
    return [(index, new[index]) for index in moved if id(new[index]) not in known]


def dotted(path: Sequence[Key]) -> str:
    """A path as people write it: ``spec.containers[0].env``, odd keys in brackets and quotes."""
    return "".join(map(segment, path)).removeprefix(".")


@lru_cache(maxsize=4096)
def segment(key: Key) -> str:
    """One key of a path as `dotted` writes it: ``.env``, ``[0]`` or ``['example.com/pool']``."""
    if isinstance(key, str) and key.replace("_", "").replace("-", "").isalnum():
        return f".{key}"
    return f"[{key!r}]"


def value_at(root: Json, path: Sequence[Key]) -> Json:
    """What is at `path`, shared and not to be changed; None if any part of it is missing."""
    node = root
    for key in path:
        if type(node) is dict:
            node = node.get(key)
        elif type(node) is list and type(key) is int and -1 < key < len(node):
            node = node[key]
        else:
            return None
    return node


class Draft:
    """One JSON object under change.

    `root` is always a whole, valid version; after `checkpoint` no version handed out before can
    be changed through this draft.
    """

    __slots__ = ("_owned", "root")

    def __init__(self, root: JsonMap) -> None:
        self.root: JsonMap = root
        self._owned: dict[int, Json] | None = {}  # by id; the value keeps the id from being reused

    def checkpoint(self) -> JsonMap:
        """Close this version: what is in it is shared from now on. Returns the root."""
        if self._owned:
            self._owned = {}
        return self.root

    def close(self) -> None:
        """Refuse any further change: it would be lost."""
        self._owned = None

    def reset(self, root: JsonMap) -> None:
        """Go back (or over) to another version."""
        self.root = root
        self._owned = {}

    def get(self, path: Sequence[Key]) -> Json:
        """What is at `path`, as `value_at` gives it."""
        return value_at(self.root, path)

    def edit(self, path: Path, empty: type[dict[Any, Any]] | type[list[Any]] = dict) -> Any:
        """The dict or list at `path`, made this draft's own, to be changed in place.

        Its children are still shared. Missing or null parents are made; call this only to write.

        Args:
            path: keys and indexes from the root.
            empty: what to make at the end of the path if there is nothing: `dict` or `list`.

        Raises:
            InvalidObjectError: something on the way is neither a dict nor a list.
        """
        node: Json = self.root
        owned = self._owned
        if owned is None:
            raise RuntimeError("this view is out of date: take it again from workload.pods()")
        if id(node) not in owned:
            node = self.root = node.copy()
            owned[id(node)] = node
        for key, wanted, place in _shapes(path, empty):
            child: Json = node.get(key) if type(node) is dict else node[key]
            if type(child) is wanted:
                if id(child) in owned:
                    node = child
                    continue
                child = child.copy()
            elif child is None:
                child = wanted()
            else:
                name = "an object" if wanted is dict else "a list"
                raise InvalidObjectError(
                    f"expected {name}, found {_type_name(child)}", field=dotted(place)
                )
            owned[id(child)] = node[key] = child
            node = child
        return node

    def edit_deep(self, path: Path, empty: type[dict[Any, Any]] | type[list[Any]] = dict) -> Any:
        """As `edit`, but everything below is this draft's own too, for code that is not ours.

        `empty` is what to make; a dict or list that is there is taken as it is.
        """
        there = self.get(path)
        node = self.edit(path, type(there) if isinstance(there, dict | list) else empty)
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(child, dict | list):
                node[key] = deep_copy(child)
        return node

    def put(self, path: Path, value: Json) -> None:
        """Set what is at `path`."""
        if path:
            self.edit(path[:-1], list if isinstance(path[-1], int) else dict)[path[-1]] = value
        else:
            self.reset(value)

    def keep(self, path: Path, entries: list[Any]) -> None:
        """Let a list hold these entries alone; an emptied one goes."""
        if entries:
            self.edit(path, list)[:] = entries
        else:
            self.drop(path)

    def drop(self, path: Path) -> None:
        """Remove what is at `path`; nothing happens if it is not there."""
        parent = self.get(path[:-1])
        if isinstance(parent, dict) and path[-1] in parent:
            del self.edit(path[:-1])[path[-1]]


@lru_cache(maxsize=4096)
def _shapes(path: Path, empty: type[Any]) -> tuple[tuple[Key, type[Any], Path], ...]:
    """Each key of a path, what is to be there (dict or list, by the next key), and its path."""
    shapes = [*(list if isinstance(key, int) else dict for key in path[1:]), empty]
    places = [path[: depth + 1] for depth in range(len(path))]
    return tuple(zip(path, shapes, places, strict=True)) if path else ()


def _type_name(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return names.get(type(value), "a number")
