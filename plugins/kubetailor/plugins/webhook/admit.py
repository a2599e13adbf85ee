"""The phase `admit`: one Kubernetes object on its way into the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubetailor.plugins.execution.marks import Stamp
from kubetailor.plugins.execution.object_identity import known_of
from kubetailor.plugins.execution.object_marks import (
    execution_keys,
    find_stamp,
    kept_as_they_were,
    stamped,
)
from kubetailor.plugins.execution.override import override_of
from kubetailor.plugins.flyte.stamp import stamp_of
from kubetailor.plugins.webhook.children import ChildView
from kubetailor.plugins.webhook.decision import Decision, Outcome, explained
from kubetailor.plugins.webhook.reviews import (
    AdmissionRequest,
    AdmissionResponse,
    allowed,
    denied,
)
from kubetailor.registry import Chain, Change, Result, TaskContext
from kubetailor.registry.step import LAYERS, Layer
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, Kind, Workload, json_patch
from kubetailor.workloads.filled import rederived

__all__ = ["Admission"]

_POD: Final = ("", "Pod")


class Admission:
    """One object on its way in, and what is decided of it."""

    def __init__(self, request: AdmissionRequest, obj: JsonMap, kind: Kind, tailor: Tailor) -> None:
        self.request: AdmissionRequest = request
        self.obj: JsonMap = obj
        self.kind: Kind = kind
        self.tailor: Tailor = tailor
        self.workload: Workload = Workload(obj, kind)
        self.known: JsonMap = {}
        self.task: TaskContext = TaskContext("admit")
        self.warnings: list[str] = []
        self.results: list[Result] = []
        self.view: ChildView | None = None

    def decision(self) -> Decision:
        """Select the chain, run what is left of it, and say what came out."""
        chain: Chain | None = None
        try:
            self.known = known_of(self.workload, self.request.get("namespace"))
            self.task = self.tailor.task("admit", **self.known)
            stamp = self._stamp()
            is_child = self.tailor.config.plugins.kinds.is_child(self.obj.get("metadata"))
            # What a parent's chain made is left alone, whatever may be overridden by now.
            verified = is_child and stamp is not None
            override = None if verified else override_of(self.obj, self.tailor)
            chain = self.tailor.chain_of(self.task, self.workload, override)
            if chain is None:
                return self._said(allowed(self.request["uid"]), "ignored", "no chain is selected")
            return self._decided(chain, stamp, is_child=is_child)
        except Exception as error:
            denial = explained(error, self.obj, self.kind)
            if denial is None:
                raise
            return self._deny(*denial, chain)

    def _decided(self, chain: Chain, stamp: Stamp | None, *, is_child: bool) -> Decision:
        if is_child:
            self.view = ChildView(self.obj, self.kind, chain)
            if stamp is not None:
                return self._verified(chain, self.view)
            after = self._run(self.view.chain, self.view.obj, self.view.kind)
            after, text = self.view.written(after), None
        else:
            start, layers = self._left_to_do(chain, stamp)
            after = self._run(chain, self.obj, self.kind, start=start, layers=layers)
            text = stamp.text if stamp else None
        if (self.kind.group, self.kind.name) == _POD:
            after = rederived(self.obj, after)
        steps = self._steps()
        if steps:
            text = self._new_stamp(chain)
        if text is not None:
            after = stamped(after, self.kind, text)
        return self._patched(chain, after, steps)

    # what is left to do ------------------------------------------------------------------------

    def _stamp(self) -> Stamp | None:
        stamp = find_stamp(self.workload)
        if stamp is not None and not stamp.is_for(self.known):
            self.warnings.append(
                f"the stamp of task {stamp.task} {stamp.version or ''} is not this task's, and is "
                "not read"
            )
            return None
        return stamp

    def _left_to_do(self, chain: Chain, stamp: Stamp | None) -> tuple[int, tuple[Layer, ...]]:
        """From which step on to run, and which layers; `enforce` always runs."""
        if stamp is None:
            return 0, LAYERS
        if stamp.digest == chain.digest:
            return chain.resumed_at(stamp.done, stamp.override), LAYERS
        self.warnings.append(
            f"chain {stamp.chain!r} ran on it before, as {_short(stamp.digest)}; now it is "
            f"{chain.name!r}, {_short(chain.digest)}: what only the older one sets is still there"
        )
        return 0, ("steps", "override", "enforce")

    def _run(
        self,
        chain: Chain,
        obj: JsonMap,
        kind: Kind,
        *,
        start: int = 0,
        layers: tuple[Layer, ...] = LAYERS,
    ) -> JsonMap:
        """Run a chain; what the execution was given stays, unless `enforce` changes it."""
        is_child = kind is not self.kind
        keys = execution_keys(self.workload)
        if not keys:
            result = chain.run(obj, kind, self.task, start=start, layers=layers, is_child=is_child)
            return self._noted(result)
        lower = replace(chain, steps=tuple(s for s in chain.steps if s.layer != "enforce"))
        upper = replace(chain, steps=tuple(s for s in chain.steps if s.layer == "enforce"))
        after = self._noted(
            lower.run(obj, kind, self.task, start=start, layers=layers, is_child=is_child)
        )
        after, back = kept_as_they_were(obj, after, kind, keys)
        if back:
            self.warnings.append(f"{', '.join(back)}: the execution's own value stays")
        return self._noted(upper.run(after, kind, self.task, is_child=is_child))

    def _noted(self, result: Result) -> JsonMap:
        self.results.append(result)
        self.warnings += map(str, result.warnings)
        return result.after

    def _verified(self, chain: Chain, view: ChildView) -> Decision:
        """A child that its parent's chain made: `enforce` must find nothing to change."""
        result = view.chain.run(view.obj, view.kind, self.task, layers=("enforce",), is_child=True)
        self._noted(result)
        if found := view.kept(result):
            return self._deny(422, _missing(found, self.workload), chain)
        return self._patched(chain, self.obj, ())

    # what is said ------------------------------------------------------------------------------

    def _new_stamp(self, chain: Chain) -> str:
        done = Result(self.obj, self.obj, done=len(chain.steps))
        task, version = self.known.get("task"), self.known.get("version")
        return stamp_of(done, chain, task, version)

    def _patched(self, chain: Chain, after: JsonMap, steps: tuple[str, ...]) -> Decision:
        patch = json_patch(self.obj, after)
        response = allowed(
            self.request["uid"],
            patch=patch,
            warnings=self.warnings,
            audit={
                "chain": chain.name,
                "digest": chain.digest,
                "override": _override(chain),
                "steps": ",".join(steps),
            },
        )
        outcome: Outcome = "patched" if patch else "unchanged"
        return replace(self._said(response, outcome, "", chain, steps), operations=len(patch))

    def _steps(self) -> tuple[str, ...]:
        """The steps that changed something that is kept, each once."""
        found: dict[str, None] = {}
        for result in self.results:
            if self.view is None:
                found.update((step.name, None) for _, step, _ in result.versions())
            else:
                found.update(dict.fromkeys(self.view.steps(result)))
        return tuple(found)

    def _deny(self, code: int, message: str, chain: Chain | None) -> Decision:
        if chain is not None:
            message = f"kubetailor, chain {chain.name!r}: {message}"
        response = denied(self.request["uid"], code, message, warnings=self.warnings)
        return self._said(response, "denied", message, chain)

    def _said(
        self,
        response: AdmissionResponse,
        outcome: Outcome,
        reason: str,
        chain: Chain | None = None,
        steps: tuple[str, ...] = (),
    ) -> Decision:
        return Decision(
            response,
            outcome,
            reason,
            chain.name if chain else "",
            chain.digest if chain else "",
            _override(chain),
            steps,
            warnings=tuple(self.warnings),
            undecided=sum(result.undecided for result in self.results),
            inapplicable=sum(result.inapplicable for result in self.results),
            known=self.known,
        )


def _override(chain: Chain | None) -> str:
    return chain.override.digest if chain and chain.override else ""


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12] or "unknown"


def _missing(changes: list[Change], workload: Workload) -> str:
    first = changes[0]
    place = f"{first.place}: " if first.place else ""
    more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
    return (
        f"{place}step {first.step!r} (plugin {first.plugin}) on {workload.title}: its parent was "
        f"made without what `enforce` asks for: {first.field} would become "
        f"{_value(first)}{more}; create the parent again"
    )


def _value(change: Change) -> str:
    return "absent" if change.op == "remove" else repr(change.new)[:200]
