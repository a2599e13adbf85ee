"""Why an object of a cluster is as it is: what it was made for, what ran over it, who set what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kubetailor.plugins.execution.identity import FLYTE_GROUP, is_execution
from kubetailor.plugins.execution.marks import Stamp, json_of
from kubetailor.plugins.execution.object_identity import controller_of, known_of
from kubetailor.plugins.execution.object_marks import find_stamp
from kubetailor.plugins.execution.override import override_of
from kubetailor.registry import Chain, Change, DeferError, OverrideError, Result, TaskContext
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.overrides.document import OVERRIDE, Override
from kubetailor.registry.step import Step
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft, JsonMap, Kind, KubetailorError, UnknownKindError, Workload

__all__ = ["LAST_APPLIED", "Basis", "Explanation", "Lineage", "OwnerOf", "StepOnIt", "explained"]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which `kubectl apply` keeps what a person wrote."""

OwnerOf = Callable[[JsonMap, str], JsonMap]
"""The object of an owner reference in a namespace; raises KubetailorError."""


@dataclass(frozen=True)
class Lineage:
    """An object, and what it was made for.

    Attributes:
        obj: the object.
        owners: its controller, the controller of that, and so on, as far as they can be read.
        last: the reference to the next one, which is not read: a FlyteWorkflow, say; or None.
        unread: why it could not be, or None.
    """

    obj: JsonMap
    owners: tuple[JsonMap, ...] = ()
    last: JsonMap | None = None
    unread: str | None = None

    @classmethod
    def climb(cls, obj: JsonMap, owner_of: OwnerOf) -> Lineage:
        """Follow the controllers of an object.

        Args:
            obj: the object.
            owner_of: reads the next one.
        """
        namespace = obj["metadata"].get("namespace", "")
        found = [obj]
        while (reference := controller_of(found[-1])) is not None:
            # FlytePropeller writes the kind in lower case; what it says is on its objects anyway.
            if str(reference.get("apiVersion")).rpartition("/")[0] == FLYTE_GROUP:
                return cls(obj, tuple(found[1:]), reference)
            try:
                found.append(owner_of(reference, namespace))
            except KubetailorError as error:
                return cls(obj, tuple(found[1:]), reference, str(error))
        return cls(obj, tuple(found[1:]))


@dataclass(frozen=True)
class Basis:
    """What the changes are changes of.

    Attributes:
        text: for people.
        changes: every changed field, in the order of the steps.
    """

    text: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class StepOnIt:
    """A step of the chain, and the object as it is.

    Attributes:
        step: the step.
        applies: whether its `when` holds; None if that cannot be known.
        changes: what it would still change.
    """

    step: Step
    applies: bool | None
    changes: tuple[Change, ...] = ()

    def as_json(self) -> JsonMap:
        """All of it as JSON data."""
        return {
            "step": self.step.name,
            "layer": self.step.layer,
            "transformer": self.step.transformer.name,
            "plugin": self.step.transformer.plugin,
            "place": str(self.step.mark or ""),
            "applies": self.applies,
            "changes": [change.as_json() for change in self.changes],
        }


@dataclass
class Explanation:
    """What there is to say of an object.

    Attributes:
        lineage: the object and its owners.
        cut: the one of them that the chain ran over: the object, or what it was made for.
        known: what is known of the task behind it.
        stamp: what the cluster says that ran, or None.
        chain: the chain of the config here, with the override; None if it selects none.
        override: the override of its execution, or None.
        basis: what the author wrote, and what the chain changes of it; None if that is nowhere.
        steps: the steps of the chain, where there is no basis or some wait for `admit`.
        notes: what there is to say besides.
    """

    lineage: Lineage
    cut: JsonMap
    known: JsonMap = field(default_factory=dict)
    stamp: Stamp | None = None
    chain: Chain | None = None
    override: Override | None = None
    basis: Basis | None = None
    steps: tuple[StepOnIt, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def deferred(self) -> tuple[str, ...]:
        """The steps that were left to a later phase when the stamp was written."""
        said = json_of(self.stamp.text) if self.stamp else None
        found = (said or {}).get("deferred")
        return tuple(map(str, found)) if isinstance(found, list) else ()

    @property
    def same_digest(self) -> bool | None:
        """Whether the chain here is the one that ran; None if either is not known."""
        if self.stamp is None or self.chain is None:
            return None
        return self.stamp.digest == self.chain.digest

    @property
    def is_flyte(self) -> bool:
        """Whether a task of Flyte's is behind it."""
        return self.known.get("execution") is not None

    def as_json(self) -> JsonMap:
        """All of it as JSON data."""
        stamp, chain = self.stamp, self.chain
        task = {key: value for key, value in self.known.items() if value is not None}
        return {
            "object": _reference(self.lineage.obj),
            "owners": [_reference(owner) for owner in self.lineage.owners]
            + ([_of_owner(self.lineage.last)] if self.lineage.last else []),
            "cut": _reference(self.cut),
            "task": task if self.is_flyte else None,
            "applied": stamp
            and {
                "chain": stamp.chain,
                "digest": stamp.digest,
                "override": stamp.override,
                "task": stamp.task,
                "version": stamp.version,
                "done": stamp.done,
                "deferred": list(self.deferred),
            },
            "chain": chain and {"name": chain.name, "digest": chain.digest},
            "same_digest": self.same_digest,
            "override": self.override and self.override.document(),
            "basis": self.basis and self.basis.text,
            "changes": [change.as_json() for change in (self.basis.changes if self.basis else ())],
            "steps": [step.as_json() for step in self.steps],
            "notes": self.notes,
        }


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
    cut, kind = _cut(lineage, tailor)
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


def _cut(lineage: Lineage, tailor: Tailor) -> tuple[JsonMap, Kind]:
    """The topmost object with a stamp, else the topmost of a known kind."""
    known = []
    for obj in (lineage.obj, *lineage.owners):
        try:
            kind = tailor.kind_of(obj)
        except UnknownKindError:
            if obj is lineage.obj:
                raise
            kind = None
        if kind is not None:
            known.append((obj, kind))
    if not known:
        title = f"{lineage.obj['kind']} {lineage.obj['metadata']['name']}"
        if is_execution(lineage.obj):
            raise KubetailorError(
                f"{title} is an execution: `kubetailor execution show PROJECT/DOMAIN/ID` shows it"
            )
        raise KubetailorError(f"{title}: no chain runs over this kind (see `kubetailor kinds`)")
    stamped = [pair for pair in known if find_stamp(Workload(*pair)) is not None]
    return (stamped or known)[-1]


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
        for before, step, after in result.versions():
            alone = Result(before, after, roots=[(step, after)])
            still[id(step)] = tuple(alone.changes())
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


def _reference(obj: JsonMap) -> JsonMap:
    metadata = obj["metadata"]
    found = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
    }
    return {key: value for key, value in found.items() if value is not None}


def _of_owner(reference: JsonMap) -> JsonMap:
    keys: tuple[str, ...] = ("apiVersion", "kind", "name")
    found: dict[str, Any] = {key: reference.get(key) for key in keys}
    return found
