"""``kubetailor plugins``, ``accelerators`` and ``kinds``: what there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kubetailor.plugins.cli.installed import installed
from kubetailor.plugins.cli.options import config_option, output_option
from kubetailor.plugins.cli.output import print_json, print_table, warn
from kubetailor.registry import Accelerator, KubetailorError

__all__ = ["accelerators", "kinds", "plugins"]


@click.command()
@output_option("table", "json", default="table")
@config_option
def plugins(output: str, config: Path | None) -> None:
    """List the plugins, with what is wrong with some."""
    found, _ = installed(config)
    rows: list[dict[str, Any]] = [
        {
            "name": plugin.name,
            "origin": plugin.origin,
            "version": plugin.version,
            "hooks": plugin.hooks,
            "transformers": plugin.transformers,
            "error": plugin.error,
        }
        for plugin in found.all
    ]
    if output == "json":
        print_json(rows)
        return
    print_table(
        ("NAME", "ORIGIN", "VERSION", "HOOKS", "TRANSFORMERS", "ERROR"),
        [
            (
                row["name"],
                row["origin"],
                row["version"] or "",
                ", ".join(row["hooks"]),
                ", ".join(row["transformers"]),
                row["error"] or "",
            )
            for row in rows
        ],
    )


@click.command()
@output_option("table", "json", default="table")
@config_option
def accelerators(output: str, config: Path | None) -> None:
    """List the accelerators."""
    _, catalogue = installed(config)
    found: list[Accelerator] = []
    for name in sorted(catalogue):
        try:
            found.append(catalogue[name])
        except KubetailorError as error:
            warn(str(error))
    if output == "json":
        print_json([asdict(entry) for entry in found])
        return
    print_table(
        ("NAME", "RESOURCE", "DEVICE", "NODES"),
        [
            (entry.name, entry.resource, entry.device or "", ", ".join(_nodes(entry)))
            for entry in found
        ],
    )


def _nodes(entry: Accelerator) -> Iterator[str]:
    """The nodes that have it, as kubectl writes a label selector."""
    for key, value in entry.node_selector.items():
        yield f"{key}={value}"
    for requirement in entry.node_requirements:
        values = ", ".join(requirement.get("values", ()))
        yield f"{requirement['key']} {requirement['operator']}" + (f" ({values})" if values else "")


@click.command()
@output_option("table", "json", default="table")
@config_option
def kinds(output: str, config: Path | None) -> None:
    """List the kinds of workload.

    With the roles of their pods, and whether Kueue reads a queue label on them.
    """
    found, _ = installed(config)
    rows: list[dict[str, Any]] = [
        {"group": kind.group, "kind": kind.name, "roles": list(kind.roles), "queue": kind.queue}
        for kind in found.kinds.values()
    ]
    if output == "json":
        print_json(rows)
        return
    print_table(
        ("KIND", "GROUP", "ROLES", "QUEUE"),
        [
            (row["kind"], row["group"], ", ".join(row["roles"]), "yes" if row["queue"] else "no")
            for row in rows
        ],
    )
