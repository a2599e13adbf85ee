"""Required node affinity, whose terms are ORed and whose expressions are ANDed.

https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kubetailor.workloads.draft import Draft, JsonMap, Path, as_list, same
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.identity import find

__all__ = [
    "TERMS",
    "add_requirement",
    "check_values",
    "put_terms",
    "remove_requirement",
    "requirements",
    "terms_of",
]

TERMS: Path = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)
"""Where the terms are, from the pod spec."""


_VALUES: Mapping[str, tuple[int, float, str]] = {
    "In": (1, math.inf, "at least one value"),
    "NotIn": (1, math.inf, "at least one value"),
    "Exists": (0, 0, "no values"),
    "DoesNotExist": (0, 0, "no values"),
    "Gt": (1, 1, "one value"),
    "Lt": (1, 1, "one value"),
}
"""Operator -> how many values it takes."""


def check_values(operator: Any, values: Any, operators: Collection[str] = _VALUES) -> None:
    """An expression has as many values as its operator takes.

    Raises:
        InvalidObjectError: it has not, or there is no such operator.
    """
    if operator not in operators:
        raise InvalidObjectError(f"operator {operator!r}: must be one of {', '.join(operators)}")
    least, most, takes = _VALUES[operator]
    if not least <= len(values or ()) <= most:
        raise InvalidObjectError(f"the operator {operator} takes {takes}, found {values or []!r}")


def terms_of(draft: Draft, spec: Path) -> list[Any]:
    """The terms, shared and not to be changed."""
    return as_list(draft.get(spec + TERMS))


def requirements(draft: Draft, spec: Path) -> Iterator[tuple[Path, JsonMap]]:
    """Every expression of every term, with its path from the root."""
    for i, term in enumerate(terms_of(draft, spec)):
        for j, entry in enumerate((term or {}).get("matchExpressions") or []):
            yield (*spec, *TERMS, i, "matchExpressions", j), entry


def add_requirement(draft: Draft, spec: Path, entry: JsonMap) -> None:
    """AND an expression into every term; of the same key and operator it replaces the values."""
    terms = terms_of(draft, spec)
    if not terms:
        draft.edit(spec + TERMS, list).append({"matchExpressions": [entry]})
        return
    for index, term in enumerate(terms):
        expressions = (term or {}).get("matchExpressions") or []
        place = find("matchExpressions", expressions, entry)
        if place is not None and same(expressions[place], entry):
            continue
        path = (*spec, *TERMS, index, "matchExpressions")
        if place is None:
            draft.edit(path, list).append(dict(entry))
        else:
            draft.edit(path, list)[place] = dict(entry)


def remove_requirement(draft: Draft, spec: Path, key: str, operator: str | None = None) -> None:
    """Remove the expressions on a key from every term.

    A term that is emptied is removed too: an empty term matches no node. Whatever else is
    emptied on the way up goes with it.
    """

    def goes(entry: Any) -> bool:
        return (
            isinstance(entry, dict)
            and entry.get("key") == key
            and operator in (None, entry.get("operator"))
        )

    kept_terms: list[Any] = []
    changed = False
    for term in terms_of(draft, spec):
        expressions = (term or {}).get("matchExpressions") or []
        kept = [entry for entry in expressions if not goes(entry)]
        if len(kept) == len(expressions):
            kept_terms.append(term)
            continue
        changed = True
        rest = {name: value for name, value in term.items() if name != "matchExpressions"}
        if kept:
            rest = {**term, "matchExpressions": kept}
        if rest:
            kept_terms.append(rest)
    if changed:
        put_terms(draft, spec, kept_terms)


def put_terms(draft: Draft, spec: Path, terms: list[Any]) -> None:
    """Let these be the terms; without any, whatever is emptied on the way up goes too."""
    if terms:
        draft.put(spec + TERMS, terms)
        return
    draft.drop(spec + TERMS)
    for depth in range(len(TERMS) - 1, 0, -1):
        path = spec + TERMS[:depth]
        if draft.get(path) == {}:
            draft.drop(path)
