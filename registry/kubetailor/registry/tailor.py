"""The front door for hosts: a config, the chain that it selects, and a run over one object."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubetailor.registry.chain import Chain
from kubetailor.registry.config import Config
from kubetailor.registry.context import Phase, TaskContext, parse_task_fields
from kubetailor.registry.errors import ConfigError, DeferError
from kubetailor.registry.load import built_in_config, load_config
from kubetailor.registry.location import config_path
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.result import Result
from kubetailor.registry.selectors import Seen
from kubetailor.workloads import (
    JsonMap,
    Kind,
    UnknownKindError,
    Workload,
)
from kubetailor.workloads.form import form_fault
from kubetailor.workloads.kinds import holds_containers

__all__ = ["Tailor", "Tailored"]


@dataclass(frozen=True)
class Tailored:
    """One object after its chain.

    Attributes:
        result: what the run did.
        chain: the chain, or None if none was selected or none could be yet.
    """

    result: Result
    chain: Chain | None


@dataclass(frozen=True)
class Tailor:
    """A config in use.

    Attributes:
        config: the config.
        forced: the chain that runs whatever `select` says, or None.
        fields: what is known of every task, from `--task` or `KUBETAILOR_TASK`.
    """

    config: Config
    forced: str | None = None
    fields: Mapping[str, str] | None = None

    @classmethod
    def find(
        cls,
        path: Path | None = None,
        *,
        chain: str | None = None,
        fields: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Tailor | None:
        """The config in force, or None.

        It is found as by `config_path`. `KUBETAILOR_CHAIN` forces a chain, and `KUBETAILOR_TASK`
        (``key=value``, separated by commas) says what is known of every task.

        Raises:
            ConfigError: it cannot be used.
            PluginError: plugins that cannot be loaded.
        """
        found = config_path(path, environ)
        if found is None:
            return None
        pairs = [pair for pair in environ.get("KUBETAILOR_TASK", "").split(",") if pair]
        try:
            known = parse_task_fields(pairs)
        except ValueError as error:
            raise ConfigError(f"KUBETAILOR_TASK: {error}") from None
        tailor = cls(
            load_config(found),
            chain or environ.get("KUBETAILOR_CHAIN") or None,
            {**known, **(fields or {})},
        )
        if tailor.forced is not None:
            tailor.config.chain(tailor.forced)
        return tailor

    @classmethod
    def built_in(cls) -> Tailor:
        """What stands for a config where there is none: overrides alone run.

        Raises:
            PluginError: plugins that cannot be loaded.
        """
        return cls(built_in_config())

    @property
    def digest(self) -> str:
        """What stands for all that may be done to a task."""
        return self.config.digest if self.forced is None else self.config.chain(self.forced).digest

    def task(self, phase: Phase, **known: Any) -> TaskContext:
        """What is known of a task; what the user said of every task beats it.

        Args:
            phase: the phase.
            known: what the host knows, as fields of `TaskContext`.
        """
        return TaskContext(phase, **{**known, **(self.fields or {})})

    def chain_of(
        self, task: TaskContext, workload: Seen, override: CompiledOverride | None = None
    ) -> Chain | None:
        """The chain of a workload: the forced one, else what `select` says, or None.

        Args:
            task: what is known of the task.
            workload: the workload.
            override: its execution's override, whose steps the chain then has too; where no chain
                is selected, it has them alone.

        Raises:
            DeferError: `select` needs what is not known yet.
        """
        chain = (
            self.config.chain_for(task, workload)
            if self.forced is None
            else self.config.chain(self.forced)
        )
        if override is None:
            return chain
        return (self.config.no_chain if chain is None else chain).overridden(override)

    def kind_of(self, obj: JsonMap) -> Kind | None:
        """The row of an object; None if its kind is not known and it holds no pods.

        Raises:
            UnknownKindError: its kind is not known, but it holds containers.
            InvalidObjectError: it is no object of Kubernetes or Flyte.
        """
        kinds = self.config.plugins.kinds
        kind = kinds.of(obj)
        if kind is None and holds_containers(obj):
            named = f"the kind {obj.get('kind')} of {obj.get('apiVersion')}"
            if obj.get("kind") == "FlyteWorkflow":
                raise UnknownKindError(
                    f"{named} is no workload: the webhook tailors its tasks one by one at "
                    "`launch`; `kubetailor flyte show` says what becomes of each"
                )
            raise UnknownKindError(
                f"{named} is not known, and it holds containers: add a row with the hook "
                "`register_kinds` (see the docs, 'How to add a kind')"
            )
        return kind

    def tailor(
        self,
        obj: JsonMap,
        phase: Phase,
        *,
        kind: Kind | None = None,
        override: CompiledOverride | None = None,
        **known: Any,
    ) -> Tailored:
        """Select the chain of an object and run it.

        Args:
            obj: the object, JSON data; it is not changed itself.
            phase: the phase.
            kind: its row, if that was looked up already.
            override: its execution's override.
            known: what is known of the task, as fields of `TaskContext`.

        Raises:
            StepError: a step failed.
            ConfigError: no chain can be selected, and no later phase is installed.
            UnknownKindError, InvalidObjectError: as `kind_of`.
        """
        row = kind or self.kind_of(obj)
        if row is None:
            return Tailored(Result(obj, obj), None)
        try:
            return self._run(obj, row, self.task(phase, **known), override)
        except Exception as error:
            if (fault := form_fault(error, obj, row)) is not None:
                raise fault from None
            raise

    def _run(
        self, obj: JsonMap, row: Kind, task: TaskContext, override: CompiledOverride | None
    ) -> Tailored:
        is_child = self.config.plugins.kinds.is_child(obj.get("metadata"))
        try:
            chain = self.chain_of(task, Workload(obj, row), override)
        except DeferError as unknown:
            return Tailored(self._wait(obj, task, unknown.field), None)
        if chain is None:
            return Tailored(Result(obj, obj), None)
        return Tailored(chain.run(obj, row, task, is_child=is_child), chain)

    def _wait(self, obj: JsonMap, task: TaskContext, unknown: str) -> Result:
        """Nothing can be selected yet: the whole chain waits for the next phase."""
        later = Chain("", (), phases=self.config.phases).next_phase(task.phase)
        if later is None:
            raise ConfigError(
                f"{self.config.file}: `select` needs {unknown}, which the phase {task.phase!r} "
                "cannot know, and no later phase is installed; give it with "
                "KUBETAILOR_TASK=domain=… or --task, force a chain with KUBETAILOR_CHAIN, or list "
                "the later phase under `phases`"
            )
        return Result(obj, obj, until=later, unknown=unknown)
