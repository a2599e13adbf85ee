"""Changes as people read them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from kubetailor.plugins.cli.output import print_table, shortened
from kubetailor.registry import Change

__all__ = ["near", "print_changes"]


def print_changes(title: str, changes: Sequence[Change]) -> None:
    """Changes as a table.

    Args:
        title: what the table is about.
        changes: the changes.
    """
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
        near(change.place),
    )


def near(place: str) -> str:
    """A place in a file, from the working directory if it is below that."""
    here = os.getcwd() + os.sep
    return place.removeprefix(here)
