"""What a default may keep: additions, by map key and list identity. Nothing that was set changes."""

from __future__ import annotations

from kubetailor.workloads import JsonMap, Op, apply_ops, diff
from kubetailor.workloads.task_template import as_pod_task

__all__ = ["additions"]


def _fills(op: Op) -> bool:
    """Whether an operation sets what was unset; null and empty count as unset."""
    if op.op == "add":
        return True
    return op.op == "replace" and (op.old is None or (not op.old and isinstance(op.old, dict | list | str)))


def additions(before: JsonMap, after: JsonMap, *, atomic: bool) -> JsonMap:
    """The version in which only what `after` adds to `before` is kept.

    Args:
        before: the version before the step.
        after: the version after it.
        atomic: keep it whole, or not at all if it changes what was set.

    Returns:
        `after` itself if it only adds, `before` itself if nothing is kept.
    """
    base = as_pod_task(before, after)
    ops = diff(base, after)
    kept = [op for op in ops if _fills(op)]
    if len(kept) == len(ops):
        return after
    if atomic or not kept:
        return before
    return apply_ops(base, _shifted(ops))


def _shifted(ops: list[Op]) -> list[Op]:
    """The operations that fill, with list indexes as if the removals had not been made."""
    kept = []
    held: dict[tuple[object, ...], int] = {}  # list -> entries that were to be removed before here
    for op in ops:
        parent = op.path[:-1]
        if _fills(op):
            key = op.path[-1] if op.path else None
            if isinstance(key, int):
                op = op._replace(path=(*parent, key + held.get(parent, 0)))
            kept.append(op)
        elif op.op == "remove" and isinstance(op.path[-1], int):
            held[parent] = held.get(parent, 0) + 1
    return kept
