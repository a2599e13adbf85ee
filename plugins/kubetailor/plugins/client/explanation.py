"""What there is to say of an object of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubetailor.plugins.client.owners import Lineage
from kubetailor.plugins.execution.marks import Stamp, json_of
from kubetailor.registry import Chain, Change, Override
from kubetailor.registry.step import Step
from kubetailor.workloads import JsonMap

__all__ = ["Basis", "Explanation", "StepOnIt"]


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
