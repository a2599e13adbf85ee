"""Topology spread constraints, of which a pod has one for each topology key and way to fail.

https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubetailor.workloads.draft import Draft, Path, as_list, deep_copy, same
from kubetailor.workloads.identity import find

__all__ = ["add_constraint", "remove_constraints"]

_FIELD = "topologySpreadConstraints"


def add_constraint(draft: Draft, spec: Path, constraint: Mapping[str, Any]) -> None:
    """Put a constraint, whole, in the place of the one with its identity, else at the end."""
    there = _entries(draft, spec)
    index = find(_FIELD, there, constraint)
    entry = deep_copy(dict(constraint))
    if index is None:
        draft.edit((*spec, _FIELD), list).append(entry)
    elif not same(there[index], entry):
        draft.edit((*spec, _FIELD), list)[index] = entry


def remove_constraints(draft: Draft, spec: Path, wanted: Mapping[str, Any]) -> None:
    """Remove the constraints that agree in all that is given; an emptied list goes."""
    there = _entries(draft, spec)
    kept = [
        entry
        for entry in there
        if not (isinstance(entry, dict) and all(entry.get(key) == wanted[key] for key in wanted))
    ]
    if len(kept) != len(there):
        draft.keep((*spec, _FIELD), kept)


def _entries(draft: Draft, spec: Path) -> list[Any]:
    """The constraints, shared and not to be changed."""
    return as_list(draft.get((*spec, _FIELD)))
