"""``kubetailor flyte``: what a chain makes of tasks, in a module or in a package."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from kubetailor.plugins.cli.options import (
    chain_option,
    config_option,
    output_option,
    required_tailor,
    task_option,
)
from kubetailor.plugins.cli.output import fail, note, print_diff, print_json, unified_diff
from kubetailor.plugins.cli.overriding import GivenOverride, override_options
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.undo import UNDO
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, dump_yaml
from kubetailor.workloads.task_target import as_pod_task

__all__ = ["flyte"]


@click.group()
def flyte() -> None:
    """Show and package Flyte tasks as a chain makes them."""
    if find_spec("flytekit") is None:
        fail("flytekit is not installed: pip install 'kubetailor[flyte]'")


@flyte.command()
@click.argument("source", metavar="MODULE|PACKAGE.tgz|PROJECT/DOMAIN/NAME[@VERSION]")
@click.option("--diff", is_flag=True, help="Show the differences; exit with 1 if there are any.")
@click.option("--templates", is_flag=True, help="Show the task templates of what is registered.")
@override_options
@output_option("yaml", "json", default=None)
@config_option
@chain_option
@task_option
@click.option(
    "-p", "--project", metavar="NAME", help="The project that the tasks are to be registered in."
)
@click.option(
    "-d", "--domain", metavar="NAME", help="The domain that the tasks are to be registered in."
)
@click.option(
    "-v", "--version", metavar="VERSION", help="The version that the tasks are to be registered as."
)
@click.option(
    "-i",
    "--image",
    multiple=True,
    metavar="[NAME=]IMAGE",
    help="An image of a module's tasks, as for pyflyte; repeat it for more.",
)
@click.pass_context
def show(
    ctx: click.Context,
    source: str,
    diff: bool,
    templates: bool,
    override: GivenOverride,
    output: str | None,
    config: Path | None,
    chain: str | None,
    task: dict[str, str],
    project: str | None,
    domain: str | None,
    version: str | None,
    image: tuple[str, ...],
) -> None:
    """Show tasks before and after their chain, or what is registered.

    What comes out of the chain is what will be registered. With an override that is shown first,
    and then what an execution with the override would run.

    MODULE is an importable module or package, or the path of a file or of a package's folder,
    which has an __init__.py. PACKAGE.tgz is what `pyflyte package` wrote.

    The human form leaves out the annotation by which a later phase undoes the chain, and --diff
    also the one that says what ran, so that a task of which nothing else differs is not shown; -o
    shows all.

    PROJECT/DOMAIN/NAME is a launch plan, else a workflow or a task, as FlyteAdmin has it; without a
    version the active launch plan, or what was registered last. Each of its nodes is shown, also
    in subworkflows and in the executions that it launches, in the words of the transformers: as it
    is registered, or with an override or --diff as the cluster would run it. No config is needed.
    FlyteAdmin is that of pyflyte: its config file, or FLYTE_PLATFORM_URL.
    """
    from kubetailor.plugins.client.show import is_name, show_registered
    from kubetailor.plugins.client.unregistered import overridden
    from kubetailor.plugins.flyte.entities import Tailored
    from kubetailor.plugins.flyte.modules import images_of, serialize_module
    from kubetailor.plugins.flyte.packages import Package
    from kubetailor.plugins.flyte.report import Report

    given = {"project": project, "domain": domain, "version": version}
    if is_name(source):
        if image or any(given.values()):
            fail(f"{source} is registered: -p, -d, -v and -i are for modules")
        found = Tailor.find(config, chain=chain, fields=task) or Tailor.built_in()
        differs = show_registered(
            source, override, found, diff=diff, output=output, templates=templates
        )
        if diff and differs:
            ctx.exit(1)
        return
    if templates:
        fail(f"{source} is not registered: --templates is for PROJECT/DOMAIN/NAME")
    known = {key: value for key, value in given.items() if value}
    tailor = required_tailor(config, chain, {**known, **task})
    if source.endswith((".tgz", ".tar.gz")):
        entities = Package.read(Path(source)).entities
    else:
        entities = serialize_module(source, images_of(image), **known)
    if not entities.tasks:
        fail(f"no task in {source}")
    _say_if_not_installed(tailor)
    items: list[Tailored] = list(entities.tailor(tailor, Report()))
    if override:
        items = list(overridden(items, override, tailor))
    names = ("registered", "launched") if override else ("before", "after")
    if diff and not output:
        differences = [text for item in items if (text := _difference(item, names))]
        for text in differences:
            print_diff(text)
        ctx.exit(1 if differences else 0)
    if diff:
        items = [item for item in items if item.outcome.stamped]
    if output:
        _print_data([_machine_form(item) for item in items], output)
    else:
        for item in items:
            _print_item(item, names)
    if diff and items:
        ctx.exit(1)


@flyte.command()
@click.argument("package", type=click.Path(path_type=Path), metavar="IN.tgz")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OUT.tgz",
    help="The file that the package is written to; it may be IN.tgz.",
)
@config_option
@chain_option
@task_option
def package(
    package: Path, output: Path, config: Path | None, chain: str | None, task: dict[str, str]
) -> None:
    """Run the chain over a package that `pyflyte package` wrote.

    The result is the package that pyflyte would have written with kubetailor installed. What an
    earlier chain made of it is undone first.
    """
    from kubetailor.plugins.flyte.packages import Package
    from kubetailor.plugins.flyte.report import Report

    tailor = required_tailor(config, chain, task)
    read = Package.read(package)
    _say_if_not_installed(tailor)
    report = Report()
    for _ in read.entities.tailor(tailor, report):
        pass
    read.write(output)
    click.echo(f"{output}: {report.tally}", err=True)


def _say_if_not_installed(tailor: Tailor) -> None:
    from kubetailor.plugins.flyte.tailoring import serializes

    if not serializes(tailor):
        note(
            f"{tailor.config.file}: `phases` does not list serialize: no chain runs here, and what "
            "an earlier one made is undone"
        )


def _machine_form(item: Any) -> JsonMap:
    result = item.outcome.result
    return {
        "task": item.task,
        **({"node": item.node} if item.node else {}),
        "before": item.before,
        "after": item.after,
        "changes": [change.as_json() for change in result.changes()],
        "deferred": None
        if result.until is None
        else {"steps": list(result.deferred), "until": result.until, "unknown": result.unknown},
    }


def _print_data(items: list[JsonMap], form: str) -> None:
    if form == "json":
        print_json(items)
    else:
        click.echo(dump_yaml([items]), nl=False)


def _difference(item: Any, names: tuple[str, str]) -> str:
    """What differs for people."""
    if not item.outcome.stamped:
        return ""
    before = _without((UNDO, STAMP), item.before)
    after = _without((UNDO, STAMP), item.after, before)
    old, new = _titles(item, names)
    # A container that became a pod is shown as that pod: what is left is the chain's.
    return unified_diff(as_pod_task(before, after), after, old, new)


def _print_item(item: Any, names: tuple[str, str]) -> None:
    before, after = (_without((UNDO,), each) for each in (item.before, item.after))
    old, new = _titles(item, names)
    if item.outcome.stamped:
        click.echo(f"---\n# {old}\n{dump_yaml([before])}", nl=False)
        click.echo(f"---\n# {new}\n{dump_yaml([after])}", nl=False)
    else:
        click.echo(f"---\n# {item.where}: unchanged\n{dump_yaml([before])}", nl=False)


def _titles(item: Any, names: tuple[str, str]) -> tuple[str, str]:
    old, new = names
    return f"{item.where}, {old}", f"{item.where}, {new}"


def _without(hidden: tuple[str, ...], value: Any, like: Any = None) -> Any:
    """A template without annotations for machines, and without the maps that this leaves empty.

    Args:
        hidden: the annotations.
        value: the template, or a part of it.
        like: the same part of another: what is empty there may be so here.
    """
    if isinstance(value, list):
        there = like if isinstance(like, list) else []
        pairs = itertools.zip_longest(value, there[: len(value)])
        return [_without(hidden, item, other) for item, other in pairs]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        if key in hidden:
            continue
        other = like.get(key) if isinstance(like, dict) else None
        kept = _without(hidden, item, other)
        if item and kept == {} and other != {}:
            continue
        found[key] = kept
    return found
