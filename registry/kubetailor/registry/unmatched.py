"""Conditions that no workload of the known kinds meets: a name that is likely misspelt."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from kubetailor.workloads import Kind, KindTable, nearest
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["unmatched"]

_At: TypeAlias = tuple[str | int, ...]


def unmatched(when: Any, kinds: KindTable) -> Iterator[tuple[str, _At]]:
    """(what is wrong, where) of each `kind`, `api_group` and `role` that no known kind has.

    Args:
        when: a `when` that can be compiled, as it was written.
        kinds: the kinds that are known.
    """
    written = list(_patterns(when, ()))
    if not written:
        return  # most conditions name none, and are compiled at each load
    # Conditions see the objects that become of task templates.
    rows = [kind for kind in kinds.values() if kind is not TASK_TEMPLATE]
    known = {"kind": {row.name for row in rows}, "api_group": {row.group for row in rows}}
    asks_role = any(field == "role" for field, _, _ in written)
    with_roles = tuple(kinds.values()) if asks_role else ()
    roles = dict.fromkeys(role for kind in with_roles for role in kind.roles)
    named = [role for role in roles if not role.startswith("{")]
    free = [row for row in with_roles if row is not TASK_TEMPLATE and _names_roles_freely(row)]
    about_free = any(
        field in known and fnmatch.fnmatchcase(row.name if field == "kind" else row.group, pattern)
        for field, pattern, _ in written
        for row in free
    )
    for field, pattern, path in written:
        if field == "role":
            if not about_free and not any(_may_be(role, pattern) for role in named):
                near = nearest(
                    pattern,
                    {role.partition(":")[0] for role in named},
                    what="roles",
                    listing=_LISTING,
                )
                own = ", ".join(sorted(_told_apart(row, rows) for row in free))
                yield (
                    f"no kind has the role {pattern!r} (where the objects name their own, say "
                    f"the `kind` too: {own}); {near}",
                    path,
                )
        elif not any(fnmatch.fnmatchcase(name, pattern) for name in known[field]):
            what, listing = ("API group", None) if field == "api_group" else ("kind", _LISTING)
            near = nearest(pattern, known[field] - {""}, what=f"{what}s", listing=listing)
            yield f"no {what} {pattern!r} is known; {near}", path


_LISTING = "kubetailor kinds"


def _told_apart(kind: Kind, rows: list[Kind]) -> str:
    """A kind's name, with its group where another has the name too."""
    if sum(row.name == kind.name for row in rows) > 1:
        return f"{kind.name} of {kind.group}"
    return kind.name


def _names_roles_freely(kind: Kind) -> bool:
    """Whether any name may be a role of a kind."""
    return any(role.startswith("{") for role in kind.roles)


def _may_be(role: str, pattern: str) -> bool:
    """Whether a pattern may match a role, such as ``worker:{groupName}``."""
    fixed, placeholder, _ = role.partition("{")
    if fnmatch.fnmatchcase(role.partition(":")[0], pattern):
        return True
    if not placeholder:
        return fnmatch.fnmatchcase(role, pattern)
    start = next((at for at, char in enumerate(pattern) if char in "*?["), None)
    return pattern.startswith(fixed) or (start is not None and fixed.startswith(pattern[:start]))


def _patterns(when: Any, path: _At) -> Iterator[tuple[str, str, _At]]:
    """(field, pattern, where) of all conditions that name a kind, a group or a role."""
    for key, value in when.items() if isinstance(when, Mapping) else ():
        place = (*path, key)
        if key == "not":
            yield from _patterns(value, place)
        elif key in ("any", "all"):
            for index, part in enumerate(value):
                yield from _patterns(part, (*place, index))
        elif key in ("kind", "api_group", "role"):
            entries = (
                [(item, (*place, index)) for index, item in enumerate(value)]
                if isinstance(value, list)
                else [(value, place)]
            )
            yield from ((key, item, where) for item, where in entries if isinstance(item, str))
