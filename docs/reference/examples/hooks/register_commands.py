"""A command beside those of kubetailor."""

import click

from kubetailor.registry import hookimpl


@hookimpl
def register_commands(cli: click.Group) -> None:
    @cli.command()
    def pools() -> None:
        """List the pools of the cluster."""
        click.echo("small\nlarge")
