"""``kubetailor plugins``, ``accelerators`` and ``kinds``: what there is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kubetailor.plugins.cli.installed import installed
from kubetailor.plugins.cli.options import config_option, output_option
from kubetailor.plugins.cli.output import fail, print_json, print_table, shortened, warn
from kubetailor.registry import Accelerator, KubetailorError
from kubetailor.workloads import Kind, dotted, dump_yaml, nearest

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
@click.argument("name", required=False)
@output_option("table", "json", default="table")
@config_option
def accelerators(name: str | None, output: str, config: Path | None) -> None:
    """List the accelerators, or show all that one means.

    With the resource, Flyte's word for the device, and the nodes by their labels. It is a long
    list, to be looked through with grep; `-o json` has all that an entry says.
    """
    _, catalogue = installed(config)
    if name is not None:
        _print_one(asdict(catalogue.require(name)), output)
        return
    found: list[Accelerator] = []
    for each in sorted(catalogue):
        try:
            found.append(catalogue[each])
        except KubetailorError as error:
            warn(str(error))
    if output == "json":
        print_json([asdict(entry) for entry in found])
        return
    print_table(
        ("NAME", "RESOURCE", "DEVICE", "NODES"),
        [
            (entry.name, entry.resource, entry.device or "", shortened(", ".join(_nodes(entry))))
            for entry in found
        ],
    )


def _print_one(row: Mapping[str, Any], output: str) -> None:
    """One entry whole: of what it does not say, nothing but in JSON."""
    if output == "json":
        print_json(row)
    else:
        said = {key: value for key, value in row.items() if value not in (None, (), [], {})}
        click.echo(dump_yaml([json.loads(json.dumps(said))]), nl=False)


def _nodes(entry: Accelerator) -> Iterator[str]:
    """The nodes that have it, as kubectl writes a label selector."""
    for key, value in entry.node_selector.items():
        yield f"{key}={value}"
    for requirement in entry.node_requirements:
        values = ", ".join(requirement.get("values", ()))
        yield f"{requirement['key']} {requirement['operator']}" + (f" ({values})" if values else "")


@click.command()
@click.argument("name", required=False, metavar="[KIND[.GROUP]]")
@output_option("table", "json", default="table")
@config_option
def kinds(name: str | None, output: str, config: Path | None) -> None:
    """List the kinds of workload, or show one.

    With the roles of their pods, where Kueue reads a queue label, and by which field it suspends
    them. One kind is shown with the container that runs the task too, and with the fields of its
    pods that its operator does not read.
    """
    found, _ = installed(config)
    chosen = list(found.kinds.values()) if name is None else [_kind(found.kinds.values(), name)]
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
        for kind in chosen
    ]
    if name is not None:
        _print_one(rows[0], output)
    elif output == "json":
        print_json(rows)
    else:
        print_table(
            ("KIND", "GROUP", "ROLES", "QUEUE", "SUSPEND"),
            [
                (
                    row["kind"],
                    row["group"],
                    shortened(", ".join(row["roles"])),
                    row["queue"] or "",
                    row["suspend"] or "",
                )
                for row in rows
            ],
        )


def _kind(known: Iterable[Kind], name: str) -> Kind:
    """The kind of a name, with its group where several have it, as kubectl writes it."""
    rows = {f"{kind.name}.{kind.group}".rstrip("."): kind for kind in known}
    if name in rows:
        return rows[name]
    found = [full for full, kind in rows.items() if kind.name == name]
    if not found:
        fail(f"no kind {name!r}; {nearest(name, [kind.name for kind in rows.values()])}")
    if len(found) > 1:
        fail(f"several kinds are called {name!r}; name one: {', '.join(found)}")
    return rows[found[0]]
