"""Lists of pods and containers, and the containers that a step is about."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable
from typing import Any

from kubetailor.registry import CannotChangeError, Container, Pod
from kubetailor.workloads import nearest

__all__ = ["chosen", "keep"]


def keep(owner: Pod | Container, field: str, is_kept: Callable[[Any], bool]) -> None:
    """Let a list of a pod or a container hold only such entries; an emptied one goes."""
    there = owner.get(field) or []
    kept = [entry for entry in there if is_kept(entry)]
    if there and not kept:
        owner.set_field(field, None)
    elif len(kept) != len(there):
        owner.edit(field, empty=list)[:] = kept


def chosen(pod: Pod, globs: Iterable[str]) -> list[Container]:
    """The containers, init containers too, whose names match any of the globs.

    Raises:
        CannotChangeError: one of the globs matches none.
    """
    found: dict[str, Container] = {}
    known = {container.name: container for container in pod.every_container}
    for glob in globs:
        names = fnmatch.filter(known, glob)
        if not names:
            raise CannotChangeError(
                f"no container {glob!r}; {nearest(glob, known, what='the containers')}",
                field=pod.where("containers"),
            )
        found |= {name: known[name] for name in names}
    return list(found.values())
