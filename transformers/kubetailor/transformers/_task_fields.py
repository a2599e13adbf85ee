"""Fields of a Flyte TaskTemplate that are single values."""

from __future__ import annotations

from typing import Any

from kubetailor.registry import Workload
from kubetailor.workloads import Path

__all__ = ["put"]


def put(workload: Workload, path: Path, value: Any) -> None:
    """Set the value at a path; None, which protobuf writes for nothing set, takes it off.

    Numbers compare by value: those of `custom` may come as 3 or as 3.0.

    Args:
        workload: a task template.
        path: where.
        value: what; None takes off what is there.
    """
    place, key = path[:-1], path[-1]
    there = workload.get(*place)
    there = there if isinstance(there, dict) else {}
    if value is None:
        if key in there:
            del workload.edit(*place)[key]
    elif key not in there or not _equal(there[key], value):
        workload.edit(*place)[key] = value


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)
