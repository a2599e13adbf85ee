"""The required node affinity of a pod whose accelerator changes.

Terms are ORed, so each of those that place the pod by the old accelerator must place it by the new
one. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from kubetailor.registry import Accelerator, Catalogue, ConflictError
from kubetailor.registry.stated import Stated
from kubetailor.workloads import JsonMap, deep_copy, same

__all__ = ["Terms"]


class _Verdict(Enum):
    """What becomes of an expression."""

    KEEP = "it is not about the accelerator"
    SELECTS = "it goes, and stood for a pair of the node selector"
    REQUIRES = "it goes"


class Terms:
    """How the terms are rewritten for one pod."""

    def __init__(
        self, old: Stated, new: Accelerator, put: Accelerator, catalogue: Catalogue, where: str
    ) -> None:
        """The change of a pod's terms.

        Args:
            old: what is on the pod.
            new: the new accelerator.
            put: what of it is written into the pod.
            catalogue: the accelerators.
            where: the field, for messages.
        """
        self.old = old
        self.new = new
        self.catalogue = catalogue
        self.where = where
        self.pairs: list[JsonMap] = [
            {"key": key, "operator": "In", "values": [value]}
            for key, value in put.node_selector.items()
        ]
        self.own: list[JsonMap] = [deep_copy(dict(entry)) for entry in put.node_requirements]
        self.values: dict[str, set[str]] = {}
        for key, value in new.stated_pairs():
            self.values.setdefault(key, set()).add(value)

    def rewrite(self, terms: Sequence[JsonMap]) -> list[JsonMap]:
        """The terms that place the pod by the new accelerator.

        Raises:
            ConflictError: an expression rules the new accelerator out.
        """
        if not terms:
            return [{"matchExpressions": self.own}] if self.own else []
        return [new for term in terms for new in self._term(term, alone=len(terms) == 1)]

    def _term(self, term: JsonMap, *, alone: bool) -> list[JsonMap]:
        """The term rewritten, or nothing."""
        if not term or not (term.get("matchExpressions") or term.get("matchFields")):
            return [term]  # it matches no node
        expressions: list[JsonMap] = term.get("matchExpressions") or []
        verdicts = [self._verdict(expression) for expression in expressions]
        wanted = [*(self.pairs if _Verdict.SELECTS in verdicts else ()), *self.own]
        found = _in_places(expressions, verdicts, wanted)
        if not found and not term.get("matchFields"):
            if alone:
                return []
            found = self.pairs
            if not found:
                raise ConflictError(
                    "a term of the node affinity is about the accelerator alone, and "
                    f"{self.new.name} has nothing to put in its place",
                    field=self.where,
                )
        rest = {key: value for key, value in term.items() if key != "matchExpressions"}
        return [{**term, "matchExpressions": deep_copy(found)} if found else rest]

    def _verdict(self, expression: JsonMap) -> _Verdict:
        key, operator = expression.get("key"), expression.get("operator")
        values: list[Any] = expression.get("values") or []
        if not isinstance(key, str):
            return _Verdict.KEEP
        wanted = self.values.get(key)
        if operator == "In":
            return self._of_in(key, values, wanted)
        if self.old.requires(expression):
            return _Verdict.REQUIRES
        if operator == "DoesNotExist" and wanted and key == self.catalogue.flyte.partition_label:
            return _Verdict.REQUIRES  # FlytePropeller's word for a whole GPU
        if wanted and (
            operator == "DoesNotExist" or (operator == "NotIn" and wanted & set(values))
        ):
            raise self._conflict(expression, f"rules out {self.new.name}")
        return _Verdict.KEEP

    def _of_in(self, key: str, values: list[Any], wanted: set[str] | None) -> _Verdict:
        selects = _Verdict.SELECTS if key in self.new.node_selector else _Verdict.REQUIRES
        if key == self.catalogue.flyte.partition_label:
            return selects
        if not wanted and not self.old.places_by(key):
            return _Verdict.KEEP
        unknown = [v for v in values if not self.catalogue.marks.known(key, v)]
        if not unknown:
            return _Verdict.SELECTS if self.old.selects_by(key) else selects
        if len(unknown) < len(values) or wanted:
            named = ", ".join(map(str, unknown))
            raise self._conflict(
                {"key": key, "operator": "In", "values": values},
                f"is no accelerator's for {named}, so it cannot become that of {self.new.name}",
            )
        return _Verdict.KEEP

    def _conflict(self, expression: Mapping[str, Any], why: str) -> ConflictError:
        shown = f"{expression['key']} {expression['operator']}"
        if expression.get("values"):
            shown += f" [{', '.join(map(str, expression['values']))}]"
        return ConflictError(f"the node affinity {shown} {why}", field=self.where)


def _in_places(
    expressions: Sequence[JsonMap], verdicts: Sequence[_Verdict], wanted: Sequence[JsonMap]
) -> list[JsonMap]:
    """The expressions with the wanted ones in the places of those that go, the same key first."""
    kept = [e for e, verdict in zip(expressions, verdicts, strict=True) if verdict is _Verdict.KEEP]
    rest = [entry for entry in wanted if not any(same(entry, other) for other in kept)]
    found: list[JsonMap | None] = []
    for expression, verdict in zip(expressions, verdicts, strict=True):
        if verdict is _Verdict.KEEP:
            found.append(expression)
            continue
        match = next((entry for entry in rest if _alike(entry, expression)), None)
        if match is not None:
            rest.remove(match)
        found.append(match)
    filled = [entry if entry is not None else (rest.pop(0) if rest else None) for entry in found]
    return [*(entry for entry in filled if entry is not None), *rest]


def _alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return (a["key"], a["operator"]) == (b.get("key"), b.get("operator"))
