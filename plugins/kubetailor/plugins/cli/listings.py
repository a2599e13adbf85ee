"""``kubetailor plugins``, ``accelerators`` and ``kinds``: what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kubetailor.plugins.cli.installed import installed
from kubetailor.plugins.cli.options import config_option, output_option
from kubetailor.plugins.cli.output import print_json, print_table, warn
from kubetailor.registry import Accelerator, KubetailorError
from kubetailor.workloads import dotted

__all__ = ["accelerators", "kinds", "plugins"]


@click.command()
@output_option("table", "json", default="table")
@config_option
def plugins(output: str, config: Path | None) -> None:
    """List the plugins, with what is wrong with some.

    `kubetailor transformers` has the names of what they register.
    """
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
                str(len(row["transformers"]) or ""),
                row["error"] or "",
            )
            for row in rows
        ],
    )


@click.command()
@output_option("table", "json", default="table")
@config_option
def accelerators(output: str, config: Path | None) -> None:
    """List the accelerators.

    With the resource, Flyte's word for the device, and the nodes by their labels. It is a long
    list, to be looked through with grep; `-o json` has all that an entry says.
    """
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

    With the roles of their pods, where Kueue reads a queue label, by which field it suspends them,
    which container runs the task, and which fields of their pods their operator does not read.
    """
    found, _ = installed(config)
    rows: list[dict[str, Any]] = [
        {
            "group": kind.group,
            "kind": kind.name,
            "roles": list(kind.roles),
            "queue": kind.queue_place or None,
            "suspend": dotted(kind.suspend) if kind.suspend else None,
            "primary": list(kind.primary),
            "ignored": list(kind.ignored),
            "reads": list(kind.reads) or None,
        }
        for kind in found.kinds.values()
    ]
    if output == "json":
        print_json(rows)
        return
    print_table(
        ("KIND", "GROUP", "ROLES", "QUEUE", "SUSPEND", "PRIMARY", "IGNORED"),
        [
            (
                row["kind"],
                row["group"],
                ", ".join(row["roles"]),
                row["queue"] or "",
                row["suspend"] or "",
                ", ".join(row["primary"]),
                _unread(row),
            )
            for row in rows
        ],
    )


def _unread(row: Mapping[str, Any]) -> str:
    """What is not read of the pods of a kind; where that is nearly all, `-o json` has what is."""
    if row["reads"]:
        return f"all but {len(row['reads'])} fields"
    return ", ".join(row["ignored"])
