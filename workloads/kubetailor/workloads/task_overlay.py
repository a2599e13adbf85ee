"""Pod specs that Flyte lays over a task's own: Ray's groups, Spark's driver and executor.

Scalars and maps of the upper one win, but its lists go to the end of the lower one's
(flyteplugins/go/tasks/pluginmachinery/flytek8s/pod_helper.go, `MergeOverlayPodSpecOntoBase`). So
what a step writes into both may stay in the lower one alone: KubeRay's API refuses a variable that
is there twice, and a second, weaker node selector term would loosen the first.
"""

from __future__ import annotations

from typing import Any, Final

from kubetailor.workloads.draft import Json, JsonMap, Path, dotted, same, value_at
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.identity import IDENTITY, find

__all__ = ["check_containers", "check_terms", "without_base"]

_TERMS: Final = "nodeSelectorTerms"
_AFFINITY: Final = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    _TERMS,
)
_CONTAINERS: Final = ("containers", "initContainers")


def without_base(
    after: JsonMap, before: Json, base: JsonMap, primary: str, *, over: str
) -> JsonMap:
    """What is left to lay over the lower pod spec.

    Args:
        after: the upper pod spec, as a step left it.
        before: the same before that step, whose entries are its author's and stay.
        base: the lower pod spec.
        primary: the name of the lower one's primary container.
        over: the name that the engine gives to that container, and the upper one uses.

    Returns:
        The upper pod spec without the list entries that are in the lower one too; itself, if there
        are none.

    Raises:
        CannotChangeError: a step wants an entry other than the lower one has it, and both would be
            there.
    """
    names = {over: primary}
    return _map(after, before if isinstance(before, dict) else {}, base, (), names)


def check_containers(upper: JsonMap, was: JsonMap, base: JsonMap, role: str, over: str) -> None:
    """Refuse containers of the upper pod spec that the lower one does not have: Flyte drops them.

    Args:
        upper: the upper pod spec.
        was: the same before a step, whose containers are its author's.
        base: the lower pod spec.
        role: the role of the upper one, for the message.
        over: the name that the engine gives to the lower one's primary container.

    Raises:
        CannotChangeError: a step added one.
    """
    for field in _CONTAINERS:
        lower, had, has = (_names(spec.get(field)) for spec in (base, was, upper))
        for name in has - had - lower - {over}:
            raise CannotChangeError(
                f"the container {name!r} of {role} would be dropped: Flyte lays the containers of "
                "a group over those of the task's own pod, and makes no new ones; add it to every "
                "role, or at admission alone (`when: {phase: admit}`)",
                field=dotted((field,)),
            )


def _names(entries: Json) -> set[Json]:
    found = entries if isinstance(entries, list) else []
    return {entry.get("name") for entry in found if isinstance(entry, dict)}


def check_terms(upper: JsonMap, was: JsonMap, now: JsonMap, role: str) -> None:
    """Refuse node selector terms that the lower pod spec did not have, beside the upper one's own.

    Terms are alternatives, so the new ones would free the upper one's pods of their own.

    Args:
        upper: the upper pod spec.
        was: the lower one before a step.
        now: the lower one after it.
        role: the role of the upper one, for the message.

    Raises:
        CannotChangeError: there are such terms.
    """
    own, new = value_at(upper, _AFFINITY), value_at(now, _AFFINITY)
    if not own or not new or value_at(was, _AFFINITY):
        return
    if not all(any(_says(_TERMS, term, one) for one in own) for term in new):
        raise CannotChangeError(
            f"{role} has node selector terms of its own, and Flyte makes those of the task's own "
            "pod alternatives to them, so that its pods could run where they must not; require "
            "it in the group too and leave the task's own pod without, or at admission alone "
            "(`when: {phase: admit}`)",
            field=dotted(_AFFINITY),
        )


def _map(
    after: JsonMap, before: JsonMap, base: JsonMap, at: Path, names: dict[str, str]
) -> JsonMap:
    changed: JsonMap = {}
    for key, value in after.items():
        old, lower = before.get(key), base.get(key)
        if value is old:
            continue
        kept = value
        if isinstance(value, dict) and isinstance(lower, dict):
            kept = _map(value, old if isinstance(old, dict) else {}, lower, (*at, key), names)
        elif isinstance(value, list) and isinstance(lower, list):
            each = _containers if key in _CONTAINERS else _list
            kept = each(value, old if isinstance(old, list) else [], lower, (*at, key), names)
        if kept is not value:
            changed[key] = kept
    if not changed:
        return after
    # What was made for an entry that is not needed goes with it.
    made = {key for key, value in changed.items() if not value and key not in before}
    return {k: changed.get(k, v) for k, v in after.items() if k not in made}


def _containers(
    after: list[Any], before: list[Any], base: list[Any], at: Path, names: dict[str, str]
) -> list[Any]:
    """Containers are laid over those of the same name."""
    lower = {entry.get("name"): entry for entry in base if isinstance(entry, dict)}
    old = {entry.get("name"): entry for entry in before if isinstance(entry, dict)}
    kept = []
    for index, entry in enumerate(after):
        name = entry.get("name") if isinstance(entry, dict) else None
        under = lower.get(names.get(str(name), name))
        if under is not None:
            entry = _map(entry, old.get(name) or {}, under, (*at, index), names)
        kept.append(entry)
    return after if all(map(_is, kept, after)) else kept


def _list(
    after: list[Any], before: list[Any], base: list[Any], at: Path, names: dict[str, str]
) -> list[Any]:
    field = str(at[-1])
    kept = []
    for index, entry in enumerate(after):
        if any(same(entry, old) for old in before):
            kept.append(entry)
        elif not any(_says(field, lower, entry) for lower in base):
            _check(field, entry, base, (*at, index))
            kept.append(entry)
    return after if len(kept) == len(after) else kept


def _says(field: str, lower: Json, entry: Json) -> bool:
    """Whether an entry of the lower list already says what one of the upper says."""
    if field != _TERMS or not (isinstance(lower, dict) and isinstance(entry, dict)):
        return same(lower, entry)
    # Terms are alternatives: beside a narrower one, a wider one is all that counts.
    return all(
        any(same(wanted, there) for there in lower.get(part) or [])
        for part, expressions in entry.items()
        for wanted in expressions or []
    )


def _check(field: str, entry: Json, base: list[Any], at: Path) -> None:
    if field not in IDENTITY or not isinstance(entry, dict):
        return
    index = find(field, base, entry)
    if index is not None:
        raise CannotChangeError(
            f"the task's own pod has another entry of {field} with the identity "
            f"{IDENTITY[field](entry)!r}; Flyte puts one list after the other, and both would be "
            "there",
            field=dotted(at),
        )


def _is(one: object, other: object) -> bool:
    return one is other
