"""From the form of a step to one that runs: a config's, or an override's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.errors import ConfigError
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.registry.model import OverrideStepModel, StepModel
from kubetailor.registry.parameters import ParameterError, read_parameters
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.reading import MarkOf
from kubetailor.registry.selectors import (
    UNKNOWN_AT_ADMIT,
    Selector,
    SelectorError,
    compile_selector,
)
from kubetailor.registry.source import text
from kubetailor.registry.step import Layer, Step
from kubetailor.registry.transformer import Transformer
from kubetailor.workloads import InvalidObjectError, check_json

__all__ = ["StepCompiler"]


@dataclass(frozen=True)
class StepCompiler:
    """Compiles the steps of one file.

    Attributes:
        plugins: what is installed.
        catalogue: the accelerators.
        mark: the place of what is at a path of the file.
    """

    plugins: Plugins
    catalogue: Catalogue
    mark: MarkOf

    def error(self, message: str, path: Sequence[str | int]) -> ConfigError:
        """A fault of what is at a path."""
        return ConfigError(message, self.mark(path))

    def step(
        self,
        model: StepModel | OverrideStepModel,
        layer: Layer,
        path: tuple[str | int, ...],
        name: str | None = None,
    ) -> Step:
        """A step.

        Args:
            model: the step as it was read.
            layer: the list that it is in.
            path: where it is.
            name: its name, if not what it says.

        Raises:
            ConfigError: an unknown transformer, or parameters or a `when` that cannot be.
        """
        assert model.use is not None
        transformer = self.transformer(model.use, (*path, "use"))
        try:
            arguments = read_parameters(transformer, model.with_, self.catalogue)
        except ParameterError as error:
            raise self.error(str(error), (*path, "with", *error.path)) from None
        if transformer.plugin == PROJECT:  # what a team's leaves on an object is checked then
            try:
                check_json(None, text(arguments))
            except InvalidObjectError as error:
                raise self.error(f"{transformer.name}: {error}", (*path, "with")) from None
        when = self.selector(model.when, (*path, "when"))
        if layer == "enforce" and (late := when.fields & UNKNOWN_AT_ADMIT):
            raise self.error(
                f"`when` of a step of enforce reads {', '.join(sorted(late))}, which the last "
                "phase cannot know: the step might never run",
                (*path, "when"),
            )
        return Step(
            name or model.name or model.use,
            layer,
            transformer,
            arguments,
            when,
            model.optional,
            self.mark((*path, "use")),
            model.with_ or {},
        )

    def transformer(self, name: str, path: tuple[str | int, ...]) -> Transformer:
        """The transformer of a name.

        Raises:
            ConfigError: there is none.
        """
        found = self.plugins.transformers.get(name)
        if found is None:
            raise self.error(self.plugins.no_transformer(name), path)
        return found

    def selector(self, when: Any, path: tuple[str | int, ...]) -> Selector:
        """A `when`.

        Raises:
            ConfigError: it cannot be compiled.
        """
        try:
            return compile_selector(when)
        except SelectorError as error:
            raise self.error(f"when: {error}", (*path, *error.path)) from None
