"""Volumes and containers: entries of a pod spec that are known by their names.

What is asked for and is there already is no change, though an engine and the API server may have
written more into it: FlytePropeller puts variables into every container, the API server defaults
into every volume.
"""

from __future__ import annotations

from typing import Final

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, dotted, same
from kubetailor.workloads.errors import CannotChangeError, ConflictError
from kubetailor.workloads.filled import is_filled_in_source, is_omitted
from kubetailor.workloads.identity import IDENTITY, find
from kubetailor.workloads.quantity import same_quantity

__all__ = [
    "CONTAINERS",
    "add_container",
    "add_volume",
    "has_container",
    "remove_container",
    "remove_volume",
    "says_the_same",
]

CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
"""The lists of a pod spec that hold containers; a name is in one of them alone."""

_AMOUNTS = ("requests", "limits", "sizeLimit", "storage")


def _entries(draft: Draft, path: Path) -> list[Json]:
    found = draft.get(path)
    return found if isinstance(found, list) else []


# volumes -----------------------------------------------------------------------------------------


def add_volume(draft: Draft, spec: Path, entry: JsonMap, *, replace: bool) -> None:
    """Add a volume to a pod spec; its source is a union, so it is replaced whole or not at all.

    Raises:
        ConflictError: a volume of the name has another source, and not `replace`.
    """
    path = (*spec, "volumes")
    volumes = _entries(draft, path)
    index = find("volumes", volumes, entry)
    if index is None:
        draft.edit(path, list).append(entry)
    elif not says_the_same(volumes[index], entry):
        if not replace:
            raise ConflictError(
                f"volume {entry['name']!r} is there with another source; ask for `replace`",
                field=dotted((*path, index)),
            )
        draft.edit(path, list)[index] = entry


def says_the_same(there: Json, wanted: Json, field: str = "") -> bool:
    """Whether two volumes, mounts or variables are one, but for what the API server fills in."""
    if isinstance(there, dict) and isinstance(wanted, dict):
        keys = {**there, **wanted}
        return all(says_the_same(there.get(key), wanted.get(key), key) for key in keys)
    if isinstance(there, list) and isinstance(wanted, list):
        return len(there) == len(wanted) and all(map(says_the_same, there, wanted))
    if there is None or wanted is None:
        other = wanted if there is None else there
        # An empty map says something: it may be the source itself.
        return (
            other is None
            or other is False
            or other in ("", [])
            or is_filled_in_source(field, other)
        )
    if field in _AMOUNTS:
        return same_quantity(there, wanted)
    return same(there, wanted)


def remove_volume(draft: Draft, spec: Path, name: str) -> None:
    """Remove a volume and every mount of it, if it is there; emptied lists go."""
    path = (*spec, "volumes")
    volumes = _entries(draft, path)
    others = [entry for entry in volumes if find("volumes", [entry], {"name": name}) is None]
    if len(others) == len(volumes):
        return
    draft.keep(path, others)
    for field in CONTAINERS:
        for place, container in enumerate(_entries(draft, (*spec, field))):
            mounts = container.get("volumeMounts") if isinstance(container, dict) else None
            kept = [mount for mount in mounts or () if mount.get("name") != name]
            if mounts and len(kept) != len(mounts):
                draft.keep((*spec, field, place, "volumeMounts"), kept)


# containers --------------------------------------------------------------------------------------


def add_container(draft: Draft, spec: Path, field: str, entry: JsonMap, *, replace: bool) -> None:
    """Add a container to the end of a list of a pod spec.

    Raises:
        ConflictError: one of the name is there with other content, or in another list, and not
            `replace`.
    """
    for other in CONTAINERS:
        path = (*spec, other)
        entries = _entries(draft, path)
        index = find(other, entries, entry)
        if index is None:
            continue
        if other == field and _holds(entries[index], entry):
            return
        if not replace:
            where = "with other content" if other == field else f"as one of {other}"
            raise ConflictError(
                f"container {entry['name']!r} is there {where}; ask for `replace`",
                field=dotted((*path, index)),
            )
        if other == field:
            draft.edit(path, list)[index] = entry
            return
        _remove(draft, path, entry["name"])
    draft.edit((*spec, field), list).append(entry)


def has_container(draft: Draft, spec: Path, field: str, entry: JsonMap) -> bool:
    """Whether a list of a pod spec has a container, with all that is wanted of it."""
    entries = _entries(draft, (*spec, field))
    index = find(field, entries, entry)
    return index is not None and _holds(entries[index], entry)


def _holds(there: Json, wanted: Json, field: str = "") -> bool:
    """Whether an entry has all that is wanted of it; it may have more."""
    if isinstance(wanted, dict):
        if not isinstance(there, dict):
            return there is None and not wanted
        return all(
            same_quantity(there.get(key), value)
            if field in _AMOUNTS
            else _holds(there.get(key), value, key)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return _has_entries(there if isinstance(there, list) else [], wanted, field)
    if there is None:
        return wanted is None or wanted == "" or is_omitted(field, wanted)
    return same(there, wanted)


def _has_entries(there: list[Json], wanted: list[Json], field: str) -> bool:
    if field not in IDENTITY or not all(isinstance(entry, dict) for entry in wanted):
        return len(there) == len(wanted) and all(map(_holds, there, wanted))
    places = [(find(field, there, entry), entry) for entry in wanted]
    return all(place is not None and _holds(there[place], entry) for place, entry in places)


def remove_container(draft: Draft, spec: Path, name: str) -> None:
    """Remove every container and init container of a name; an emptied list goes.

    Raises:
        CannotChangeError: there is no other container.
    """
    for field in CONTAINERS:
        _remove(draft, (*spec, field), name)


def _remove(draft: Draft, path: Path, name: str) -> None:
    entries = _entries(draft, path)
    field = str(path[-1])
    others = [entry for entry in entries if find(field, [entry], {"name": name}) is None]
    if len(others) == len(entries):
        return
    if field == "containers" and not others:
        raise CannotChangeError(
            f"{name!r} is the only container; a pod needs one", field=dotted(path)
        )
    draft.keep(path, others)
