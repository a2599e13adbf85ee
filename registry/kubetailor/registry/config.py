"""`kubetailor.yaml`: read, checked whole, and compiled to chains.

Every fault is found when the file is loaded, and said with its place and the nearest valid name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kubetailor.registry.accelerators import AcceleratorError, Catalogue, FlyteSettings
from kubetailor.registry.chain import LAYERS, Chain, Layer, Step
from kubetailor.registry.context import Phase, TaskContext
from kubetailor.registry.errors import ConfigError, DeferError, PluginError
from kubetailor.registry.model import ChainModel, ConfigModel, StepModel
from kubetailor.registry.parameters import ParameterError, read_parameters
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import (
    UNKNOWN_AT_ADMIT,
    Selector,
    SelectorError,
    compile_selector,
)
from kubetailor.registry.source import Source, canonical, text
from kubetailor.workloads import Workload, nearest

__all__ = ["DEFAULT_CHAIN", "FILE_NAME", "Config", "Selected", "find_config", "load_config"]

FILE_NAME = "kubetailor.yaml"
DEFAULT_CHAIN = "default"

_model = TypeAdapter(ConfigModel)


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
        advice: what `kubetailor check` should say, though it is no error.
    """

    file: str
    chains: Mapping[str, Chain]
    select: tuple[Selected, ...]
    plugins: Plugins
    catalogue: Catalogue
    phases: tuple[Phase, ...]
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

    def chain_for(self, task: TaskContext, workload: Workload) -> Chain | None:
        """The chain that `select` picks, or None.

        Raises:
            DeferError: a rule cannot be decided in this phase.
        """
        for rule in self.select:
            holds = rule.when.of_workload(task, workload)
            if holds is None and task.phase != "admit":
                raise DeferError(", ".join(sorted(rule.when.fields)))
            if holds:
                return None if rule.chain is None else self.chains[rule.chain]
        return None

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
        return _sha256(parts)


def find_config(start: Path) -> Path | None:
    """The nearest `kubetailor.yaml` at or above a directory, or None."""
    for directory in (start, *start.parents):
        path = directory / FILE_NAME
        if path.is_file():
            return path
    return None


def load_config(path: Path, *, entry_points: bool = True) -> Config:
    """Read, check and compile the config at a path.

    Args:
        path: the file.
        entry_points: whether to load installed plugins.

    Raises:
        ConfigError: the first fault, with its place.
        PluginError: plugins that cannot be loaded.
    """
    source = Source.read(path)
    return _Compiler(source, path.resolve().parent, entry_points).config()


