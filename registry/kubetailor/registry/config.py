"""A config in use: its chains, and which of them is whose."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.chain import Chain
from kubetailor.registry.context import Phase, TaskContext
from kubetailor.registry.digest import sha256
from kubetailor.registry.errors import ConfigError, DeferError
from kubetailor.registry.overrides.compiler import OverrideCompiler
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import Seen, Selector
from kubetailor.workloads import nearest

__all__ = ["DEFAULT_CHAIN", "Config", "Selected"]

DEFAULT_CHAIN = "default"
"""The chain that runs where a config has no `select`."""


@dataclass(frozen=True)
class Selected:
    """One rule of `select`, compiled; `chain` is None for none."""

    when: Selector
    chain: str | None


@dataclass(frozen=True)
class Config:
    """A config, checked and compiled.

    Attributes:
        file: where it was read.
        chains: by name.
        select: the rules, in order.
        plugins: the plugins that it loaded.
        catalogue: the accelerators.
        phases: the phases that are installed here.
        overrides: what compiles an override by this config, and says what it may do.
        advice: what `kubetailor check` should say, though it is no error.
    """

    file: str
    chains: Mapping[str, Chain]
    select: tuple[Selected, ...]
    plugins: Plugins
    catalogue: Catalogue
    phases: tuple[Phase, ...]
    overrides: OverrideCompiler
    advice: tuple[str, ...]

    def chain(self, name: str) -> Chain:
        """The chain of a name.

        Raises:
            ConfigError: there is none.
        """
        try:
            return self.chains[name]
        except KeyError:
            raise ConfigError(
                f"{self.file}: no chain {name!r}; {nearest(name, self.chains, what='chains')}"
            ) from None

    def chain_for(self, task: TaskContext, workload: Seen) -> Chain | None:
        """The chain that `select` picks, or None.

        Raises:
            DeferError: a rule cannot be decided in this phase.
        """
        for rule in self.select:
            holds = rule.when.of_workload(task, workload)
            if holds is None and task.phase != "admit":
                raise DeferError(rule.when.unknown_to(task))
            if holds:
                return None if rule.chain is None else self.chains[rule.chain]
        return None

    @functools.cached_property
    def no_chain(self) -> Chain:
        """What stands for a chain where none is selected."""
        validators = tuple(self.plugins.hook_calls("validate"))
        return Chain("", (), phases=self.phases, catalogue=self.catalogue, validators=validators)

    @property
    def digest(self) -> str:
        """What stands for all that this config may do: `select` and the chains that it names."""
        parts = [
            {
                "when": rule.when.written,
                "chain": None if rule.chain is None else self.chains[rule.chain].digest,
            }
            for rule in self.select
        ]
        return sha256(parts)
