"""``kubetailor explain``: every changed field, and who changed it."""

from __future__ import annotations

import os
from typing import Any

import click

from kubetailor.plugins.cli.output import print_json, print_table, shortened
from kubetailor.plugins.cli.tailoring import Outcome, over_manifests
from kubetailor.registry import Change, Result

__all__ = ["changes_as_json", "explain", "print_changes"]


@click.command()
@over_manifests("table", "json", default="table")
def explain(outcomes: list[Outcome], output: str) -> None:
    """Say who changes which field.

    For every field that the chain changes: its old and new value, the step, its plugin, and where
    the step is written.

    The table shortens long values; `-o json` has them whole.
    """
    if output == "json":
        print_json([row for outcome in outcomes for row in _rows(outcome)])
        return
    for index, outcome in enumerate(outcomes):
        if index:
            click.echo()
        title = f"{outcome.title} ({outcome.document.where}), {outcome.chain_text}"
        print_changes(title, outcome.result)


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    document = outcome.document
    found = {"object": outcome.title, "source": document.source, "line": document.line}
    return [{**found, **row} for row in changes_as_json(outcome.result)]


def changes_as_json(result: Result) -> list[dict[str, Any]]:
    """The changes of a run as JSON data."""
    return [change.as_json() for change in result.changes()]


def print_changes(title: str, result: Result) -> None:
    """The changes of a run as a table.

    Args:
        title: what the table is about.
        result: the run.
    """
    changes = result.changes()
    if not changes:
        click.echo(f"{title}: no change")
        return
    columns = ("FIELD", "CHANGE", "STEP", "PLUGIN", "PLACE")
    print_table(columns, map(_cells, changes), title=title)


def _cells(change: Change) -> tuple[str, ...]:
    old = "" if change.op == "add" else f"{shortened(change.old)} "
    new = "removed" if change.op == "remove" else shortened(change.new)
    return (
        change.field,
        f"{old}→ {new}",
        f"{change.step} ({change.layer})",
        change.plugin,
        _near(change.place),
    )


def _near(place: str) -> str:
    """A place in a file, from the working directory if it is below that."""
    here = os.getcwd() + os.sep
    return place.removeprefix(here)
