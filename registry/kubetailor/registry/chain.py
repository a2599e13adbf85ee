"""A chain: steps in the order of the config."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.context import PHASES, Phase, TaskContext
from kubetailor.registry.result import Result
from kubetailor.registry.run import Run
from kubetailor.registry.step import LAYERS, Layer, Step
from kubetailor.workloads import JsonMap, Kind, Workload

__all__ = ["Chain", "ValidateCall"]

ValidateCall: TypeAlias = tuple[str, Callable[..., Any], tuple[str, ...]]


@dataclass(frozen=True)
class Chain:
    """Steps over the three layers, flat, so that resuming is a slice.

    Attributes:
        name: the name in the config.
        steps: in the order in which they run.
        strict: warnings of steps are errors.
        phases: the phases that are installed here.
        catalogue: the accelerators.
        validators: implementations of the hook `validate`.
        digest: what stands for what the chain does, ``sha256:…``.
    """

    name: str
    steps: tuple[Step, ...]
    strict: bool = False
    phases: tuple[Phase, ...] = ("serialize",)
    catalogue: Catalogue = field(default_factory=Catalogue)
    validators: tuple[ValidateCall, ...] = ()
    digest: str = ""

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
        """
        run = Run(self, Workload(obj, kind, is_child=is_child), task)
        return run.all(start, layers)

    def next_phase(self, phase: Phase) -> Phase | None:
        """The next phase that is installed here, or None."""
        later = PHASES[PHASES.index(phase) + 1 :]
        return next((other for other in later if other in self.phases), None)
