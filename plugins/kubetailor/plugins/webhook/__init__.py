"""The webhook host: the chain over what is created in a cluster, and commands to serve it.

Every host loads this module as a plugin, so nothing heavy may be imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubetailor.registry import hookimpl

if TYPE_CHECKING:
    import click

__all__ = ["register_commands"]


@hookimpl
def register_commands(cli: click.Group) -> None:
    """Add ``kubetailor webhook``."""
    from kubetailor.plugins.webhook.commands import webhook

    cli.add_command(webhook)
