"""``kubetailor execution``: what an execution was launched with, and launching it again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubetailor.plugins.cli.options import config_option, output_option
from kubetailor.plugins.cli.output import note, print_diff, print_json, unified_diff, warn
from kubetailor.plugins.cli.overriding import GivenOverride, override_options
from kubetailor.registry import OverrideError
from kubetailor.registry.overrides.document import OVERRIDE, Override
from kubetailor.workloads import dump_yaml

if TYPE_CHECKING:
    from kubetailor.plugins.client.executions import Execution
    from kubetailor.registry.tailor import Tailor

__all__ = ["execution"]

_ID = "PROJECT/DOMAIN/ID"


@click.group()
def execution() -> None:
    """Show, compare and relaunch executions, with their overrides.

    FlyteAdmin is that of pyflyte: its config file, or FLYTE_PLATFORM_URL.
    """


@execution.command()
@click.argument("name", metavar=_ID)
@output_option("yaml", "json", default="yaml")
@config_option
def show(name: str, output: str, config: Path | None) -> None:
    """Show an execution: its override, and what its nodes became.

    The override is what FlyteAdmin keeps with the execution, a launch plan's included. What the
    nodes became is worked out by the config that is in force now: the stamps of the objects in the
    cluster name the digest of the chain that cut them.
    """
    with redirect_stdout(sys.stderr):
        found = _described(_read(name), _tailor(config))
    if output == "json":
        print_json(found)
    else:
        click.echo(dump_yaml([found]), nl=False)


@execution.command()
@click.argument("first", metavar=f"{_ID} {_ID}")
@click.argument("second", metavar="")
@config_option
@click.pass_context
def diff(ctx: click.Context, first: str, second: str, config: Path | None) -> None:
    """Compare two executions: their overrides and their nodes.

    Exits with 1 if they differ. Both are worked out by the config that is in force now.
    """
    with redirect_stdout(sys.stderr):
        tailor = _tailor(config)
        read = [_read(text) for text in (first, second)]
        one, other = (_described(each, tailor) for each in read)
    for of_one in ("execution", "phase"):
        del one[of_one], other[of_one]
    if text := unified_diff(one, other, *(f"execution {each.id}" for each in read)):
        print_diff(text)
        ctx.exit(1)


@execution.command()
@click.argument("name", metavar=_ID)
@override_options
@config_option
def relaunch(name: str, override: GivenOverride, config: Path | None) -> None:
    """Launch an execution again, with its override or another.

    The inputs, labels, annotations and all else of the request stay. An override that is given
    takes the place of the execution's own; that of its launch plan is below either.
    """
    from kubetailor.plugins.client.relaunching import prepare_relaunch

    with redirect_stdout(sys.stderr):
        tailor = _tailor(config)
        found = _read(name)
        given = override.read(tailor.config.plugins) if override else None
        ready = prepare_relaunch(found, given, tailor)
        ready.say()
        _say_override(ready.annotations)
    made = found.relaunch(ready.annotations)
    click.echo(made.id.name)
    click.echo(made.url)


def _tailor(config: Path | None) -> Tailor:
    from kubetailor.plugins.client.launching import tailor_in_force

    return tailor_in_force(config)


def _read(text: str) -> Execution:
    from kubetailor.plugins.client.executions import ExecutionId
    from kubetailor.plugins.client.remote import look_up_execution

    return look_up_execution(ExecutionId.parse(text))


def _say_override(annotations: Mapping[str, str]) -> None:
    text = annotations.get(OVERRIDE)
    steps = () if text is None else Override.parse(text).steps
    uses = ", ".join(dict.fromkeys(step.use for step in steps))
    note(f"with an override: {uses}" if uses else "without an override of its own")


def _described(found: Execution, tailor: Tailor) -> dict[str, Any]:
    """An execution as data; what there is to say of it goes to stderr."""
    from kubetailor.plugins.client.editable import document
    from kubetailor.plugins.client.previewing import preview_of

    shown = preview_of(found, tailor)
    for fault in shown.faults:
        warn(f"{found.id}: by this config it would be refused: {fault}")
    try:
        said = found.override()
        override: Any = None if said is None else said.document()
    except OverrideError:  # which is among the faults
        override = found.annotations.get(OVERRIDE)
    return {
        "execution": str(found.id),
        "phase": found.phase,
        "launched": str(found.launched),
        "override": override,
        **document(shown, tailor.config.catalogue),
    }
