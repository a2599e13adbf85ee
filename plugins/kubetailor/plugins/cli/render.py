"""``kubetailor render``: manifests as they come out of their chains."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import click

from kubetailor.plugins.cli.output import print_diff, unified_diff
from kubetailor.plugins.cli.tailoring import Asked, Outcome, over_manifests
from kubetailor.workloads import dump_json, dump_yaml
from kubetailor.workloads.task_target import as_pod_task

__all__ = ["render"]


@click.command()
@over_manifests("yaml", "json", "diff", "patch", default=None)
@click.option(
    "--check",
    is_flag=True,
    help="Print which objects would change, unless -o asks for more; exit with 1 if any would.",
)
@click.pass_context
def render(ctx: click.Context, asked: Asked, output: str | None, check: bool) -> None:
    """Run the chain over manifests.

    Prints what comes out: as YAML (the default) a stream; as JSON one object, or a List of several;
    as diff the unified diff of each object that changes; as patch its RFC 6902 patch, one line for
    each object. Lists are taken apart. Objects of a kind that is not known come out as they are,
    unless they hold containers: then they are refused. If any object is at fault, nothing is
    printed.

    Exits with 1 if --check or `-o diff` finds a change.
    """
    outcomes = asked.outcomes()
    chosen = output or ("names" if check else "yaml")
    _PRINTERS[chosen](outcomes)
    if (check or output == "diff") and any(outcome.result.changed for outcome in outcomes):
        ctx.exit(1)


def _print_yaml(outcomes: list[Outcome]) -> None:
    click.echo(dump_yaml([outcome.result.after for outcome in outcomes]), nl=False)


def _print_json(outcomes: list[Outcome]) -> None:
    click.echo(dump_json([outcome.result.after for outcome in outcomes]), nl=False)


def _print_diffs(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        old = f"{outcome.title} ({outcome.document.where})"
        new = f"{outcome.title} ({outcome.chain_text}, phase {outcome.phase})"
        before, after = outcome.result.before, outcome.result.after
        # A task's container that became a pod is shown as that pod, so that what is left is ours.
        print_diff(unified_diff(as_pod_task(before, after), after, old, new))


def _print_patches(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        click.echo(json.dumps(outcome.result.patch(), ensure_ascii=False))


def _print_names(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.result.changed:
            click.echo(f"{outcome.document.where}: {outcome.title} would change")


_PRINTERS: Mapping[str, Callable[[list[Outcome]], None]] = {
    "yaml": _print_yaml,
    "json": _print_json,
    "diff": _print_diffs,
    "patch": _print_patches,
    "names": _print_names,
}
