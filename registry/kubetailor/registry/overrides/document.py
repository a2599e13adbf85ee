"""Overrides: a chain for one execution, as a document, as words of a command, or built in Python.

An override is untrusted input: whoever may launch may write one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kubetailor.registry.errors import ConfigError, Mark, OverrideError
from kubetailor.registry.json_text import json_text
from kubetailor.registry.source import Limits, Source

if TYPE_CHECKING:
    from typing_extensions import Self

    from kubetailor.registry.model import OverrideStepModel
    from kubetailor.registry.reading import MarkOf

__all__ = ["LIMITS", "MAX_STEPS", "OVERRIDE", "Override", "OverrideStep"]

OVERRIDE: Final = "kubetailor.dev/override"
"""The annotation of an execution in which its override travels."""

LIMITS: Final = Limits(bytes=16 * 1024, depth=12, nodes=2000, aliases=False)
"""How much an override may be: it goes with every object of the execution."""

MAX_STEPS: Final = 32
"""How many steps it may have."""

Globs: TypeAlias = str | Sequence[str | None]
GlobsByName: TypeAlias = Mapping[str, Globs]


@dataclass(frozen=True)
class OverrideStep:
    """One step of an override, as it was written.

    Attributes:
        use: the transformer.
        with_: its parameters.
        when: which tasks it is for; several of them must all hold.
        optional: it may match no task and change nothing.
        name: its name, or None.
        mark: the place of what is at a path of the step; None if it was built.
    """

    use: str
    with_: Mapping[str, Any] = field(default_factory=dict)
    when: tuple[Mapping[str, Any], ...] = ()
    optional: bool = False
    name: str | None = None
    mark: MarkOf | None = field(default=None, repr=False, compare=False)

    @property
    def data(self) -> dict[str, Any]:
        """The step as a document has it; what is not said is not in it.

        Its parameters are in the order of their names, so that the file, the annotation and what is
        built make the same objects, byte for byte.
        """
        when: Any = self.when[0] if len(self.when) == 1 else {"all": list(self.when)}
        said = {
            "use": self.use,
            "name": self.name,
            "with": _ordered(self.with_),
            "when": when if self.when else None,
            "optional": self.optional,
        }
        return {key: value for key, value in said.items() if value}


@dataclass(frozen=True)
class Override:
    """What one execution changes; each method gives a new one, of the same class.

    It reads as the document does::

        Override().step("gpu", type="nvidia-h100-80gb", count=4).on(task="*.train")

    Attributes:
        steps: its steps, in their order.
    """

    steps: tuple[OverrideStep, ...] = ()

    @classmethod
    def parse(cls, data: str | bytes, file: str = OVERRIDE) -> Self:
        """Read a document, YAML or JSON.

        Args:
            data: the text of a file, or of the annotation.
            file: its name, for messages.

        Raises:
            OverrideError: every fault of its form, with its place and what is allowed.
        """
        from kubetailor.registry.model import OverrideModel
        from kubetailor.registry.reading import read_model

        try:
            raw = data if isinstance(data, bytes) else data.encode()
        except UnicodeEncodeError as error:
            raise OverrideError(f"{file}: {error.reason}") from None
        try:
            source = Source(raw, file, LIMITS)
            model = read_model(OverrideModel, source.data, source.mark)
            if len(model.steps) > MAX_STEPS:
                message = f"{len(model.steps)} steps, at most {MAX_STEPS}"
                raise ConfigError(message, source.mark(("steps", MAX_STEPS)))
        except ConfigError as error:
            raise OverrideError.of(error) from None
        return cls(tuple(_read_step(step, i, source) for i, step in enumerate(model.steps)))

    def step(self, use: str, /, **parameters: Any) -> Self:
        """Add a step.

        Args:
            use: the transformer.
            parameters: its parameters.
        """
        return type(self)((*self.steps, OverrideStep(use, parameters)))

    def on(
        self,
        *,
        node: Globs | None = None,
        task: Globs | None = None,
        task_type: Globs | None = None,
        workflow: Globs | None = None,
        launch_plan: Globs | None = None,
        project: Globs | None = None,
        domain: Globs | None = None,
        version: Globs | None = None,
        kind: Globs | None = None,
        role: Globs | None = None,
        requests: Globs | None = None,
        labels: GlobsByName | None = None,
        annotations: GlobsByName | None = None,
        inputs: GlobsByName | None = None,
    ) -> Self:
        """Say which tasks the last step is for; all must hold, those of an earlier `on` too.

        The fields are those of `when`; what is None is not asked for. For `any`, `all`, `not` and
        null there is `when`.
        """
        given = {
            "node": node,
            "task": task,
            "task_type": task_type,
            "workflow": workflow,
            "launch_plan": launch_plan,
            "project": project,
            "domain": domain,
            "version": version,
            "kind": kind,
            "role": role,
            "requests": requests,
            "labels": labels,
            "annotations": annotations,
            "inputs": inputs,
        }
        return self.when({key: value for key, value in given.items() if value is not None})

    def when(self, condition: Mapping[str, Any]) -> Self:
        """Say the same by a `when`, as a document has it."""
        return self._last(when=(*self._current.when, condition) if condition else None)

    def optional(self) -> Self:
        """Let the last step match no task and change nothing."""
        return self._last(optional=True)

    def named(self, name: str) -> Self:
        """Give the last step a name, for messages."""
        return self._last(name=name)

    @property
    def _current(self) -> OverrideStep:
        if not self.steps:
            raise OverrideError("there is no step yet: begin with `step`")
        return self.steps[-1]

    def _last(self, **changes: Any) -> Self:
        kept = {name: value for name, value in changes.items() if value is not None}
        return type(self)((*self.steps[:-1], replace(self._current, **kept)))

    def placed(self) -> Iterator[tuple[OverrideStep, MarkOf]]:
        """Each step, and the place of what is at a path of it."""
        for number, step in enumerate(self.steps, start=1):
            yield step, step.mark or _built(number)

    def __add__(self, later: Override) -> Self:
        """The steps of both; where they set one thing, the later one wins.

        Of two steps that were given one name, the earlier is left out.
        """
        names = {step.name for step in later.steps} - {None}
        return type(self)((*(s for s in self.steps if s.name not in names), *later.steps))

    def document(self) -> dict[str, Any]:
        """The document, as plain data.

        Raises:
            OverrideError: as `annotation`.
        """
        found: dict[str, Any] = json.loads(self.annotation())
        return found

    def annotation(self) -> str:
        """The text for the annotation: JSON, the same for the same override.

        Raises:
            OverrideError: it is too large, or holds what JSON cannot say.
        """
        steps = [json_text(step.data, mark) for step, mark in self.placed()]
        found = f'{{"steps":[{",".join(steps)}]}}'
        Override.parse(found)  # what leaves the client can be read
        return found


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value, key=str)}
    return [_ordered(item) for item in value] if isinstance(value, list | tuple) else value


def _built(number: int) -> MarkOf:
    mark = Mark(f"step {number} of the override")
    return lambda _: mark


def _read_step(model: OverrideStepModel, index: int, source: Source) -> OverrideStep:
    def mark(path: Sequence[str | int]) -> Mark:
        return source.mark(("steps", index, *path))

    when = () if model.when is None else (model.when,)
    return OverrideStep(model.use, model.with_ or {}, when, model.optional, model.name, mark)
