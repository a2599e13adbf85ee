"""Where a pod with GPUs runs: the old accelerator goes, and the new one takes its places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kubetailor.registry import Accelerator, Catalogue, Pod
from kubetailor.registry.stated import Stated
from kubetailor.transformers._gpu_terms import Terms
from kubetailor.workloads import JsonMap
from kubetailor.workloads.affinity import TERMS
from kubetailor.workloads.identity import toleration_key

__all__ = ["pairs_on", "place", "placement_of"]

_RUNTIME_CLASSES = {"nvidia.com": "nvidia"}
"""Vendor -> the RuntimeClass that its operator makes, which runs no other vendor's GPUs.

https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html
"""

_DERIVED = ("overhead",)
"""What the admission plugin `RuntimeClass` fills in from the class, and refuses where it differs.

https://kubernetes.io/docs/concepts/containers/runtime-class/
"""


_NOWHERE: Mapping[str, Any] = {
    "node_selector": {},
    "tolerations": (),
    "node_requirements": (),
    "runtime_class": None,
}


def placement_of(entry: Accelerator) -> tuple[Any, ...]:
    """What an entry says of the nodes on which its pods run."""
    return (entry.node_selector, entry.tolerations, entry.node_requirements, entry.runtime_class)


def pairs_on(pod: Pod) -> Iterator[tuple[str, Any]]:
    """The (node label, value) by which a pod is placed."""
    yield from (pod.peek("nodeSelector") or {}).items()
    for term in pod.peek(*TERMS) or ():
        for expression in (term or {}).get("matchExpressions") or ():
            if expression.get("operator") == "In":
                for value in expression.get("values") or ():
                    yield expression.get("key"), value


def place(pod: Pod, old: Stated, new: Accelerator, catalogue: Catalogue, *, put: bool) -> None:
    """Take the old accelerator's placement off a pod and put the new one's on.

    Args:
        pod: the pod.
        old: what is on it.
        new: the entry for its number of GPUs.
        catalogue: the accelerators.
        put: whether to put it on; FlytePropeller may do that, or a pod below this one.

    Raises:
        ConflictError: the pod's node affinity and the new accelerator rule each other out.
    """
    written = new if put else replace(new, **_NOWHERE)
    there = pod.peek(*TERMS) or []
    terms = Terms(old, new, written, catalogue, pod.where("affinity")).rewrite(there)
    pod.set_node_terms(terms)
    _select(pod, old, written, terms)
    _tolerate(pod, old, _tolerations(pod, written, catalogue, terms))
    _run_as(pod, old, written)


def _select(pod: Pod, old: Stated, new: Accelerator, terms: Sequence[JsonMap]) -> None:
    """Selector pairs; one that every term requires is not said again."""
    there: Mapping[str, Any] = pod.peek("nodeSelector") or {}
    gone = [key for key, value in there.items() if old.selects(key, value)]
    for key, value in new.node_selector.items():
        if gone or key in there or not _required(key, value, terms):
            pod.select_node(key, value)
    for key in gone:
        if key not in new.node_selector:
            pod.deselect_node(key)


def _required(key: str, value: str, terms: Sequence[JsonMap]) -> bool:
    wanted = {"key": key, "operator": "In", "values": [value]}
    return bool(terms) and all(
        wanted in ((term or {}).get("matchExpressions") or ()) for term in terms
    )


def _tolerations(
    pod: Pod, new: Accelerator, catalogue: Catalogue, terms: Sequence[JsonMap]
) -> list[JsonMap]:
    """The new tolerations; FlytePropeller's too, where the pod is placed in its way."""
    found = [dict(entry) for entry in new.tolerations]
    flyte = catalogue.flyte
    if catalogue.placed_by_flyte(new) and not pod.workload.is_task_template:
        pairs = flyte.pairs(new.device, new.partition)
        if all(_required(key, value, terms) for key, value in pairs.items()):
            found += flyte.tolerations(new.device, new.partition)
    return found


def _tolerate(pod: Pod, old: Stated, wanted: Sequence[JsonMap]) -> None:
    """New tolerations take the places of those removed; an equal one is kept as it is."""
    there = pod.tolerations
    inherited = pod.base.tolerations if pod.base else []
    known = {toleration_key(entry) for entry in (*there, *inherited)}
    new = {toleration_key(entry): entry for entry in wanted}
    missing = [entry for key, entry in new.items() if key not in known]
    found: list[JsonMap] = []
    for entry in there:
        if toleration_key(entry) in new or not old.tolerates(entry):
            found.append(entry)
        elif missing:
            found.append(missing.pop(0))
    pod.set_tolerations([*found, *missing])


def _run_as(pod: Pod, old: Stated, new: Accelerator) -> None:
    """The runtime class; a change of it takes off what is derived from it."""
    there = pod.peek("runtimeClassName")
    foreign = there is not None and any(
        there == own and vendor != new.vendor for vendor, own in _RUNTIME_CLASSES.items()
    )
    wanted = there
    if new.runtime_class is not None:
        wanted = new.runtime_class
    elif foreign or there in old.runtime_classes:
        wanted = None
    if wanted != there:
        pod.set_field("runtimeClassName", wanted)
        for field in _DERIVED:
            pod.set_field(field, None)
