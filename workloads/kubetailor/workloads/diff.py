"""What changed between two versions: as operations, as a JSON Patch, as the way back.

One walk serves every use (JSON Patch at admission, `explain`, undo, and what `defaults` may keep).
It prunes by identity, so versions that share most of their parts are compared in a few
microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import compress, count
from operator import is_not
from typing import Any, Literal, NamedTuple, TypeAlias

from kubetailor.workloads.draft import Draft, Json, JsonMap, Key, Path, same, shared_run
from kubetailor.workloads.identity import IDENTITY, same_key

__all__ = ["Op", "apply_ops", "diff", "json_patch", "pointer"]

_MISSING = object()

Alike: TypeAlias = Callable[[Json, Json], bool]
Raw: TypeAlias = tuple[Literal["add", "remove", "replace"], Path, Json, Json]


class Op(NamedTuple):
    """One difference. `old` is None for "add", `new` is None for "remove"."""

    op: Literal["add", "remove", "replace"]
    path: Path
    old: Json
    new: Json


def diff(old: Json, new: Json, *, whole_lists: bool = False) -> list[Op]:
    """The operations that turn `old` into `new`, in the order in which they apply.

    Args:
        old: JSON data.
        new: JSON data.
        whole_lists: replace a list that differs as one value, instead of entry by entry.

    Returns:
        RFC 6902 operations; the indexes of a list are those at the time of the operation.
    """
    return [Op(*raw) for raw in _raw(old, new, whole_lists)]


def _raw(old: Json, new: Json, whole_lists: bool) -> list[Raw]:
    """The operations as plain tuples, which cost a third of what named ones do."""
    ops: list[Raw] = []
    if old is not new:
        _walk(old, new, (), ops, whole_lists)
    return ops


def _walk(old: Json, new: Json, path: Path, ops: list[Raw], whole_lists: bool) -> None:
    """Compare two values that are not the same object."""
    kind = type(old)
    if kind is not type(new) or (kind is not dict and kind is not list):
        if kind is not type(new) or old != new:
            ops.append(("replace", path, old, new))
    elif kind is dict:
        kept = 0
        for key, before in old.items():
            after = new.get(key, _MISSING)
            if after is before:
                kept += 1
            elif after is _MISSING:
                ops.append(("remove", (*path, key), before, None))
            else:
                kept += 1
                _walk(before, after, (*path, key), ops, whole_lists)
        if kept != len(new):
            ops.extend([("add", (*path, key), None, new[key]) for key in new if key not in old])
    elif not whole_lists:
        _walk_list(old, new, path, ops, _alike_in(path[-1] if path else None))
    elif not same(old, new):
        ops.append(("replace", path, old, new))


@lru_cache(maxsize=4096)
def _alike_in(field: Key | None) -> Alike | None:
    """Whether two entries of the list `field` are one entry, changed; None: all may be."""
    key = IDENTITY.get(field) if isinstance(field, str) else None
    if key is None:
        return None

    def alike(a: Json, b: Json) -> bool:
        if type(a) is dict and type(b) is dict:
            return same_key(key(a), key(b))
        return same(a, b)

    return alike


def _walk_list(
    old: list[Any], new: list[Any], path: Path, ops: list[Raw], alike: Alike | None
) -> None:
    """Keep what stands in both; in each gap change pairwise, then remove or insert the rest.

    Entries with an identity of their own are changed in parts only into themselves.
    """
    many = len(old)
    if len(new) >= many:
        # Nearly always entries are changed where they stand, and new ones follow.
        moved = [*compress(count(), map(is_not, old, new))]
        if alike is None and len(new) == many:
            stay = True
        else:
            stay = all([(alike or same)(old[k], new[k]) for k in moved])
        if stay:
            for k in moved:
                _walk(old[k], new[k], (*path, k), ops, False)
            ops.extend([("add", (*path, k), None, new[k]) for k in range(many, len(new))])
            return
    shift = 0  # how far the list is ahead of `old` after the operations so far
    for i, i_end, j, j_end in _gaps(old, new, alike):
        paired = min(i_end - i, j_end - j)
        for k in range(paired):
            before, after = old[i + k], new[j + k]
            if before is after:
                continue
            if alike is None or alike(before, after):
                _walk(before, after, (*path, j + k), ops, False)
            else:
                ops.append(("replace", (*path, j + k), before, after))
        for before in old[i + paired : i_end]:
            ops.append(("remove", (*path, i + paired + shift), before, None))
        for k in range(j + paired, j_end):
            ops.append(("add", (*path, k), None, new[k]))
        shift += (j_end - j) - (i_end - i)


def _gaps(
    old: list[Any], new: list[Any], alike: Alike | None
) -> Iterator[tuple[int, int, int, int]]:
    """The runs of `old` and of `new` that lie between entries which both have, in order."""
    stop = min(len(old), len(new))
    start = _equal_run(old, new, stop)
    end = _equal_run(old[::-1], new[::-1], stop - start) if start < stop else 0
    i_end, j_end = len(old) - end, len(new) - end
    one_by_one = i_end == j_end and (
        alike is None or all(map(alike, old[start:i_end], new[start:j_end]))
    )
    if one_by_one or start in (i_end, j_end):
        if start < i_end or start < j_end:
            yield start, i_end, start, j_end
        return
    i = j = start
    while i < i_end and j < j_end:
        if same(old[i], new[j]):
            i, j = i + 1, j + 1
            continue
        match = _next_match(old, new, i, i_end, j, j_end, alike or same)
        if match is None:
            break
        a, b = match
        if match != (i, j):
            yield i, a, j, b
        if alike is not None and not same(old[a], new[b]):
            yield a, a + 1, b, b + 1
        i, j = a + 1, b + 1
    if i < i_end or j < j_end:
        yield i, i_end, j, j_end


def _equal_run(old: list[Any], new: list[Any], stop: int) -> int:
    """How many entries are the same from the start on, at most `stop`."""
    index = shared_run(old, new)
    while index < stop and same(old[index], new[index]):
        index += 1
    return min(index, stop)


def _next_match(
    old: Sequence[Any],
    new: Sequence[Any],
    i: int,
    i_end: int,
    j: int,
    j_end: int,
    matches: Alike,
    window: int = 64,
) -> tuple[int, int] | None:
    """The nearest pair of matching entries; a bounded look-ahead keeps long lists linear."""
    for distance in range(min(window, (i_end - i) + (j_end - j) - 1)):
        for di in range(distance + 1):
            a, b = i + di, j + distance - di
            if a < i_end and b < j_end and matches(old[a], new[b]):
                return a, b
    return None


@lru_cache(maxsize=4096)  # a chain changes the same places of many objects
def pointer(path: Path) -> str:
    """A path as an RFC 6901 JSON pointer."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def json_patch(old: Json, new: Json) -> list[JsonMap]:
    """The RFC 6902 patch from `old` to `new`, empty if they are the same."""
    return [
        {"op": op, "path": pointer(path)}
        if op == "remove"
        else {"op": op, "path": pointer(path), "value": value}
        for op, path, _, value in _raw(old, new, False)
    ]


def apply_ops(root: JsonMap, ops: Sequence[Op]) -> JsonMap:
    """`root` with the operations applied; `root` itself is not changed."""
    draft = Draft(root)
    for op, path, _, value in ops:
        if not path:
            draft.reset(value)
            continue
        key = path[-1]
        parent = draft.edit(path[:-1], list if isinstance(key, int) else dict)
        if op == "remove":
            del parent[key]
        elif op == "add" and isinstance(key, int):
            parent.insert(key, value)
        else:
            parent[key] = value
    return draft.checkpoint()
