"""From an override as it was written to one that runs, by what a config has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.digest import chain_digest
from kubetailor.registry.errors import ConfigError, OverrideError
from kubetailor.registry.model import OverrideStepModel
from kubetailor.registry.overrides.compiled import CompiledOverride, refused
from kubetailor.registry.overrides.document import Override, OverrideStep
from kubetailor.registry.overrides.overridable import Overridable
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.reading import MarkOf, read_model
from kubetailor.registry.step import Step
from kubetailor.registry.steps import StepCompiler

__all__ = ["OverrideCompiler"]

_REMEMBERED: Final = 64
"""How many annotations are remembered: that of an execution is on each of its objects."""


@dataclass(frozen=True)
class OverrideCompiler:
    """Compiles overrides by what a config has.

    Attributes:
        plugins: what is installed.
        catalogue: the accelerators.
        overridable: what may be overridden.
    """

    plugins: Plugins
    catalogue: Catalogue
    overridable: Overridable

    def compile(self, override: Override) -> CompiledOverride:
        """An override, checked.

        Raises:
            OverrideError: a step that there is not, or that may not be for any task: every one.
        """
        faults: list[ConfigError] = []
        steps: list[Step] = []
        for written, mark in override.placed():
            try:
                step = self._step(written, mark, {step.name for step in steps})
            except ConfigError as error:
                faults.append(error)
                continue
            steps.append(step)
            faults += [refused(step, str(r)) for r in self.overridable.refusals(step)]
        if faults:
            found = OverrideError("\n".join(map(str, faults)))
            found.mark = faults[0].mark
            raise found
        digest = chain_digest(steps, strict=False, catalogue=self.catalogue, plugins=self.plugins)
        return CompiledOverride(tuple(steps), digest, self.overridable)

    @functools.cached_property
    def read(self) -> Callable[[str], CompiledOverride]:
        """Reads and compiles the text of an annotation; the latest ones are remembered."""
        return functools.lru_cache(maxsize=_REMEMBERED)(
            lambda text: self.compile(Override.parse(text))
        )

    def _step(self, written: OverrideStep, mark: MarkOf, names: set[str]) -> Step:
        model = read_model(OverrideStepModel, written.data, mark)
        name = model.name or model.use
        if name in names:
            if model.name is not None:
                raise ConfigError(f"the name {name!r} is there twice", mark(("name",)))
            name = next(n for i in range(2, len(names) + 3) if (n := f"{name}-{i}") not in names)
        steps = StepCompiler(self.plugins, self.catalogue, mark)
        return steps.step(model, "override", (), name)
