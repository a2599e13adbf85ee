"""The Flyte host: the chain over each task that flytekit serializes, and commands for packages.

flytekit imports this package with `kubetailor.plugins.flyte.install` in every process, so nothing
heavier than pluggy may be imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

__all__ = ["register_commands"]


@pluggy.HookimplMarker("kubetailor")
def register_commands(cli: click.Group) -> None:
    """Add ``kubetailor flyte``."""
    from kubetailor.plugins.flyte.commands import flyte

    cli.add_command(flyte)
