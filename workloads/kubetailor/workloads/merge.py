"""Laying a patch over a value: maps by key, lists by the identity of their entries.

`null` deletes, a missing key leaves. Lists whose entries have no identity, such as `command` and
`args`, are replaced whole.
"""

from __future__ import annotations

from typing import Any

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, dotted, same
from kubetailor.workloads.errors import CannotChangeError, ConflictError, InvalidObjectError
from kubetailor.workloads.filled import is_omitted
from kubetailor.workloads.identity import IDENTITY, env_position, find, mount_path
from kubetailor.workloads.named import says_the_same

__all__ = ["merge"]

_UNIONS = frozenset({"env", "volumes"})
"""Lists whose entries are a name and one of several: replaced whole, never mixed."""

_WHOLE = frozenset({"tolerations", "volumeMounts", "matchExpressions"})
"""Lists whose entries are one statement: what has the same identity is kept or replaced."""

_ONE_OF = frozenset({"appArmorProfile", "seccompProfile"})
"""Maps that are one of several: replaced whole, never mixed."""

_CONTAINERS = frozenset({"containers", "initContainers"})


def merge(draft: Draft, path: Path, patch: JsonMap, *, replace: bool = False) -> None:
    """Lay a patch over the object at `path`.

    Args:
        draft: the object under change.
        path: where; made if it is not there.
        patch: what to lay over it.
        replace: replace a volume or mount of the same identity and other content.

    Raises:
        ConflictError: an entry of the same identity has other content, and not `replace`.
        CannotChangeError: a container that is not there, given without an image.
        InvalidObjectError: a map is given for a list, or the other way round.
    """
    for key, value in patch.items():
        place = (*path, key)
        there = draft.get(place)
        if value is None:
            draft.drop(place)
            continue
        if key in IDENTITY:
            _check_entries(value, place)
        keyed = key in _CONTAINERS or (key in IDENTITY and isinstance(there, list))
        if keyed and value:
            _merge_list(draft, place, key, value, replace)
            continue
        if isinstance(value, dict) and isinstance(there, dict) and key not in _ONE_OF:
            merge(draft, place, value, replace=replace)
            continue
        wanted = _without_nulls(value)
        if not same(there, wanted) and not (there is None and is_omitted(key, wanted)):
            draft.edit(path)[key] = wanted


def _check_entries(patch: Json, path: Path) -> None:
    """The value for a list whose entries have an identity: a list of objects."""
    if not isinstance(patch, list) or not all(isinstance(entry, dict) for entry in patch):
        raise InvalidObjectError(
            f"the patch must have a list of objects, found {patch!r}", field=dotted(path)
        )


def _merge_list(draft: Draft, path: Path, field: str, patch: list[Any], replace: bool) -> None:
    for entry in patch:
        entries = draft.get(path) or []
        index = find(field, entries, entry)
        if index is None:
            if field in _CONTAINERS and "image" not in entry:
                names = ", ".join(str(item.get("name")) for item in entries)
                raise CannotChangeError(
                    f"no container {entry.get('name')!r} to patch; the containers are "
                    f"{names or 'none'}",
                    field=dotted(path),
                )
            place = env_position(entries, entry) if field == "env" else len(entries)
            draft.edit(path, list).insert(place, _without_nulls(entry))
        elif field in _UNIONS or field in _WHOLE:
            wanted = _without_nulls(entry)
            if says_the_same(_normal(field, entries[index]), _normal(field, wanted)):
                continue
            if field != "env" and not replace:
                raise ConflictError(
                    "there is one of the same name with other content; ask for `replace`",
                    field=dotted((*path, index)),
                )
            draft.edit(path, list)[index] = wanted
        else:
            merge(draft, (*path, index), entry, replace=replace)


def _normal(field: str, entry: JsonMap) -> JsonMap:
    """An entry in the spelling of its identity."""
    if field == "tolerations":
        return {**entry, "operator": entry.get("operator") or "Equal"}
    if field == "volumeMounts":
        return {**entry, "mountPath": mount_path(str(entry.get("mountPath", "")))}
    return entry


def _without_nulls(value: Json) -> Json:
    """A copy in which what a patch deletes is not there at all."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
