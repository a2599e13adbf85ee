"""A chain: steps in the order of the config."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.context import PHASES, Phase, TaskContext
from kubetailor.registry.overrides.compiled import CompiledOverride, OverriddenRun
from kubetailor.registry.result import Result
from kubetailor.registry.run import Run
from kubetailor.registry.step import LAYERS, Layer, Step
from kubetailor.registry.validated import ValidateCall
from kubetailor.workloads import JsonMap, Kind, Workload

__all__ = ["Chain"]


@dataclass(frozen=True)
class Chain:
    """Steps over its layers, flat, so that resuming is a slice.

    Attributes:
        name: the name in the config.
        steps: in the order in which they run.
        strict: warnings of steps are errors.
        phases: the phases that are installed here.
        catalogue: the accelerators.
        validators: implementations of the hook `validate`.
        digest: what stands for what the chain does, ``sha256:…``; of an override, that is its own.
        override: the override whose steps are among them, or None.
    """

    name: str
    steps: tuple[Step, ...]
    strict: bool = False
    phases: tuple[Phase, ...] = ("serialize",)
    catalogue: Catalogue = field(default_factory=Catalogue)
    validators: tuple[ValidateCall, ...] = ()
    digest: str = ""
    override: CompiledOverride | None = None

    def run(
        self,
        obj: JsonMap,
        kind: Kind,
        task: TaskContext,
        *,
        start: int = 0,
        layers: tuple[Layer, ...] = LAYERS,
        is_child: bool = False,
    ) -> Result:
        """Run the chain over an object, which is not changed itself.

        `enforce` always runs.

        Args:
            obj: the object, JSON data.
            kind: its row in the kinds table.
            task: what is known of the task.
            start: the first step to run; those before it have run in an earlier phase.
            layers: the layers to run.
            is_child: whether the object's controller is a workload too.

        Returns:
            The object that came out, and what happened on the way.

        Raises:
            StepError: a step failed, or the result is one that Kubernetes would refuse.
            OverrideError: a step of the override may not be for this task.
        """
        runner = Run if self.override is None else OverriddenRun
        run = runner(self, Workload(obj, kind, is_child=is_child), task)
        return run.all(start, layers)

    def next_phase(self, phase: Phase) -> Phase | None:
        """The next phase that is installed here, or None."""
        later = PHASES[PHASES.index(phase) + 1 :]
        return next((other for other in later if other in self.phases), None)

    def overridden(self, override: CompiledOverride | None) -> Chain:
        """This chain with the steps of an override before those of `enforce`."""
        if override is None:
            return self
        below, above = self.steps[: self._below], self.steps[self._below :]
        return replace(self, steps=(*below, *override.steps, *above), override=override)

    def resumed_at(self, done: int, override: str | None) -> int:
        """From which step on to run, where an earlier run went over the same object.

        Args:
            done: how many steps had run then.
            override: the digest of the override that ran then, or None.
        """
        own = None if self.override is None else self.override.digest
        return done if own == override else min(done, self._below)

    @property
    def _below(self) -> int:
        """How many steps are in `defaults` and `steps`, which come first."""
        return sum(step.layer in ("defaults", "steps") for step in self.steps)
