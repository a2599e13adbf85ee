"""A chain with an override: its steps run after the chain's `steps` and before its `enforce`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kubetailor.registry.context import TaskContext
from kubetailor.registry.errors import OverrideError
from kubetailor.registry.overrides.allowed import plain
from kubetailor.registry.overrides.overridable import Overridable
from kubetailor.registry.run import Run
from kubetailor.registry.selectors import UNKNOWN_AT_ADMIT, View
from kubetailor.registry.step import Step
from kubetailor.workloads import JsonMap, Kind, Pod, Workload
from kubetailor.workloads.task_template import TASK_TEMPLATE

if TYPE_CHECKING:
    from kubetailor.registry.chain import Chain

__all__ = ["CompiledOverride", "OverriddenRun", "refused"]


@dataclass(frozen=True)
class CompiledOverride:
    """An override that runs.

    Attributes:
        steps: its steps; their names differ.
        digest: what stands for what they do, ``sha256:…``.
        overridable: what they may do.
    """

    steps: tuple[Step, ...]
    digest: str
    overridable: Overridable

    @functools.cached_property
    def values(self) -> int:
        """How many values its parameters have."""
        return sum(_values(plain(step.arguments)) for step in self.steps)

    @property
    def launch_only(self) -> dict[str, list[str]]:
        """Name of a step -> what its `when` reads that nothing but `launch` can know.

        Where `launch` cannot get at the tasks, such a step is for none of them.
        """
        late = {step.name: sorted(step.when.fields & UNKNOWN_AT_ADMIT) for step in self.steps}
        return {name: fields for name, fields in late.items() if fields}


def _values(value: Any) -> int:
    if isinstance(value, Mapping | list):
        return sum(map(_values, value.values() if isinstance(value, Mapping) else value))
    return 1


def refused(step: Step, reason: str) -> OverrideError:
    """A step of an override that may not be, or did nothing."""
    return OverrideError(f"step {step.name!r}: {reason}", step.mark)


class OverriddenRun(Run):
    """One run of a chain with an override: what it does must be allowed, and is noted."""

    def __init__(self, chain: Chain, workload: Workload, task: TaskContext) -> None:
        super().__init__(chain, workload, task)
        self._seen: View | None = None

    def _arguments(self, step: Step, pods: tuple[Pod, ...]) -> Mapping[str, Any]:
        """What a step that applies is given; here it is known to."""
        if step.layer == "override":
            self._check_allowed(step)
            self.result.matched = (*self.result.matched, step.name)
        return super()._arguments(step, pods)

    def _kind_for_rules(self) -> Kind:
        """The row by which a rule sees the object: a pod of a job is that job's, as at `launch`."""
        kind, task_type = self.workload.kind, self.task.peek("task_type")
        if not self.workload.is_child or not isinstance(task_type, str):
            return kind
        made: JsonMap = {"type": task_type}
        name, group = TASK_TEMPLATE.object_kind(made), TASK_TEMPLATE.object_group(made)
        return replace(kind, name=name, group=group)

    def _check_allowed(self, step: Step) -> None:
        override = self.chain.override
        assert override is not None
        if self._seen is None:  # before its first step: it cannot make what a rule asks for
            roots = self.result.roots
            given = roots[-1][1] if roots else self.result.before
            self._seen = View(self.task, Workload(given, self._kind_for_rules()))
        refusals = override.overridable.refusals(step, self._seen, self.workload)
        if refusals:
            reasons = "; ".join(map(str, refusals))
            raise refused(step, f"on {self.workload.title}: {reasons}")
