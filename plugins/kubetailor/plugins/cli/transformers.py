"""``kubetailor transformers``: what a step may use, and with which parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kubetailor.plugins.cli.installed import installed
from kubetailor.plugins.cli.options import config_option, output_option
from kubetailor.plugins.cli.output import fail, print_json, print_table
from kubetailor.registry import Transformer
from kubetailor.registry.describe import Parameter, description_of, parameters_of

__all__ = ["transformers"]


@click.command()
@click.argument("name", required=False)
@output_option("table", "json", default="table")
@config_option
def transformers(name: str | None, output: str, config: Path | None) -> None:
    """List the transformers, or show the parameters of one."""
    plugins, _ = installed(config)
    known = plugins.transformers
    if name is not None and name not in known:
        fail(plugins.no_transformer(name))
    chosen = [known[name]] if name is not None else [known[n] for n in sorted(known)]
    if output == "json":
        rows = [_as_json(transformer) for transformer in chosen]
        print_json(rows if name is None else rows[0])
    elif name is not None:
        _show(known[name])
    else:
        print_table(
            ("NAME", "PLUGIN", "SUMMARY"),
            [(each.name, each.plugin, each.summary) for each in chosen],
        )


def _as_json(transformer: Transformer) -> dict[str, Any]:
    return {
        "name": transformer.name,
        "plugin": transformer.plugin,
        "source": transformer.source,
        "receives": transformer.receiver,
        "description": description_of(transformer),
        "parameters": [
            {
                "name": parameter.name,
                "type": parameter.type,
                "required": parameter.required,
                "default": _plain(parameter.default),
                "description": parameter.doc,
            }
            for parameter in parameters_of(transformer)
        ],
    }


def _show(transformer: Transformer) -> None:
    click.secho(transformer.name, bold=True)
    click.echo()
    if description := description_of(transformer):
        click.echo(f"{description}\n")
    if parameters := parameters_of(transformer):
        rows = [(p.name, p.type, _default(p), p.doc) for p in parameters]
        print_table(("PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"), rows)
        click.echo()
    click.echo(f"Receives: {transformer.receiver}")
    click.echo(f"Plugin:   {transformer.plugin}")
    click.echo(f"Source:   {transformer.source}")


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "required"
    return "" if parameter.default is None else json.dumps(_plain(parameter.default))


def _plain(value: Any) -> Any:
    """A default as JSON data; what has no form there by its text."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
    return value
