"""``kubetailor check`` and ``kubetailor schema``: whether a config is sound, and its form."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from kubetailor.plugins.cli.installed import installed
from kubetailor.plugins.cli.options import config_option, no_config
from kubetailor.plugins.cli.output import fail, faults_of, print_json
from kubetailor.registry import Chain
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.registry.location import config_path
from kubetailor.registry.step import LAYERS

__all__ = ["check", "schema"]


@click.command()
@config_option
def check(config: Path | None) -> None:
    """Check the config and the plugins.

    Says what is wrong, with its place; if nothing is, what there is, and what to think over.
    """
    from kubetailor.registry.load import check_config

    path = config_path(config)
    if path is None:
        raise no_config()
    found, faults = check_config(path)
    if found is None:
        fail(*(message for fault in faults for message in faults_of(fault)))
    for chain in found.chains.values():
        click.echo(f"chain {chain.name}: {_layers(chain)}")
    for advice in found.advice:
        click.echo(f"Advice: {advice}")
    plugins = [plugin for plugin in found.plugins.all if plugin.distribution != PROJECT]
    counts = {
        "chain": found.chains,
        "plugin": plugins,
        "transformer": found.plugins.transformers,
    }
    parts = (_count(len(things), what) for what, things in counts.items())
    click.echo(f"{found.file}: {', '.join(parts)}: no error")


def _layers(chain: Chain) -> str:
    counts = Counter(step.layer for step in chain.steps)
    found = [f"{counts[layer]} in {layer}" for layer in LAYERS if counts[layer]]
    return _count(len(chain.steps), "step") + (f" ({', '.join(found)})" if found else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@click.command()
@click.argument("what", type=click.Choice(("config", "override")), default="config")
@config_option
def schema(what: str, config: Path | None) -> None:
    """Print the JSON Schema of a config, or of an override.

    It is made for what is installed; with it an editor that has a YAML language server completes
    and checks kubetailor.yaml, or the file of `--override`.
    """
    from kubetailor.registry.schema import config_schema, override_schema

    of = {"config": config_schema, "override": override_schema}
    print_json(of[what](*installed(config)))
