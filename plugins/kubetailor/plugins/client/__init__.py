"""The client: what is registered with FlyteAdmin, and executions of it with an override.

Every host loads this module as a plugin, and every `pyflyte` imports it with what gives `pyflyte
run` its options, so nothing heavier than pluggy may be imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

__all__ = ["register_commands"]


@pluggy.HookimplMarker("kubetailor")
def register_commands(cli: click.Group) -> None:
    """Add ``kubetailor launch``, ``override`` and ``execution``."""
    from kubetailor.plugins.client.commands.annotate import override
    from kubetailor.plugins.client.commands.edit import edit
    from kubetailor.plugins.client.commands.execution import execution
    from kubetailor.plugins.client.commands.launch import launch

    override.add_command(edit)
    for command in (launch, override, execution):
        cli.add_command(command)
