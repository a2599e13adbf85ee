"""``kubetailor launch``: an execution of what is registered, with an override."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubetailor.plugins.cli.options import config_option
from kubetailor.plugins.cli.output import note, print_table, shortened
from kubetailor.plugins.cli.overriding import GivenOverride, override_options
from kubetailor.plugins.client.asking import ask
from kubetailor.plugins.client.rendering import print_diffs
from kubetailor.registry.source import read_core
from kubetailor.workloads import dump_yaml

if TYPE_CHECKING:
    from kubetailor.plugins.client.launching import Launch
    from kubetailor.plugins.client.preview import Preview

__all__ = ["launch"]


def _pairs(_: click.Context, __: click.Parameter, words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{word!r}: expected KEY=VALUE")
        found[key] = value
    return found


@click.command()
@click.argument("name", metavar="PROJECT/DOMAIN/NAME[@VERSION]")
@click.option(
    "--inputs",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The inputs: YAML or JSON, a map of names.",
)
@override_options
@click.option("--dry-run", is_flag=True, help="Show what every node would become; launch nothing.")
@click.option("--name", "execution_name", metavar="NAME", help="The name of the execution.")
@click.option(
    "--labels",
    "--label",
    multiple=True,
    callback=_pairs,
    metavar="KEY=VALUE",
    help="A label of the execution, in place of all of the launch plan's; repeat it for more.",
)
@click.option(
    "--annotations",
    "--annotation",
    multiple=True,
    callback=_pairs,
    metavar="KEY=VALUE",
    help="An annotation of the execution, beside the launch plan's; repeat it for more.",
)
@click.option("--overwrite-cache", is_flag=True, help="Run cached tasks again.")
@click.option(
    "--interruptible", type=bool, default=None, help="Whether it may run on spot machines."
)
@config_option
def launch(
    name: str,
    inputs: Path | None,
    override: GivenOverride,
    dry_run: bool,
    execution_name: str | None,
    labels: dict[str, str],
    annotations: dict[str, str],
    overwrite_cache: bool,
    interruptible: bool | None,
    config: Path | None,
) -> None:
    """Launch what is registered, with an override.

    NAME is a launch plan, else a workflow or a task; without a version the active launch plan, or
    what was registered last. Nothing is registered again.

    FlyteAdmin is that of pyflyte: its config file, or FLYTE_PLATFORM_URL.

    Says on stderr what the override does, refuses one that does nothing, and prints the execution's
    name and its page in the console.
    """
    from kubetailor.plugins.client.inputs import read_inputs
    from kubetailor.plugins.client.launching import prepare, tailor_in_force
    from kubetailor.plugins.client.remote import entity_of, look_up
    from kubetailor.plugins.client.request import Request

    with redirect_stdout(sys.stderr):  # what a plugin or flytekit prints
        tailor = tailor_in_force(config)
        said = override.read(tailor.config.plugins)
        tailor.config.overrides.compile(said)
        registered = look_up(name)
        remote, entity = registered.remote, entity_of(registered)
        given = read_inputs(inputs, remote, entity)
        request = Request(
            annotations=annotations,
            labels=labels,
            inputs=given.values,
            overwrite_cache=overwrite_cache,
        )
        ready = prepare(remote, entity, said, request, tailor=tailor, registered=registered)
        ready.say()
        if not dry_run:
            _print_steps(ready.preview)
    if dry_run:
        _print_dry(ready)
        return
    execution = ask(
        f"launch of {registered.name}",
        lambda: remote.execute(
            entity,
            inputs=given.values,
            type_hints=given.types,
            execution_name=execution_name,
            options=_options(labels, ready.annotations),
            overwrite_cache=overwrite_cache or None,
            interruptible=interruptible,
        ),
    )
    click.echo(execution.id.name)
    click.echo(execution.execution_url)


def _options(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Any:
    from flytekit.core.options import Options
    from flytekit.models.common import Annotations, Labels

    return Options(
        labels=Labels(dict(labels)) if labels else None,
        annotations=Annotations(dict(annotations)) if annotations else None,
    )


def _print_steps(preview: Preview | None) -> None:
    """Which step of the override changes which node."""
    if preview is None or preview.override is None:
        return
    given = {step.name: shortened(read_core(step.written)) for step in preview.override.steps}
    rows = [
        (node.title, node.task, step, given[step])
        for node in preview.nodes
        for step in dict.fromkeys(each.step for each in node.changes if each.layer == "override")
    ]
    if rows:
        print_table(("NODE", "TASK", "STEP", "WITH"), rows)


def _print_dry(ready: Launch) -> None:
    if ready.preview is not None:
        print_diffs(ready.preview)
    if ready.annotations:
        click.echo(dump_yaml([{"annotations": dict(ready.annotations)}]), nl=False)
    note("a dry run: nothing is launched")
