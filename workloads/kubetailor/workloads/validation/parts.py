"""What the checks have in common: they look at what is not shared with the version before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from kubetailor.workloads.draft import Json, JsonMap, Key, Path, as_list, as_map, dotted, unshared
from kubetailor.workloads.errors import InvalidObjectError

__all__ = [
    "TEMPLATE_GROUPS",
    "Check",
    "Checks",
    "differs",
    "fault",
    "given",
    "new",
]

Check: TypeAlias = Callable[[Json, Json, Path], None]
"""Given a value before and after, which are not one, and its path: raises on the first fault."""

Checks: TypeAlias = Mapping[str, Check]
"""Checks by the key of the value, wherever it is in an object."""

TEMPLATE_GROUPS: Final = frozenset(
    {
        "apps",
        "batch",
        "batch.volcano.sh",
        "jobset.x-k8s.io",
        "kubeflow.org",
        "kubernetes.dask.org",
        "leaderworkerset.x-k8s.io",
        "ray.io",
    }
)
"""API groups whose kinds have whole pod specs, all of them in pod templates."""


def fault(error: object, *path: Key) -> InvalidObjectError:
    """The error for a fault at a path."""
    return InvalidObjectError(str(error), field=dotted(path))


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
