"""Finding plugins: built-ins by import path, installed ones by entry point, a team's by the config.

Hooks are called one plugin at a time, so that whatever is registered knows its plugin, and one that
fails hides no other (pluggy's own `load_setuptools_entrypoints` stops at the first, and drops a
second plugin of one name without a word).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from kubetailor.registry import hookspecs
from kubetailor.registry.errors import Mark, PluginError
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.registry.imports import (
    file_of,
    home_of,
    import_file,
    import_named,
    installed_plugins,
    own_version,
)
from kubetailor.registry.lost import check_hooks, check_members
from kubetailor.registry.plugin import Plugin
from kubetailor.registry.raised import said_of
from kubetailor.registry.signature import source_of
from kubetailor.registry.transformer import (
    Options,
    Transformer,
    TransformerError,
    options_of,
)
from kubetailor.workloads import BUILTIN_KINDS, ConflictError, Kind, KindTable, nearest

__all__ = ["BUILTIN_PLUGINS", "Plugins"]

BUILTIN_PLUGINS: Mapping[str, str] = {
    PROJECT: "kubetailor.transformers",
    "cli": "kubetailor.plugins.cli",
    "client": "kubetailor.plugins.client",
    "flyte": "kubetailor.plugins.flyte",
    "webhook": "kubetailor.plugins.webhook",
}
"""Plugin name -> module; the transformers of the first have bare names."""


class Plugins:
    """The plugins that are loaded, and what they registered.

    Attributes:
        transformers: by name.
        kinds: the table of kinds.
        accelerators: name -> entry as it was registered.
        faults: what could not be loaded or registered, each with its place in the config, or with
            the distribution that it is from.
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
        self._loaded: set[Path] = set()  # the files of the plugins
        self._homes: set[str] = set()
        self._files: set[Path] = set()

    @classmethod
    def load(
        cls,
        named: Iterable[str] = (),
        *,
        blocked: Iterable[str] = (),
        directory: Path | None = None,
        entry_points: bool = True,
        builtins: Mapping[str, str] | None = None,
        mark: Callable[[Sequence[str | int]], Mark] | None = None,
    ) -> Plugins:
        """Load the built-ins, the installed plugins and the named ones.

        Args:
            named: import paths, or paths of files (with a ``/`` or ending in ``.py``).
            blocked: names of installed plugins that are not wanted; they are not imported.
            directory: what paths of files are relative to; by default the working directory.
            entry_points: whether to load installed plugins.
            builtins: instead of `BUILTIN_PLUGINS`.
            mark: the place of what is at a path of the config.
        """
        plugins = cls()
        blocked = list(blocked)
        directory = directory or Path.cwd()
        builtins = BUILTIN_PLUGINS if builtins is None else builtins
        version = own_version()
        for name, module in builtins.items():
            plugins._load(
                Plugin(name, module, distribution=PROJECT, version=version),
                partial(importlib.import_module, module),
            )
        found = installed_plugins() if entry_points else {}
        named = [str(path) for path in named]
        installed = (point.module for point in found.values())
        plugins._homes = {*builtins.values(), *installed, *named}
        plugins._files = {(directory / path).resolve() for path in named}
        for point in found.values():
            if point.name not in blocked:
                plugin = Plugin.installed(point)
                plugins._load(plugin, point.load, partial(home_of, point.module))
        for index, name in enumerate(blocked if entry_points else ()):
            if name not in found:
                near = nearest(name, found, what="installed plugins", listing="kubetailor plugins")
                where = f"{mark(('block_plugins', index))}: " if mark else ""
                plugins.faults.append(f"{where}block_plugins: no installed plugin {name!r}; {near}")
        for index, path in enumerate(named):
            place = mark(("plugins", index)) if mark else None
            plugins._load_named(path, directory, place)
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

    def no_transformer(self, name: str) -> str:
        """Why there is no transformer of a name: its plugin is not there, or it is misspelt."""
        owner, dot, _ = name.partition(".")
        missing = ""
        if dot and owner not in self._plugins:
            missing = f"no plugin {owner!r} is loaded: install it, or name it under `plugins`; "
        listing = "kubetailor transformers"
        near = nearest(name, self.transformers, what="known transformers", listing=listing)
        return f"no transformer {name!r}; {missing}{near}"

    @property
    def files(self) -> list[str]:
        """The files that the config names as plugins: they may change while a process lives."""
        return [
            plugin.origin
            for plugin in self._plugins.values()
            if plugin.module is not None and plugin.module.__file__ == plugin.origin
        ]

    def __getitem__(self, name: str) -> Plugin:
        return self._plugins[name]

    def _load_named(self, path: str, directory: Path, mark: Mark | None) -> None:
        if path.endswith(".py") or "/" in path:
            file = (directory / path).resolve()
            if self._has_file(file):
                return
            plugin = Plugin(file.stem, str(file), mark=mark)
            self._load(plugin, partial(import_file, file), lambda: [str(file)])
            return
        if self._has_file(file_of(path)):
            return
        plugin = Plugin(path.rpartition(".")[2], path, mark=mark)
        self._load(plugin, partial(import_named, path, directory), partial(home_of, path))

    def _load(
        self, plugin: Plugin, load: Callable[[], Any], home: Callable[[], list[str]] = list
    ) -> None:
        """Import a plugin and register it; what fails is kept as a fault.

        Args:
            plugin: the plugin.
            load: imports it.
            home: its files and folders.
        """
        try:
            module = load()
            if not inspect.ismodule(module):
                raise TypeError(f"{plugin.origin} is {module!r}, not a module")
        except (Exception, SystemExit) as error:
            reason = _reason(error, home())
            self._fault(plugin, f"cannot be loaded from {plugin.origin}: {reason}")
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
        if file := getattr(module, "__file__", None):
            self._loaded.add(Path(file).resolve())
        try:
            self._manager.register(module, plugin.name)
            check_hooks(self._manager, module)
            self._register(plugin, module)
        except (Exception, SystemExit) as error:
            reason = _reason(error, home())
            self._fault(plugin, f"cannot be registered from {plugin.origin}: {reason}")

    def _is_there(self, module: ModuleType) -> bool:
        """Whether the module was found another way already."""
        return any(known.module is module for known in self._plugins.values()) or self._has_file(
            getattr(module, "__file__", None)
        )

    def _has_file(self, file: Path | str | None) -> bool:
        """Whether a plugin is loaded from a file, or from a link to it."""
        return file is not None and Path(file).resolve() in self._loaded

    def _fault(self, plugin: Plugin, reason: str) -> None:
        plugin.error = reason
        self._plugins.setdefault(plugin.name, plugin)
        self.faults.append(plugin.fault(reason))

    def _register(self, plugin: Plugin, module: ModuleType) -> None:
        for name, value in list(vars(module).items()):
            options = options_of(value)
            if options is not None and self._belongs(value, module):
                self._add(plugin, value, options.name or name, options)

        def add(
            function: Callable[..., Any], *, name: str | None = None, atomic: bool = False
        ) -> None:
            options = options_of(function) or Options(atomic=atomic)
            own = name or options.name or getattr(function, "__name__", "")
            if not own or own.startswith("<"):
                raise TransformerError(
                    f"{source_of(function)}: what is registered has no name of its own; give it "
                    "one: register(function, name=…)"
                )
            self._add(plugin, function, own, options)

        self._call(plugin, "register_transformers", register=add)
        self._call(plugin, "register_kinds", register=self._add_kind)
        self._call(
            plugin,
            "register_accelerators",
            register=lambda name, entry: self._add_accelerator(plugin, name, entry),
        )
        check_members(module, [self.transformers[name].function for name in plugin.transformers])

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
        found = Transformer.of(function, name=full, plugin=plugin.name, options=options)
        if plugin.name != PROJECT:
            _ = found.adapter  # so that a parameter which cannot be read is a fault of the plugin
        self.transformers[full] = found
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

    def _belongs(self, function: Any, module: ModuleType) -> bool:
        """Whether a marked function of a module is not one that is another plugin's already."""
        home = str(getattr(function, "__module__", ""))
        if _is_in(home, module.__name__):
            return True
        file = getattr(sys.modules.get(home), "__file__", None)
        if any(_is_in(home, other) for other in self._homes) or self._has_file(file):
            return False
        return file is None or Path(file).resolve() not in self._files

    def hook_calls(self, hook: str) -> list[tuple[str, Callable[..., Any], tuple[str, ...]]]:
        """The implementations of a hook: (plugin, function, names of its arguments)."""
        return [
            (impl.plugin_name, impl.function, tuple(impl.argnames))
            for impl in getattr(self._manager.hook, hook).get_hookimpls()
        ]


def _is_in(home: str, module: str) -> bool:
    return home == module or home.startswith(module + ".")


def _reason(error: BaseException, own: Iterable[str]) -> str:
    if isinstance(error, TransformerError | ConflictError | PluginError):
        return str(error)
    return said_of(error, own)
