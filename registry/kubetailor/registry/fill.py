"""What a default may keep: additions, by map key and list identity.

Nothing that was set changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubetailor.workloads import InvalidObjectError, Json, JsonMap, parse_quantity, same
from kubetailor.workloads.filled import is_filled, is_filled_toleration
from kubetailor.workloads.identity import IDENTITY, identity
from kubetailor.workloads.quantity import is_extended_resource
from kubetailor.workloads.task_target import as_pod_task
from kubetailor.workloads.task_template import GPU_ALIAS

__all__ = ["additions"]

_ONE_STATEMENT = frozenset(
    {
        *("env", "envFrom", "matchExpressions", "tolerations", "topologySpreadConstraints"),
        *("volumeMounts", "volumes"),
    }
)
"""Lists whose entries are a union or one statement: an entry that is there stays as it is."""

_AMOUNTS = ("requests", "limits")


def additions(before: JsonMap, after: JsonMap, *, atomic: bool, admitted: bool = False) -> JsonMap:
    """The version in which only what `after` adds to `before` is kept.

    Args:
        before: the version before the step.
        after: the version after it.
        atomic: keep it whole, or not at all if it changes what was set.
        admitted: the object is on its way into the cluster, so that what the API server filled in
            counts as unset too.

    Returns:
        `after` itself if it only adds, `before` itself if nothing is kept.
    """
    base = as_pod_task(before, after)
    filled = _filled(base, after, None, admitted)
    if same(filled, after):
        return after
    return before if atomic or filled is base else filled


def _filled(old: Json, new: Json, field: str | None, admitted: bool) -> Json:
    """`old` with what only `new` has; `old` itself if that is nothing."""
    if old is new or old is None or (not old and isinstance(old, dict | list | str)):
        return new  # null and empty count as unset
    if isinstance(old, dict) and isinstance(new, dict):
        return _filled_map(old, new, field, admitted)
    if isinstance(old, list) and isinstance(new, list):
        return _filled_list(old, new, field, admitted)
    return new if admitted and is_filled(field, old) else old


def _filled_map(old: JsonMap, new: JsonMap, field: str | None, admitted: bool) -> JsonMap:
    if field in _AMOUNTS:
        old = _renamed(old, new)
    kept = {
        key: _filled(value, new[key], key, admitted) if key in new else value
        for key, value in old.items()
    }
    kept.update((key, value) for key, value in new.items() if key not in old)
    if len(kept) == len(old) and all(kept[key] is value for key, value in old.items()):
        return old
    if admitted:  # what goes with a value that was filled in goes too, as `priority` does
        for key, value in old.items():
            if key not in new and is_filled(key, value):
                del kept[key]
    return _without_contradictions(old, kept) if field == "resources" else kept


def _renamed(old: JsonMap, new: JsonMap) -> JsonMap:
    """`old` with the full names of resources that `new` writes for flytekit's short ones."""
    names = {short: full for full, short in GPU_ALIAS.items() if full in new and short not in new}
    if not any(short in old and old[short] == new[full] for short, full in names.items()):
        return old
    return {names.get(key, key): value for key, value in old.items()}


def _without_contradictions(old: JsonMap, kept: JsonMap) -> JsonMap:
    """A request or limit that was filled in goes where it cannot stand beside what was set."""
    requests, limits = (_amounts(kept.get(part)) for part in _AMOUNTS)
    for name in requests.keys() & limits.keys():
        if not _contradict(name, requests[name], limits[name]):
            continue
        part = "requests" if name not in _amounts(old.get("requests")) else "limits"
        values = kept[part]
        if isinstance(values, list):
            rest: Json = [entry for entry in values if entry.get("name") != name]
        else:
            rest = {key: value for key, value in values.items() if key != name}
        kept = {**kept, part: rest} if rest else {k: v for k, v in kept.items() if k != part}
    return kept


def _amounts(values: Json) -> JsonMap:
    """Resource -> quantity, of Kubernetes' form or of a Flyte task's."""
    if isinstance(values, list):
        return {str(entry.get("name")): entry.get("value") for entry in values}
    return values if isinstance(values, dict) else {}


def _contradict(name: str, request: Json, limit: Json) -> bool:
    try:
        asked, most = parse_quantity(request), parse_quantity(limit)
    except InvalidObjectError:
        return False
    return asked > most or (asked != most and (name == "GPU" or is_extended_resource(name)))


def _filled_list(old: list[Any], new: list[Any], field: str | None, admitted: bool) -> list[Any]:
    if field is not None and field in IDENTITY:
        kept = _by_identity(old, new, field, admitted)
    elif all(isinstance(entry, dict) and "name" in entry for entry in (*old, *new)):
        kept = _by_identity(old, new, "containers", admitted)  # by name, as those are
    elif len(old) == len(new) and all(isinstance(entry, dict) for entry in old):
        kept = [_filled(a, b, None, admitted) for a, b in zip(old, new, strict=True)]
    else:
        return old  # a command is one value
    changed = len(kept) > len(old) or any(a is not b for a, b in zip(kept, old, strict=True))
    return kept if changed else old


def _by_identity(old: list[Any], new: list[Any], field: str, admitted: bool) -> list[Any]:
    """New entries go where `new` has them: after the one before them there."""
    first = place = _Kept(None)
    known: dict[str, _Kept] = {}
    for entry in old:
        place = place.insert(entry)
        if isinstance(entry, dict):
            known.setdefault(identity(field, entry), place)
    place = first
    for entry in new:
        key = identity(field, entry) if isinstance(entry, dict) else None
        found = None if key is None else known.get(key)
        if found is None:
            place = place.insert(entry)
            if key is not None:
                known[key] = place
            continue
        if field not in _ONE_STATEMENT:
            found.entry = _filled(found.entry, entry, None, admitted)
        elif admitted and field == "tolerations" and is_filled_toleration(found.entry):
            found.entry = entry
        place = found
    return list(first.later())


class _Kept:
    """An entry of a list that grows anywhere, and the one after it."""

    __slots__ = ("after", "entry")

    def __init__(self, entry: Json, after: _Kept | None = None) -> None:
        self.entry: Json = entry
        self.after: _Kept | None = after

    def insert(self, entry: Json) -> _Kept:
        """Put an entry after this one."""
        self.after = _Kept(entry, self.after)
        return self.after

    def later(self) -> Iterator[Json]:
        """The entries after this one."""
        kept = self.after
        while kept is not None:
            yield kept.entry
            kept = kept.after
