"""What is installed, with and without a config; a broken plugin is a warning here."""

from __future__ import annotations

from pathlib import Path

from kubetailor.plugins.cli.output import warn
from kubetailor.registry import Catalogue, ConfigError
from kubetailor.registry.location import config_path
from kubetailor.registry.plugins import Plugins

__all__ = ["installed", "plugins_in_force"]


def installed(given: Path | None) -> tuple[Plugins, Catalogue]:
    """The plugins and accelerators of the config in force, or of none if there is none.

    Raises:
        ConfigError: the config cannot be read.
    """
    from kubetailor.registry.load import read_installed

    plugins, catalogue = read_installed(config_path(given))
    for fault in plugins.faults:
        warn(fault)
    return plugins, catalogue


def plugins_in_force() -> tuple[Plugins, list[str]]:
    """The plugins of the config in force, or without it where it cannot be read; and the faults."""
    from kubetailor.registry.load import read_installed

    try:
        plugins, _ = read_installed(config_path())
    except ConfigError as error:
        plugins, _ = read_installed(None)
        return plugins, [str(error), *plugins.faults]
    return plugins, list(plugins.faults)
