"""Tolerations, of which a pod has one for each key, operator, value and effect.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubetailor.workloads.draft import Draft, JsonMap, Path, as_list, same
from kubetailor.workloads.identity import find, toleration_key

__all__ = [
    "find_toleration",
    "put_toleration",
    "remove_tolerations",
    "set_tolerations",
    "toleration_of",
]

_FIELD = "tolerations"


def toleration_of(
    key: str | None,
    operator: str | None,
    value: str | None,
    effect: str | None,
    toleration_seconds: int | None,
) -> JsonMap:
    """A toleration as Kubernetes writes it: `Equal` where a value is given, else `Exists`."""
    said = {
        "key": key,
        "operator": operator or ("Exists" if value is None else "Equal"),
        "value": value,
        "effect": effect,
        "tolerationSeconds": toleration_seconds,
    }
    return {name: item for name, item in said.items() if item is not None}


def find_toleration(draft: Draft, spec: Path, wanted: Mapping[str, Any]) -> JsonMap | None:
    """The toleration with the identity of another, shared and not to be changed, or None."""
    entries = _entries(draft, spec)
    index = find(_FIELD, entries, wanted)
    return None if index is None else entries[index]


def put_toleration(draft: Draft, spec: Path, toleration: Mapping[str, Any]) -> None:
    """Put a toleration in the place of the one with its identity, else at the end."""
    index = find(_FIELD, _entries(draft, spec), toleration)
    entries = draft.edit((*spec, _FIELD), list)
    if index is None:
        entries.append(dict(toleration))
    else:
        entries[index] = dict(toleration)


def remove_tolerations(draft: Draft, spec: Path, given: Mapping[str, str | None]) -> None:
    """Remove the tolerations that agree in all that is given; an emptied list goes.

    Args:
        draft: where the pod spec is.
        spec: its path.
        given: key, operator, value and effect, in this order; None for any.
    """
    entries = _entries(draft, spec)
    kept = [entry for entry in entries if not (isinstance(entry, dict) and _agrees(entry, given))]
    if len(kept) != len(entries):
        draft.keep((*spec, _FIELD), kept)


def set_tolerations(draft: Draft, spec: Path, tolerations: Iterable[Mapping[str, Any]]) -> None:
    """Let these be the tolerations, in this order; none at all takes the list off."""
    wanted = [dict(entry) for entry in tolerations]
    if not same(wanted, _entries(draft, spec)):
        draft.keep((*spec, _FIELD), wanted)


def _agrees(entry: Mapping[str, Any], given: Mapping[str, str | None]) -> bool:
    pairs = zip(given.values(), toleration_key(entry), strict=True)
    return all(wanted is None or wanted == part for wanted, part in pairs)


def _entries(draft: Draft, spec: Path) -> list[Any]:
    """The tolerations, shared and not to be changed."""
    return as_list(draft.get((*spec, _FIELD)))
