"""Reading a config: the way in for hosts, and for `kubetailor check`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.compiler import Compiler
from kubetailor.registry.config import Config
from kubetailor.registry.errors import ConfigError
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.reading import ConfigErrors
from kubetailor.registry.source import Source
from kubetailor.workloads import KubetailorError

__all__ = ["built_in_config", "check_config", "load_config", "read_installed"]

_BUILT_IN: Final = b"phases: [serialize, launch, admit]"


def load_config(path: Path, *, entry_points: bool = True) -> Config:
    """Read, check and compile the config at a path.

    Args:
        path: the file.
        entry_points: whether to load installed plugins.

    Raises:
        ConfigError: the first fault, with its place.
        PluginError: plugins that cannot be loaded.
    """
    config, faults = check_config(path, entry_points=entry_points)
    if faults:
        raise faults[0]
    assert config is not None
    return config


def built_in_config(*, entry_points: bool = True) -> Config:
    """The config of where there is none: no chain, and what may be overridden by default.

    Args:
        entry_points: whether to load installed plugins.

    Raises:
        PluginError: plugins that cannot be loaded.
    """
    compiler = Compiler(Source(_BUILT_IN, "no config"), Path.cwd(), entry_points)
    config = compiler.config()
    if compiler.faults:
        raise compiler.faults[0]
    return config


def check_config(
    path: Path, *, entry_points: bool = True
) -> tuple[Config | None, list[KubetailorError]]:
    """The config at a path and all its faults, plugins first; None if it has any.

    Args:
        path: the file.
        entry_points: whether to load installed plugins.
    """
    try:
        compiler = Compiler.of(path, entry_points)
    except ConfigErrors as error:
        return None, list(error.faults)
    except ConfigError as error:
        return None, [error]
    config = compiler.config()
    return (None if compiler.faults else config), compiler.faults


def read_installed(path: Path | None, *, entry_points: bool = True) -> tuple[Plugins, Catalogue]:
    """The plugins and accelerators of a config, or those that are there without one.

    The chains are not looked at, and plugins that cannot be loaded are `Plugins.faults`.

    Args:
        path: the file, or None.
        entry_points: whether to load installed plugins.

    Raises:
        ConfigError: the config cannot be read.
    """
    if path is None:
        plugins = Plugins.load(entry_points=entry_points)
        return plugins, Catalogue(plugins.accelerators)
    compiler = Compiler.of(path, entry_points)
    return compiler.plugins, compiler.catalogue