class _Compiler:
    """Turns the data of one file into a `Config`."""

    def __init__(self, source: Source, directory: Path, entry_points: bool) -> None:
        self.source = source
        self.model = self._read(source)
        self.plugins = Plugins.load(
            self.model.plugins or (),
            blocked=self.model.block_plugins or (),
            directory=directory,
            entry_points=entry_points,
        )
        if self.plugins.faults:
            raise PluginError([f"{source.file}: {fault}" for fault in self.plugins.faults])
        flyte = FlyteSettings(self.model.flyte.device_label, self.model.flyte.partition_label)
        self.catalogue = Catalogue(
            {**self.plugins.accelerators, **(self.model.accelerators or {})}, flyte
        )
        self.phases: tuple[Phase, ...] = tuple(self.model.phases or ("serialize",))
        self.advice: list[str] = []

    def _error(self, message: str, path: Sequence[str | int]) -> ConfigError:
        return ConfigError(message, self.source.mark(path))

    def _read(self, source: Source) -> ConfigModel:
        if not isinstance(source.data, dict):
            raise ConfigError("expected a map", source.mark())
        try:
            return _model.validate_python(source.data)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            path = fault["loc"]
            if fault["type"] == "extra_forbidden":
                name = str(path[-1])
                known = nearest(name, _keys_at(path[:-1]), what="keys")
                raise ConfigError(f"no key {name!r} here; {known}", source.mark(path)) from None
            place = ".".join(map(str, path))
            reason = fault["msg"].removeprefix("Value error, ")
            shown = repr(text(fault["input"]))[:80]
            if fault["type"] == "missing":
                shown = "nothing"
            raise ConfigError(f"{place}: {reason} (found {shown})", source.mark(path)) from None

    def config(self) -> Config:
        self._check_accelerators()
        written = self.model.chains or {}
        chains = {name: self._chain(name, written) for name in written}
        select = tuple(self._select(chains))
        return Config(
            self.source.file,
            chains,
            select,
            self.plugins,
            self.catalogue,
            self.phases,
            tuple(self.advice),
        )

    def _check_accelerators(self) -> None:
        for name in self.model.accelerators or {}:
            try:
                _ = self.catalogue[name]
            except AcceleratorError as error:
                raise self._error(str(error), ("accelerators", name)) from None

    # chains ------------------------------------------------------------------------------------

    def _chain(self, name: str, written: Mapping[str, ChainModel]) -> Chain:
        ancestry = self._ancestry(name, written)
        steps = [step for layer in LAYERS for step in self._layer(layer, ancestry, written)]
        chain = Chain(
            name,
            tuple(steps),
            strict=self.model.strict,
            phases=self.phases,
            catalogue=self.catalogue,
            validators=tuple(self.plugins.hook_calls("validate")),
            digest=self._digest(steps),
        )
        self._advise(chain)
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
        self, layer: Layer, ancestry: list[str], written: Mapping[str, ChainModel]
    ) -> Iterator[Step]:
        """The steps of a layer: the parents' first; one of the same name takes their place."""
        merged: list[tuple[StepModel, tuple[str | int, ...]]] = []
        for chain in ancestry:
            own: set[str] = set()
            for index, step in enumerate(getattr(written[chain], layer) or ()):
                path = ("chains", chain, layer, index)
                if step.name is not None and step.name in own:
                    raise self._error(f"the name {step.name!r} is there twice", (*path, "name"))
                own |= {step.name} if step.name else set()
                self._merge(merged, step, path)
        for step, path in merged:
            yield self._step(step, layer, path)

    def _merge(
        self,
        merged: list[tuple[StepModel, tuple[str | int, ...]]],
        step: StepModel,
        path: tuple[str | int, ...],
    ) -> None:
        place = next(
            (i for i, (other, _) in enumerate(merged) if step.name and other.name == step.name), None
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

    def _step(self, step: StepModel, layer: Layer, path: tuple[str | int, ...]) -> Step:
        assert step.use is not None
        transformers = self.plugins.transformers
        transformer = transformers.get(step.use)
        if transformer is None:
            raise self._error(
                f"no transformer {step.use!r}; "
                f"{nearest(step.use, transformers, what='known transformers')}",
                (*path, "use"),
            )
        try:
            arguments = read_parameters(transformer, step.with_, self.catalogue)
        except ParameterError as error:
            raise self._error(str(error), (*path, "with", *error.path)) from None
        when = self._selector(step.when, (*path, "when"))
        if layer == "enforce" and (late := when.fields & UNKNOWN_AT_ADMIT):
            raise self._error(
                f"`when` of a step of enforce reads {', '.join(sorted(late))}, which the last "
                "phase cannot know: the step might never run",
                (*path, "when"),
            )
        return Step(
            step.name or step.use,
            layer,
            transformer,
            arguments,
            when,
            step.optional,
            self.source.mark((*path, "use")),
        )

    def _selector(self, when: Any, path: tuple[str | int, ...]) -> Selector:
        try:
            return compile_selector(when)
        except SelectorError as error:
            raise self._error(f"when: {error}", (*path, *error.path)) from None

    def _select(self, chains: Mapping[str, Chain]) -> Iterator[Selected]:
        rules = self.model.select
        if rules is None:
            if DEFAULT_CHAIN in chains:
                yield Selected(compile_selector(None), DEFAULT_CHAIN)
            elif chains:
                raise self._error(
                    f"without `select` the chain {DEFAULT_CHAIN!r} runs, and there is none; "
                    f"{nearest(DEFAULT_CHAIN, chains, what='chains')}",
                    ("chains",),
                )
            return
        settled = False
        for index, rule in enumerate(rules):
            path = ("select", index)
            if settled:
                raise self._error("unreachable: the rule before always holds", path)
            if rule.chain is not None and rule.chain not in chains:
                raise self._error(
                    f"no chain {rule.chain!r}; {nearest(rule.chain, chains, what='chains')}",
                    (*path, "chain"),
                )
            settled = rule.when is None
            yield Selected(self._selector(rule.when, (*path, "when")), rule.chain)

    # digest and advice -------------------------------------------------------------------------

    def _digest(self, steps: Sequence[Step]) -> str:
        plugins = sorted({self.plugins[step.transformer.plugin].identity for step in steps})
        used = sorted(
            {name for step in steps for name in _strings(step.arguments) if name in self.catalogue}
        )
        return _sha256(
            {
                "steps": [
                    {
                        "layer": step.layer,
                        "use": step.transformer.name,
                        "with": step.arguments,
                        "when": step.when.written,
                        "optional": step.optional,
                    }
                    for step in steps
                ],
                "strict": self.model.strict,
                "accelerators": {name: repr(self.catalogue[name]) for name in used},
                "flyte": repr(self.catalogue.flyte),
                "plugins": plugins,
            }
        )

    def _advise(self, chain: Chain) -> None:
        """A `when` that reads what a later step may write is outside the promise of idempotence."""
        names = [step.transformer.name for step in chain.steps]
        for index, step in enumerate(chain.steps):
            for written, by in (("labels", "labels"), ("annotations", "annotations")):
                if written in step.when.fields and by in names[index + 1 :]:
                    self.advice.append(
                        f"{step.mark}: step {step.name!r} of chain {chain.name!r}: its `when` reads "
                        f"{written}, which a later step sets: a second run may differ"
                    )
            if "requests" in step.when.fields and {"resources", "gpu"} & set(names[index + 1 :]):
                if step.transformer.name not in ("resources", "gpu"):
                    self.advice.append(
                        f"{step.mark}: step {step.name!r} of chain {chain.name!r}: its `when` reads "
                        "requests, which a later step sets: a second run may differ"
                    )


def _keys_at(path: Sequence[str | int]) -> list[str]:
    """The keys that the form of a config has at a path."""
    schema = ConfigModel.model_json_schema()
    node: Any = schema
    for key in path:
        node = _deref(node, schema)
        if isinstance(key, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(key) or node.get("additionalProperties") or {}
    return list(_deref(node, schema).get("properties", {}))


def _deref(node: Any, schema: Any) -> Any:
    for option in node.get("anyOf", ()):
        if option.get("type") != "null":
            node = option
            break
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _sha256(value: Any) -> str:
    return "sha256:" + hashlib.sha256(canonical(_plain(value)).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Arguments as JSON data: models and enums by their text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return repr(value)
