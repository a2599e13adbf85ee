"""The command ``kubetailor`` and its commands, each imported when it is wanted."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

from kubetailor.plugins.cli.output import Group, warn
from kubetailor.registry import KubetailorError
from kubetailor.registry.imports import home_of, own_version
from kubetailor.registry.raised import said_of

__all__ = ["cli"]

_HERE = "kubetailor.plugins.cli"
_OWN: Mapping[str, str] = {
    "accelerators": "listings",
    "check": "check",
    "explain": "explain",
    "kinds": "listings",
    "plugins": "listings",
    "render": "render",
    "schema": "check",
    "transformers": "transformers",
}
"""Command -> the module that has it, as a function of the same name."""


class _Root(Group):
    """Our own commands at once; those of plugins, which must be loaded, when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Our own, and those of plugins."""
        return sorted({*_OWN, *_plugin_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command of ours, else of a plugin."""
        if cmd_name in _OWN:
            module = importlib.import_module(f"{_HERE}.{_OWN[cmd_name]}")
            command: click.Command = getattr(module, cmd_name)
            return command
        return _plugin_commands(ctx).get(cmd_name)


def _plugin_commands(ctx: click.Context) -> Mapping[str, click.Command]:
    """What plugins add with `register_commands`; one that fails hides no other."""
    key = f"{_HERE}.commands"
    if key not in ctx.meta:
        found, faults = _registered()
        for fault in () if ctx.resilient_parsing else faults:
            warn(fault)
        ctx.meta[key] = found
    commands: Mapping[str, click.Command] = ctx.meta[key]
    return commands


def _registered() -> tuple[dict[str, click.Command], list[str]]:
    """The commands of plugins, and what is wrong with some."""
    from kubetailor.plugins.cli.installed import plugins_in_force

    plugins, faults = plugins_in_force()
    found: dict[str, click.Command] = {}
    for name, function, arguments in plugins.hook_calls("register_commands"):
        plugin, group = plugins[name], click.Group()
        what = f"register_commands of {plugin.origin}"
        try:
            function(**dict.fromkeys(arguments, group))
        except Exception as error:
            known = isinstance(error, KubetailorError)
            reason = str(error) if known else said_of(error, home_of(function.__module__))
            faults.append(plugin.fault(f"{what}: {reason}"))
        for name, command in group.commands.items():
            if name in _OWN or name in found:
                faults.append(plugin.fault(f"{what}: there is a command {name!r} already"))
            else:
                found[name] = command
    return found, faults


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"kubetailor {own_version() or 'from a checkout that is not installed'}")
        ctx.exit()


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Cut every pod and job that a pipeline launches to the cluster.

    A config, kubetailor.yaml, says which transformers run and in which order.

    Exit codes: 0 done; 1 what `--check` or `-o diff` looks for is there; 2 an error.
    """
