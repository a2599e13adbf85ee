"""From the form of a config to chains that run: everything is checked, and faults are collected."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from kubetailor.registry import advice
from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.chain import Chain
from kubetailor.registry.config import DEFAULT_CHAIN, Config, Selected
from kubetailor.registry.context import Phase
from kubetailor.registry.digest import chain_digest
from kubetailor.registry.entries import AcceleratorError
from kubetailor.registry.errors import ConfigError, PluginError
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.model import ChainModel, ConfigModel, StepModel
from kubetailor.registry.overrides.allowing import compile_overridable
from kubetailor.registry.overrides.compiler import OverrideCompiler
from kubetailor.registry.overrides.overridable import Overridable, Rule
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.reading import read_model
from kubetailor.registry.selectors import Selector, compile_selector
from kubetailor.registry.source import Source
from kubetailor.registry.step import Step
from kubetailor.registry.steps import StepCompiler
from kubetailor.registry.unmatched import unmatched
from kubetailor.workloads import KubetailorError, nearest

__all__ = ["Compiler"]

_List: TypeAlias = Literal["defaults", "steps", "enforce"]
_LISTS: tuple[_List, ...] = get_args(_List)
"""The lists of a chain, in the order in which they run."""


class Compiler:
    """Turns the data of one file into a `Config`; faults are collected."""

    @classmethod
    def of(cls, path: Path, entry_points: bool) -> Compiler:
        """Read the file and load its plugins."""
        return cls(Source.read(path), path.resolve().parent, entry_points)

    def __init__(self, source: Source, directory: Path, entry_points: bool) -> None:
        self.source: Source = source
        self.faults: list[KubetailorError] = []
        self.model: ConfigModel = read_model(ConfigModel, source.data, source.mark)
        self.plugins: Plugins = Plugins.load(
            self.model.plugins or (),
            blocked=self.model.block_plugins or (),
            directory=directory,
            entry_points=entry_points,
            mark=source.mark,
        )
        self.broken: set[str] = {plugin.name for plugin in self.plugins.all if plugin.error}
        if self.plugins.faults:
            self.faults.append(PluginError(self.plugins.faults))
        flyte = FlyteSettings(**self.model.flyte.model_dump())
        self.catalogue: Catalogue = Catalogue(
            {**self.plugins.accelerators, **(self.model.accelerators or {})}, flyte
        )
        self.steps: StepCompiler = StepCompiler(self.plugins, self.catalogue, source.mark)
        self.phases: tuple[Phase, ...] = tuple(self.model.phases or ("serialize",))
        self.advice: list[str] = []

    def _error(self, message: str, path: Sequence[str | int]) -> ConfigError:
        return ConfigError(message, self.source.mark(path))

    @contextmanager
    def _collect(self) -> Generator[None]:
        """Keep a fault and go on; a parent's is met again in each chain that extends it."""
        try:
            yield
        except ConfigError as error:
            if str(error) not in map(str, self.faults):
                self.faults.append(error)

    def config(self) -> Config:
        """The config; it is of use only if there are no faults."""
        self._check_accelerators()
        written = self.model.chains or {}
        chains: dict[str, Chain] = {}
        for name in written:
            with self._collect():
                chains[name] = self._chain(name, written)
        select = tuple(self._select(written))
        return Config(
            self.source.file,
            chains,
            select,
            self.plugins,
            self.catalogue,
            self.phases,
            OverrideCompiler(self.plugins, self.catalogue, self._overridable()),
            tuple(self.advice),
        )

    def _check_accelerators(self) -> None:
        for name in self.model.accelerators or {}:
            with self._collect():
                try:
                    _ = self.catalogue[name]
                except AcceleratorError as error:
                    raise self._error(str(error), ("accelerators", name)) from None

    # chains ------------------------------------------------------------------------------------

    def _chain(self, name: str, written: Mapping[str, ChainModel]) -> Chain:
        ancestry = self._ancestry(name, written)
        steps = [step for layer in _LISTS for step in self._layer(layer, ancestry, written)]
        chain = Chain(
            name,
            tuple(steps),
            strict=self.model.strict,
            phases=self.phases,
            catalogue=self.catalogue,
            validators=tuple(self.plugins.hook_calls("validate")),
            digest=chain_digest(
                steps, strict=self.model.strict, catalogue=self.catalogue, plugins=self.plugins
            ),
        )
        self.advice += advice.of_chain(chain)
        return chain

    def _ancestry(self, name: str, written: Mapping[str, ChainModel]) -> list[str]:
        """The chain and all it extends, the outermost parent first."""
        found = [name]
        while (parent := written[found[0]].extends) is not None:
            place = ("chains", found[0], "extends")
            if parent in found:
                circle = " -> ".join([*reversed(found), parent])
                raise self._error(f"cyclic `extends`: {circle}", place)
            if parent not in written:
                raise self._error(
                    f"no chain {parent!r}; {nearest(parent, written, what='chains')}", place
                )
            found.insert(0, parent)
        return found

    def _layer(
        self, layer: _List, ancestry: list[str], written: Mapping[str, ChainModel]
    ) -> list[Step]:
        """The steps of a layer: the parents' first; one of the same name takes their place."""
        merged: list[tuple[StepModel, tuple[str | int, ...]]] = []
        for chain in ancestry:
            own: set[str] = set()
            for index, step in enumerate(getattr(written[chain], layer) or ()):
                path = ("chains", chain, layer, index)
                with self._collect():
                    if step.name is not None and step.name in own:
                        raise self._error(f"the name {step.name!r} is there twice", (*path, "name"))
                    own |= {step.name} if step.name else set()
                    self._merge(merged, step, path)
        steps: list[Step] = []
        for step, place in merged:
            if step.use and step.use.partition(".")[0] in self.broken:
                continue  # the fault is the plugin's
            with self._collect():
                found = self.steps.step(step, layer, place)
                self._advise_when(found.when, (*place, "when"))
                steps.append(found)
        return steps

    def _merge(
        self,
        merged: list[tuple[StepModel, tuple[str | int, ...]]],
        step: StepModel,
        path: tuple[str | int, ...],
    ) -> None:
        place = next(
            (i for i, (other, _) in enumerate(merged) if step.name and other.name == step.name),
            None,
        )
        if step.use is None:
            if place is None:
                names = [other.name for other, _ in merged if other.name]
                raise self._error(
                    "`use: null` drops an inherited step, and there is none called "
                    f"{step.name!r}; {nearest(step.name or '', names, what='inherited')}",
                    path,
                )
            del merged[place]
        elif place is None:
            merged.append((step, path))
        else:
            merged[place] = (step, path)

    def _select(self, chains: Mapping[str, ChainModel]) -> Iterator[Selected]:
        rules = self.model.select
        if rules is None:
            if DEFAULT_CHAIN in chains:
                yield Selected(compile_selector(None), DEFAULT_CHAIN)
            elif chains:
                self.faults.append(
                    self._error(
                        f"without `select` the chain {DEFAULT_CHAIN!r} runs, and there is none; "
                        f"{nearest(DEFAULT_CHAIN, chains, what='chains')}",
                        ("chains",),
                    )
                )
            return
        earlier: list[Any] = []
        for index, rule in enumerate(rules):
            path = ("select", index)
            with self._collect():
                if None in earlier:
                    raise self._error("unreachable: the rule before always holds", path)
                if rule.when in earlier:
                    raise self._error("unreachable: a rule before has the same `when`", path)
                earlier.append(rule.when)
                if rule.chain is not None and rule.chain not in chains:
                    raise self._error(
                        f"no chain {rule.chain!r}; {nearest(rule.chain, chains, what='chains')}",
                        (*path, "chain"),
                    )
                when = self.steps.selector(rule.when, (*path, "when"))
                self._advise_when(when, (*path, "when"))
                yield Selected(when, rule.chain)

    def _overridable(self) -> Overridable:
        written = self.model.overridable
        if written is None:
            return Overridable()
        rules: list[Rule] = []
        for index, entry in enumerate(written):
            if entry.use.partition(".")[0] in self.broken:
                continue  # the fault is the plugin's
            with self._collect():
                rules.append(compile_overridable(entry, ("overridable", index), self.steps))
        if not self.faults:
            self.advice += advice.of_overridable(rules, self.catalogue)
        return Overridable(tuple(rules), self.source.mark(("overridable",)))

    # advice --------------------------------------------------------------------------------------

    def _advise_when(self, when: Selector, path: tuple[str | int, ...]) -> None:
        """A `when` that no known kind meets; a parent's is met again in each that extends it."""
        for message, place in unmatched(when.written, self.plugins.kinds):
            text = f"{self.source.mark((*path, *place))}: `when`: {message}"
            if text not in self.advice:
                self.advice.append(text)
