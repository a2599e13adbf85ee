"""Why an object of a cluster is as it is: what it was made for, what ran over it, who set what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubetailor.plugins.client.explanation import Basis, Explanation, StepOnIt
from kubetailor.plugins.client.owners import Lineage
from kubetailor.plugins.execution.marks import json_of
from kubetailor.plugins.execution.object_identity import known_of
from kubetailor.plugins.execution.object_marks import find_stamp
from kubetailor.plugins.execution.override import override_of
from kubetailor.registry import Chain, Change, DeferError, OverrideError, TaskContext
from kubetailor.registry.explain import changes
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.overrides.document import OVERRIDE, Override
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft, JsonMap, Kind, KubetailorError, Workload

__all__ = ["LAST_APPLIED", "explained"]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which `kubectl apply` keeps what a person wrote."""


def explained(
    lineage: Lineage, tailor: Tailor, registered: Callable[[JsonMap, Explanation], Basis]
) -> Explanation:
    """Say why an object is as it is.

    Args:
        lineage: the object and what it was made for.
        tailor: the config.
        registered: what FlyteAdmin holds of a task, by what is known of it; raises KubetailorError.

    Raises:
        KubetailorError: no chain runs over such an object.
    """
    cut, kind = lineage.cut(tailor)
    found = Explanation(lineage, cut)
    if lineage.unread:
        found.notes.append(f"its owner cannot be read: {lineage.unread}")
    workload = Workload(cut, kind)
    found.stamp = find_stamp(workload)
    namespace = lineage.obj["metadata"].get("namespace")
    try:
        found.known = known_of(workload, namespace)
    except KubetailorError as error:
        found.notes.append(str(error))
        found.known = {"namespace": namespace}
    task = tailor.task("admit", **found.known)
    override = _override(found, tailor)
    try:
        found.chain = tailor.chain_of(task, workload, override)
    except DeferError as unknown:
        found.notes.append(
            f"`select` needs {unknown.field}, which it does not say: give it by --task"
        )
    if found.chain is not None:
        _explain(found, found.chain, kind, tailor, task, override, registered)
    return found


def _override(found: Explanation, tailor: Tailor) -> CompiledOverride | None:
    text = Draft(found.cut).get(("metadata", "annotations", OVERRIDE))
    try:
        if isinstance(text, str):
            found.override = Override.parse(text)
        return override_of(found.cut, tailor)
    except OverrideError as error:
        found.notes.append(f"this config refuses the override: {error}")
        return None


def _explain(
    found: Explanation,
    chain: Chain,
    kind: Kind,
    tailor: Tailor,
    task: TaskContext,
    override: CompiledOverride | None,
    registered: Callable[[JsonMap, Explanation], Basis],
) -> None:
    """What the chain changes of what the author wrote; or its steps, and the object as it is."""
    try:
        if found.is_flyte:
            found.basis = registered(found.known, found)
        else:
            found.basis = _applied(found, kind, tailor, override)
    except KubetailorError as error:
        found.notes.append(str(error))
    waiting = found.is_flyte and bool(found.deferred)
    if found.basis is None or waiting:
        found.steps = _steps(found, chain, kind, task)


def _applied(
    found: Explanation, kind: Kind, tailor: Tailor, override: CompiledOverride | None
) -> Basis | None:
    """What `kubectl apply` was given, through the chain; None if it was created in another way."""
    written = json_of(Draft(found.cut).get(("metadata", "annotations", LAST_APPLIED)))
    if written is None:
        return None
    tailored = tailor.tailor(written, "admit", kind=kind, override=override, **found.known)
    return Basis("what kubectl applied", tuple(tailored.result.changes()))


def _steps(found: Explanation, chain: Chain, kind: Kind, task: TaskContext) -> tuple[StepOnIt, ...]:
    workload = Workload(found.cut, kind)
    about = task.about(workload)
    still: dict[int, tuple[Change, ...]] = {}
    try:
        result = chain.run(found.cut, kind, task)
    except KubetailorError as error:
        found.notes.append(f"the chain here fails on the object as it is: {error}")
    else:
        still = {id(each[1]): tuple(changes([each])) for each in result.versions()}
    return tuple(
        StepOnIt(
            step,
            False
            if step.transformer.options.task_templates
            else step.when.of_workload(about, workload),
            still.get(id(step), ()),
        )
        for step in chain.steps
    )
