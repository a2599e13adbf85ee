"""What runs transformers and chains over objects, in tests."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubetailor.registry.chain import Chain
from kubetailor.registry.config import Config
from kubetailor.registry.context import Phase, TaskContext
from kubetailor.registry.load import load_config
from kubetailor.registry.overrides.document import Override
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.result import Result
from kubetailor.registry.selectors import compile_selector
from kubetailor.registry.step import Step
from kubetailor.registry.tailor import Tailor
from kubetailor.registry.testing.outcome import Outcome
from kubetailor.registry.testing.promises import Run, proven
from kubetailor.registry.transformer import Options, Transformer, options_of
from kubetailor.workloads import JsonMap

__all__ = ["ChainBench", "TailorBench"]


@dataclass(frozen=True)
class ChainBench:
    """A config under test.

    Attributes:
        config: the config.
        name: the chain that is forced, or None where `select` picks.
    """

    config: Config
    name: str | None = None

    def run(
        self,
        obj: JsonMap,
        /,
        phase: Phase = "admit",
        *,
        override: str | None = None,
        **task: Any,
    ) -> Outcome:
        """Run the chain over an object.

        Args:
            obj: the object.
            phase: the phase.
            override: the document of an execution's override.
            task: what is known of the task, as fields of `TaskContext`.
        """
        return Outcome(self._run(override, phase, task)(obj))

    def prove(
        self,
        obj: JsonMap,
        /,
        phase: Phase = "admit",
        *,
        override: str | None = None,
        **task: Any,
    ) -> Outcome:
        """As `run`, and fail unless the promises hold that `TailorBench.prove` lists."""
        return proven(self._run(override, phase, task), obj)

    def _run(self, override: str | None, phase: Phase, task: Mapping[str, Any]) -> Run:
        compiled = None
        if override is not None:
            compiled = self.config.overrides.compile(Override.parse(override))
        tailor = Tailor(self.config, self.name)
        return lambda obj: tailor.tailor(obj, phase, override=compiled, **task).result


class TailorBench:
    """What the fixture `tailor` gives."""

    def __init__(self, directory: Path) -> None:
        """A bench.

        Args:
            directory: where texts of configs are written.
        """
        self._directory = directory
        self._count = 0

    @functools.cached_property
    def _installed(self) -> Config:
        return self._load("chains: {}\n")

    def _load(self, source: str | Path) -> Config:
        if isinstance(source, Path):
            return load_config(source)
        self._count += 1
        path = self._directory / f"kubetailor-{self._count}.yaml"
        path.write_text(source, encoding="utf-8")
        return load_config(path)

    def transform(
        self,
        use: str | Callable[..., Any],
        obj: JsonMap,
        /,
        *,
        when: Mapping[str, Any] | None = None,
        task: TaskContext | None = None,
        **parameters: Any,
    ) -> Outcome:
        """Run one transformer over an object.

        Args:
            use: the function, or a name as a config writes it.
            obj: the object; it is not changed.
            when: where it applies, as a config writes it.
            task: what is known of the task; by default nothing, in the phase `admit`.
            parameters: the step's `with`.
        """
        return Outcome(self._run(use, when, task, parameters)(obj))

    def prove(
        self,
        use: str | Callable[..., Any],
        obj: JsonMap,
        /,
        *,
        when: Mapping[str, Any] | None = None,
        task: TaskContext | None = None,
        **parameters: Any,
    ) -> Outcome:
        """As `transform`, and fail unless what every transformer promises holds.

        A second run changes nothing; the object that was given is as it was; fields that nobody
        knows are still there; the patch leads from the one to the other; and two results share
        nothing.
        """
        return proven(self._run(use, when, task, parameters), obj)

    def chain(self, source: str | Path, name: str | None = None) -> ChainBench:
        """The chains of a config.

        Args:
            source: its text, or the path of the file.
            name: the chain to run; by default `select` picks.
        """
        return ChainBench(self._load(source), name)

    def _run(
        self,
        use: str | Callable[..., Any],
        when: Mapping[str, Any] | None,
        task: TaskContext | None,
        parameters: Mapping[str, Any],
    ) -> Run:
        config = self._installed
        if isinstance(use, str):
            transformer = config.plugins.transformers[use]
        else:
            transformer = Transformer.of(
                use, name=use.__name__, plugin="test", options=options_of(use) or Options()
            )
        step = Step(
            transformer.name,
            "steps",
            transformer,
            read_parameters(transformer, parameters, config.catalogue),
            compile_selector(when),
        )
        chain = Chain("test", (step,), phases=("admit",), catalogue=config.catalogue)
        known = task or TaskContext("admit")
        front = Tailor(config)

        def run(obj: JsonMap) -> Result:
            kind = front.kind_of(obj)
            assert kind is not None, f"the kind {obj.get('kind')!r} is not known"
            return chain.run(obj, kind, known)

        return run
