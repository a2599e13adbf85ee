"""From the form of `overridable` to rules: what they name must be there, and be of its type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.errors import ConfigError
from kubetailor.registry.model import AllowModel, OverridableModel
from kubetailor.registry.overrides.allowed import Allowed, compared, plain, shown
from kubetailor.registry.overrides.overridable import Rule
from kubetailor.registry.parameters import ParameterError, read_value
from kubetailor.registry.source import text
from kubetailor.registry.steps import StepCompiler
from kubetailor.registry.transformer import Transformer
from kubetailor.workloads import nearest

__all__ = ["compile_overridable"]

_FORGED: Final = ("labels", "annotations", "execution")
"""Fields of `when` that whoever launches may say: they are on the objects of the execution."""


def compile_overridable(
    model: OverridableModel, path: tuple[Any, ...], steps: StepCompiler
) -> Rule:
    """One entry of `overridable`.

    Args:
        model: the entry as it was read.
        path: where it is.
        steps: what compiles the steps of the file.

    Raises:
        ConfigError: an unknown transformer or parameter, a `when` or a value that cannot be, or a
            `when` that whoever launches could make hold.
    """
    transformer = steps.transformer(model.use, (*path, "use"))
    when = steps.selector(model.when, (*path, "when"))
    for place in _forged(model.when, (*path, "when")):
        raise steps.error(
            f"when: `{place[-1]}` of an execution is what whoever launches it says, so it allows "
            "nothing; ask for project, domain, workflow, task, task_type, kind or role",
            place,
        )
    allow: dict[str, Allowed] | None = None
    if model.allow is not None:
        allow = {}
        for name, allowed in model.allow.items():
            place = (*path, "allow", name)
            if name not in transformer.annotations:
                near = nearest(name, transformer.annotations, what="parameters")
                raise steps.error(f"{model.use}: no parameter {name!r}; {near}", place)
            reader = _Reader(transformer, text(name), place, steps)
            allow[text(name)] = reader.allowed(allowed)
    return Rule(text(model.use), when, allow, steps.mark((*path, "use")))


def _forged(when: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The place of each field of a `when`, at any depth, that proves nothing."""
    for key, value in when.items() if isinstance(when, dict) else ():
        place = (*path, text(key))
        if key in _FORGED:
            yield place
        elif key == "not":
            yield from _forged(value, place)
        elif key in ("any", "all"):
            for index, part in enumerate(value):
                yield from _forged(part, (*place, index))


class _Reader(NamedTuple):
    """Reads what is allowed of one parameter; by its own type, where that is a scalar."""

    transformer: Transformer
    parameter: str
    path: tuple[Any, ...]
    steps: StepCompiler

    def allowed(self, model: AllowModel | None) -> Allowed:
        if model is None:
            return Allowed()
        values = None
        if model.in_ is not None:
            values = tuple(
                self._value(value, (*self.path, "in", index))
                for index, value in enumerate(model.in_)
            )
        return Allowed(
            values,
            self._bound(model.min, (*self.path, "min")),
            self._bound(model.max, (*self.path, "max")),
            self._pattern(model.pattern),
            tuple(model.keys) if model.keys is not None else None,
        )

    def _value(self, given: Any, path: tuple[Any, ...]) -> Any:
        catalogue: Catalogue = self.steps.catalogue
        try:
            return plain(read_value(self.transformer, self.parameter, given, catalogue))
        except ParameterError as error:
            raise self._error(str(error), (*path, *error.path)) from None

    def _bound(self, given: Any, path: tuple[Any, ...]) -> Any:
        if given is None:
            return None
        if isinstance(given, dict):
            return {text(key): self._bound(item, (*path, key)) for key, item in given.items()}
        bound = self._value(given, path)
        if compared(bound, bound) is None:
            raise self._error(f"{shown(bound)} is no number, quantity or duration", path)
        return bound

    def _pattern(self, given: str | None) -> re.Pattern[str] | None:
        if given is None:
            return None
        try:
            return re.compile(given)
        except re.error as error:
            raise self._error(f"no regular expression: {error}", (*self.path, "pattern")) from None

    def _error(self, message: str, path: tuple[Any, ...]) -> ConfigError:
        return self.steps.error(message, path)
