"""What changed between two versions: as operations, as a JSON Patch, as the way back.

One walk serves every use (JSON Patch at admission, `explain`, undo, and what `defaults` may keep).
It prunes by identity, so versions that share most of their parts are compared in a few
microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, same

__all__ = ["Op", "apply_ops", "diff", "json_patch", "pointer"]


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
    ops: list[Op] = []
    _walk(old, new, (), ops, whole_lists)
    return ops


def _walk(old: Json, new: Json, path: Path, ops: list[Op], whole_lists: bool) -> None:
    if old is new:
        return
    if type(old) is dict and type(new) is dict:
        for key, before in old.items():
            if key not in new:
                ops.append(Op("remove", (*path, key), before, None))
            else:
                after = new[key]
                if after is not before:
                    _walk(before, after, (*path, key), ops, whole_lists)
        for key, after in new.items():
            if key not in old:
                ops.append(Op("add", (*path, key), None, after))
    elif type(old) is list and type(new) is list and not whole_lists:
        _walk_list(old, new, path, ops)
    elif not same(old, new):
        ops.append(Op("replace", path, old, new))


def _walk_list(old: list[Any], new: list[Any], path: Path, ops: list[Op]) -> None:
    """Keep what stands in both; in each gap change pairwise, then remove or insert the rest."""
    shift = 0  # how far the list is ahead of `old` after the operations so far
    for i, i_end, j, j_end in _gaps(old, new):
        paired = min(i_end - i, j_end - j)
        for k in range(paired):
            _walk(old[i + k], new[j + k], (*path, j + k), ops, False)
        for before in old[i + paired : i_end]:
            ops.append(Op("remove", (*path, i + paired + shift), before, None))
        for k in range(j + paired, j_end):
            ops.append(Op("add", (*path, k), None, new[k]))
        shift += (j_end - j) - (i_end - i)


def _gaps(old: list[Any], new: list[Any]) -> Iterator[tuple[int, int, int, int]]:
    """The runs of `old` and of `new` that lie between entries which both have, in order."""
    start, stop = 0, min(len(old), len(new))
    while start < stop and same(old[start], new[start]):
        start += 1
    end = 0
    while end < stop - start and same(old[-1 - end], new[-1 - end]):
        end += 1
    i_end, j_end = len(old) - end, len(new) - end
    if i_end - start == j_end - start or start in (i_end, j_end):
        if start < i_end or start < j_end:
            yield start, i_end, start, j_end
        return
    i = j = start
    while i < i_end and j < j_end:
        match = _next_match(old, new, i, i_end, j, j_end)
        if match is None:
            break
        if match != (i, j):
            yield i, match[0], j, match[1]
        i, j = match[0] + 1, match[1] + 1
    if i < i_end or j < j_end:
        yield i, i_end, j, j_end


def _next_match(
    old: Sequence[Any], new: Sequence[Any], i: int, i_end: int, j: int, j_end: int, window: int = 64
) -> tuple[int, int] | None:
    """The nearest pair of equal entries; a bounded look-ahead keeps long lists linear."""
    for distance in range(min(window, (i_end - i) + (j_end - j) - 1)):
        for di in range(distance + 1):
            a, b = i + di, j + distance - di
            if a < i_end and b < j_end and same(old[a], new[b]):
                return a, b
    return None


def pointer(path: Path) -> str:
    """A path as an RFC 6901 JSON pointer."""
    return "".join(
        "/" + (key.replace("~", "~0").replace("/", "~1") if isinstance(key, str) else str(key))
        for key in path
    )


def json_patch(old: Json, new: Json) -> list[JsonMap]:
    """The RFC 6902 patch from `old` to `new`, empty if they are the same."""
    patch: list[JsonMap] = []
    for op, path, _, value in diff(old, new):
        entry: JsonMap = {"op": op, "path": pointer(path)}
        if op != "remove":
            entry["value"] = value
        patch.append(entry)
    return patch


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
        elif op == "add" and isinstance(parent, list):
            parent.insert(key, value)
        else:
            parent[key] = value
    return draft.checkpoint()
