"""Where pods are scheduled: tolerations, node affinity, topology spread, scheduling gates.

https://kubernetes.io/docs/concepts/scheduling-eviction/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetailor.workloads.affinity import check_values
from kubetailor.workloads.draft import Json, JsonMap, Path, as_list, as_map
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.names import check_key, check_label_value
from kubetailor.workloads.validation.parts import Checks, differs, fault, new

__all__ = ["CHECKS", "check_gated"]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def _tolerations(before: Json, entries: Json, path: Path) -> None:
    # https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    for index, entry in new(before, entries):
        for text in _toleration_faults(entry):
            raise fault(text, *path, index)


def _toleration_faults(entry: JsonMap) -> Iterator[str]:
    operator, key, value = entry.get("operator") or "Equal", entry.get("key"), entry.get("value")
    if operator not in ("Equal", "Exists", "Lt", "Gt"):
        yield f"operator {operator!r}: must be Equal or Exists"
    if operator == "Exists" and value:
        yield "operator Exists takes no value"
    if not key and operator != "Exists":
        yield "without a key the operator must be Exists"
    if entry.get("effect") not in (None, "", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        yield f"effect {entry['effect']!r}: must be NoSchedule, PreferNoSchedule or NoExecute"
    if entry.get("tolerationSeconds") is not None and entry.get("effect") != "NoExecute":
        yield "tolerationSeconds goes with the effect NoExecute"
    try:
        if key:
            check_key(key)
        if value and operator == "Equal":
            check_label_value(str(key), value)
    except InvalidObjectError as error:
        yield str(error)


def _node_affinity(before: Json, affinity: Json, path: Path) -> None:
    old = as_map(before)
    required = as_map(as_map(affinity).get(_REQUIRED))
    terms = as_list(required.get("nodeSelectorTerms"))
    if required and not terms:
        raise fault("node affinity without a term: write one, or leave it off", *path, _REQUIRED)
    were = as_list(as_map(old.get(_REQUIRED)).get("nodeSelectorTerms"))
    place = (*path, _REQUIRED, "nodeSelectorTerms")
    for index, term in new(were, terms):
        _term(were[index] if index < len(were) else None, term, (*place, index))
    for index, entry in new(old.get(_PREFERRED), as_map(affinity).get(_PREFERRED)):
        weight = entry.get("weight")
        if not isinstance(weight, int | float) or not 1 <= weight <= 100:
            raise fault(f"weight {weight}: must be from 1 to 100", *path, _PREFERRED, index)
        _term(None, as_map(entry.get("preference")), (*path, _PREFERRED, index, "preference"))


def _term(before: Json, term: JsonMap, path: Path) -> None:
    name = "matchExpressions"
    for index, entry in new(as_map(before).get(name), term.get(name)):
        try:
            check_key(str(entry.get("key")))
            check_values(entry.get("operator"), entry.get("values"))
            for value in as_list(entry.get("values")):
                check_label_value(str(entry.get("key")), value)
        except InvalidObjectError as error:
            raise fault(error, *path, name, index) from None


def _label_selector(before: Json, selector: Json, path: Path) -> None:
    name = "matchExpressions"
    for index, entry in new(as_map(before).get(name), as_map(selector).get(name)):
        try:
            check_key(str(entry.get("key")))
            check_values(entry.get("operator"), entry.get("values"), _LABEL_OPERATORS)
        except InvalidObjectError as error:
            raise fault(error, *path, name, index) from None


def _spread(before: Json, entries: Json, path: Path) -> None:
    # https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
    maps = map(as_map, as_list(entries))
    known = [(entry.get("topologyKey"), entry.get("whenUnsatisfiable")) for entry in maps]
    for index, entry in new(before, entries):
        for text in _spread_faults(entry):
            raise fault(text, *path, index)
        if known.count(known[index]) > 1:
            raise fault(f"{' '.join(map(str, known[index]))} is there twice", *path, index)


def _spread_faults(entry: JsonMap) -> Iterator[str]:
    for field in ("maxSkew", "minDomains"):
        number = entry.get(field, 1)
        if not isinstance(number, int | float) or number < 1:
            yield f"{field} {number}: must be a number of at least 1"
    if not entry.get("topologyKey"):
        yield "a topology spread constraint needs a topologyKey"
    if entry.get("whenUnsatisfiable") not in _UNSATISFIABLE:
        found = entry.get("whenUnsatisfiable")
        yield f"whenUnsatisfiable {found!r}: must be {' or '.join(_UNSATISFIABLE)}"
    elif entry.get("minDomains") is not None and entry["whenUnsatisfiable"] != _UNSATISFIABLE[0]:
        yield f"minDomains goes with whenUnsatisfiable: {_UNSATISFIABLE[0]}"
    if entry.get("matchLabelKeys") and entry.get("labelSelector") is None:
        yield "matchLabelKeys goes with a labelSelector"


def _gates(before: Json, entries: Json, path: Path) -> None:
    names = [as_map(entry).get("name") for entry in as_list(entries)]
    for index, entry in new(before, entries):
        try:
            check_key(str(entry.get("name")))
        except InvalidObjectError as error:
            raise fault(error, *path, index) from None
        if names.count(names[index]) > 1:
            raise fault(f"scheduling gate {names[index]!r} is there twice", *path, index)


def check_gated(before: JsonMap, spec: JsonMap, path: Path) -> None:
    """A pod with scheduling gates is on no node yet.

    Raises:
        InvalidObjectError: it is.
    """
    if not (spec.get("schedulingGates") and spec.get("nodeName")):
        return
    if differs(before, spec, "nodeName", "schedulingGates"):
        raise fault("a pod with schedulingGates has no nodeName", *path, "schedulingGates")


CHECKS: Final[Checks] = {
    "labelSelector": _label_selector,
    "nodeAffinity": _node_affinity,
    "schedulingGates": _gates,
    "tolerations": _tolerations,
    "topologySpreadConstraints": _spread,
}
