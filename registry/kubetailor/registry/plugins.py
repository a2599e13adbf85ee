"""Finding plugins: built-ins by import path, installed ones by entry point, a team's by the config.

Hooks are called one plugin at a time, so that whatever is registered knows its plugin, and one that
fails hides no other (pluggy's own `load_setuptools_entrypoints` stops at the first, and drops a
second plugin of one name without a word).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from kubetailor.registry import hookspecs
from kubetailor.registry.errors import PluginError
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.registry.transformer import (
    Options,
    Transformer,
    TransformerError,
    options_of,
    source_of,
)
from kubetailor.workloads import BUILTIN_KINDS, ConflictError, Kind, KindTable, nearest

__all__ = ["BUILTIN_PLUGINS", "Plugin", "Plugins", "own_version"]

BUILTIN_PLUGINS: Mapping[str, str] = {
    PROJECT: "kubetailor.transformers",
    "cli": "kubetailor.plugins.cli",
    "flyte": "kubetailor.plugins.flyte",
    "webhook": "kubetailor.plugins.webhook",
}
"""Plugin name -> module; the transformers of the first have bare names."""

_FILE_MODULES = "_kubetailor_file_plugins"


@dataclass
class Plugin:
    """One plugin.

    Attributes:
        name: the entry point's name, else the last part of the module's, or the file's stem.
        origin: where it was found, for listings: a distribution, a module or a file.
        module: the module, or None if it could not be loaded.
        distribution: the distribution's name, or None outside one.
        version: the distribution's version, or None.
        error: why it could not be loaded, or None.
        transformers: the names that it registered.
    """

    name: str
    origin: str
    module: ModuleType | None = None
    distribution: str | None = None
    version: str | None = None
    error: str | None = None
    transformers: list[str] = field(default_factory=list)

    @property
    def identity(self) -> str:
        """What stands for its code in a digest: name and version, else a hash of its sources."""
        if self.distribution:
            return f"{self.distribution}=={self.version}"
        digest = hashlib.sha256()
        for path in _sources(self.module):
            digest.update(path.read_bytes())
        return f"{self.name}@sha256:{digest.hexdigest()}"

    @property
    def hooks(self) -> list[str]:
        """The hooks that it implements."""
        found = vars(self.module) if self.module else {}
        return sorted(name for name in _HOOKS if hasattr(found.get(name), f"{PROJECT}_impl"))


_HOOKS = tuple(name for name, value in vars(hookspecs).items() if hasattr(value, f"{PROJECT}_spec"))


def _sources(module: ModuleType | None) -> list[Path]:
    file = getattr(module, "__file__", None)
    if file is None:
        return []
    if Path(file).name == "__init__.py":
        return sorted(Path(file).parent.rglob("*.py"))
    return [Path(file)]


class Plugins:
    """The plugins that are loaded, and what they registered.

    Attributes:
        transformers: by name.
        kinds: the table of kinds.
        accelerators: name -> entry as it was registered.
        faults: what could not be loaded or registered, one sentence each.
    """

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._plugins: dict[str, Plugin] = {}
        self.transformers: dict[str, Transformer] = {}
        self.kinds: KindTable = KindTable(BUILTIN_KINDS)
        self.accelerators: dict[str, Mapping[str, Any]] = {}
        self._accelerator_plugins: dict[str, str] = {}
        self.faults: list[str] = []

    @classmethod
    def load(
        cls,
        named: Iterable[str] = (),
        *,
        blocked: Iterable[str] = (),
        directory: Path | None = None,
        entry_points: bool = True,
        builtins: Mapping[str, str] | None = None,
    ) -> Plugins:
        """Load the built-ins, the installed plugins and the named ones.

        Args:
            named: import paths, or paths of files (with a ``/`` or ending in ``.py``).
            blocked: names of installed plugins that are not wanted; they are not imported.
            directory: what paths of files are relative to; by default the working directory.
            entry_points: whether to load installed plugins.
            builtins: instead of `BUILTIN_PLUGINS`.
        """
        plugins = cls()
        blocked = set(blocked)
        version = own_version()
        for name, module in (BUILTIN_PLUGINS if builtins is None else builtins).items():
            plugins._load(
                Plugin(name, module, distribution=PROJECT, version=version),
                partial(importlib.import_module, module),
            )
        found = _entry_points() if entry_points else {}
        for point in found.values():
            if point.name not in blocked:
                dist = point.dist
                origin = f"{dist.name} {dist.version}" if dist else point.value
                plugin = Plugin(
                    point.name,
                    origin,
                    distribution=dist.name if dist else None,
                    version=dist.version if dist else None,
                )
                plugins._load(plugin, point.load)
        for name in sorted(blocked - found.keys()):
            plugins.faults.append(
                f"block_plugins: no installed plugin {name!r}; "
                f"{nearest(name, found, what='installed plugins')}"
            )
        for path in named:
            plugins._load_named(str(path), directory or Path.cwd())
        return plugins

    def require(self) -> Plugins:
        """These plugins, if all could be loaded.

        Raises:
            PluginError: every fault.
        """
        if self.faults:
            raise PluginError(self.faults)
        return self

    @property
    def all(self) -> list[Plugin]:
        """Every plugin, those with an error too."""
        return list(self._plugins.values())

    def __getitem__(self, name: str) -> Plugin:
        return self._plugins[name]

    def _load_named(self, path: str, directory: Path) -> None:
        if path.endswith(".py") or "/" in path:
            file = (directory / path).resolve()
            self._load(Plugin(file.stem, str(file)), lambda: _import_file(file))
            return
        self._load(Plugin(path.rpartition(".")[2], path), lambda: importlib.import_module(path))

    def _load(self, plugin: Plugin, load: Callable[[], Any]) -> None:
        """Import a plugin and register it; what fails is kept as a fault."""
        try:
            module = load()
            if not inspect.ismodule(module):
                raise TypeError(f"{plugin.origin} is {module!r}, not a module")
        except (Exception, SystemExit) as error:
            self._fault(plugin, f"cannot be loaded from {plugin.origin}: {_reason(error)}")
            return
        plugin.module = module
        if self._is_there(module):
            return
        if plugin.name in self._plugins:
            other = self._plugins[plugin.name]
            self._fault(
                plugin,
                f"already registered: {other.origin} and {plugin.origin} are both called "
                f"{plugin.name!r}; rename one, or name one in block_plugins",
            )
            return
        self._plugins[plugin.name] = plugin
        try:
            self._manager.register(module, plugin.name)
            self._check_hooks(module)
            self._register(plugin, module)
        except (Exception, SystemExit) as error:
            self._fault(plugin, _reason(error))

    def _check_hooks(self, module: ModuleType) -> None:
        """A hook that there is not would never be called."""
        for caller in self._manager.get_hookcallers(module) or ():
            if not caller.has_spec():
                raise ConflictError(
                    f"no hook {caller.name!r}; {nearest(caller.name, _HOOKS, what='hooks')}"
                )

    def _is_there(self, module: ModuleType) -> bool:
        """Whether the module was found another way already."""
        file = getattr(module, "__file__", None)
        return any(
            known.module is not None
            and (
                known.module is module or (file and getattr(known.module, "__file__", None) == file)
            )
            for known in self._plugins.values()
        )

    def _fault(self, plugin: Plugin, reason: str) -> None:
        plugin.error = reason
        self._plugins.setdefault(plugin.name, plugin)
        self.faults.append(f"plugin {plugin.name!r}: {reason}")

    def _register(self, plugin: Plugin, module: ModuleType) -> None:
        for name, value in list(vars(module).items()):
            options = options_of(value)
            if options is not None and _belongs(value, module):
                self._add(plugin, value, options.name or name, options)

        def add(
            function: Callable[..., Any], *, name: str | None = None, atomic: bool = False
        ) -> None:
            options = options_of(function) or Options(atomic=atomic)
            self._add(plugin, function, name or options.name or function.__name__, options)

        self._call(plugin, "register_transformers", register=add)
        self._call(plugin, "register_kinds", register=self._add_kind)
        self._call(
            plugin,
            "register_accelerators",
            register=lambda name, entry: self._add_accelerator(plugin, name, entry),
        )

    def _call(self, plugin: Plugin, hook: str, **arguments: Any) -> None:
        for impl in getattr(self._manager.hook, hook).get_hookimpls():
            if impl.plugin_name == plugin.name:
                impl.function(**{name: arguments[name] for name in impl.argnames})

    def _add(
        self, plugin: Plugin, function: Callable[..., Any], name: str, options: Options
    ) -> None:
        full = name if plugin.name == PROJECT else f"{plugin.name}.{name}"
        known = self.transformers.get(full)
        if known is not None:
            if known.function is function:
                return
            raise TransformerError(
                f"transformer {full!r} is registered twice: {known.source} (plugin "
                f"{known.plugin}) and {source_of(function)} (plugin {plugin.name})"
            )
        self.transformers[full] = Transformer.of(
            function, name=full, plugin=plugin.name, options=options
        )
        plugin.transformers.append(full)

    def _add_kind(self, kind: Kind) -> None:
        self.kinds.add(kind)

    def _add_accelerator(self, plugin: Plugin, name: str, entry: Mapping[str, Any]) -> None:
        if name in self.accelerators:
            raise ConflictError(
                f"accelerator {name!r} is registered twice: by {self._accelerator_plugins[name]} "
                f"and by {plugin.name}"
            )
        self.accelerators[name] = entry
        self._accelerator_plugins[name] = plugin.name

    def hook_calls(self, hook: str) -> list[tuple[str, Callable[..., Any], tuple[str, ...]]]:
        """The implementations of a hook: (plugin, function, names of its arguments)."""
        return [
            (impl.plugin_name, impl.function, tuple(impl.argnames))
            for impl in getattr(self._manager.hook, hook).get_hookimpls()
        ]


def _belongs(function: Any, module: ModuleType) -> bool:
    """Whether a function is the module's own, and not imported from another plugin."""
    home = str(getattr(function, "__module__", ""))
    return home == module.__name__ or home.startswith(module.__name__ + ".")


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    """Installed plugins by name; two distributions with one name are told apart by value."""
    found: dict[str, importlib.metadata.EntryPoint] = {}
    for point in importlib.metadata.entry_points(group=PROJECT):
        name = point.name
        if name in found and found[name].value != point.value:
            name = f"{point.name} ({point.value})"  # kept, so that `_load` refuses it
        found[name] = point
    return found


def own_version() -> str | None:
    """The installed version of kubetailor; None in a checkout that is not installed."""
    try:
        return importlib.metadata.version(PROJECT)
    except importlib.metadata.PackageNotFoundError:
        return None


def _import_file(file: Path) -> ModuleType:
    """The module of a file, imported once; its name cannot hide an installed module's."""
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    name = f"{_FILE_MODULES}.{file.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    if not file.is_file():
        raise FileNotFoundError(f"no file {file}")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _reason(error: BaseException) -> str:
    if isinstance(error, TransformerError | ConflictError):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error}"
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if len(frames) > 1 else ""
    return f"{type(error).__name__}: {error}{place}"
