"""Copy on write over plain JSON data.

A step edits a draft. What it changes is copied once, along the path that leads there; all else is
shared with the version before. So keeping every version costs little, and a `diff` of two of them
skips whatever they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from kubetailor.workloads.errors import InvalidObjectError

__all__ = ["Draft", "Json", "JsonMap", "Key", "Path", "deep_copy", "dotted", "same"]

Json: TypeAlias = Any  # dict, list, str, int, float, bool or None, all the way down
JsonMap: TypeAlias = dict[str, Any]
Key: TypeAlias = str | int
Path: TypeAlias = tuple[Key, ...]


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
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def dotted(path: Sequence[Key]) -> str:
    """A path as people write it: ``spec.containers[0].env``, odd keys in brackets and quotes."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key.replace("_", "").replace("-", "").isalnum():
            text += f".{key}" if text else key
        else:
            text += f"[{key!r}]"
    return text


class Draft:
    """One JSON object under change.

    `root` is always a whole, valid version; after `checkpoint` no version handed out before can
    be changed through this draft.
    """

    __slots__ = ("_owned", "root")

    def __init__(self, root: JsonMap) -> None:
        self.root = root
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
        """What is at `path`, shared and not to be changed; None if any part of it is missing."""
        node: Json = self.root
        for key in path:
            if isinstance(node, dict):
                node = node.get(key)
            elif isinstance(node, list) and isinstance(key, int) and -1 < key < len(node):
                node = node[key]
            else:
                return None
        return node

    def edit(self, path: Sequence[Key], empty: type[dict[Any, Any]] | type[list[Any]] = dict) -> Any:
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
        last = len(path) - 1
        for depth, key in enumerate(path):
            child = node.get(key) if type(node) is dict else node[key]
            wanted = empty if depth == last else (list if isinstance(path[depth + 1], int) else dict)
            if child is None:
                child = wanted()
            elif type(child) is not wanted and not isinstance(child, wanted):
                where = dotted(path[: depth + 1])
                name = "an object" if wanted is dict else "a list"
                raise InvalidObjectError(
                    f"expected {name}, found {_type_name(child)}", field=where
                )
            elif id(child) in owned:
                node = child
                continue
            else:
                child = child.copy()
            owned[id(child)] = child
            node[key] = child
            node = child
        return node

    def edit_deep(self, path: Sequence[Key], empty: type[dict[Any, Any]] | type[list[Any]] = dict) -> Any:
        """As `edit`, but everything below is this draft's own too, for code that is not ours."""
        node = self.edit(path, empty)
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(child, dict | list):
                node[key] = deep_copy(child)
        return node

    def put(self, path: Sequence[Key], value: Json) -> None:
        """Set what is at `path`."""
        if path:
            self.edit(path[:-1], list if isinstance(path[-1], int) else dict)[path[-1]] = value
        else:
            self.reset(value)

    def drop(self, path: Sequence[Key]) -> None:
        """Remove what is at `path`; nothing happens if it is not there."""
        parent = self.get(path[:-1])
        if isinstance(parent, dict) and path[-1] in parent:
            del self.edit(path[:-1])[path[-1]]


def _type_name(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return names.get(type(value), "a number")
