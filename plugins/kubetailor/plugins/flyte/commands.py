"""``kubetailor flyte``: what a chain makes of tasks, in a module or in a package."""

from __future__ import annotations

from collections.abc import Iterable
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
from kubetailor.plugins.cli.output import fail, print_diff, print_json, unified_diff
from kubetailor.plugins.flyte.undo import UNDO
from kubetailor.workloads import JsonMap, dump_yaml
from kubetailor.workloads.task_target import as_pod_task

__all__ = ["flyte"]


@click.group()
def flyte() -> None:
    """Show and package Flyte tasks as a chain makes them."""
    if find_spec("flytekit") is None:
        fail("flytekit is not installed: pip install 'kubetailor[flyte]'")


@flyte.command()
@click.argument("source", metavar="MODULE|PACKAGE.tgz")
@click.option("--diff", is_flag=True, help="Show the differences; exit with 1 if there are any.")
@output_option("yaml", "json", default=None)
@config_option
@chain_option
@task_option
@click.option("-p", "--project", help="The project that the tasks are to be registered in.")
@click.option("-d", "--domain", help="The domain that the tasks are to be registered in.")
@click.option("-v", "--version", help="The version that the tasks are to be registered as.")
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
    output: str | None,
    config: Path | None,
    chain: str | None,
    task: dict[str, str],
    project: str | None,
    domain: str | None,
    version: str | None,
    image: tuple[str, ...],
) -> None:
    """Show every task before and after its chain, as it will be registered.

    MODULE is an importable module or package, or the path of a file. PACKAGE.tgz is what `pyflyte
    package` wrote. The human form leaves out the annotation by which a later phase undoes the
    chain; -o shows all.
    """
    from kubetailor.plugins.flyte.entities import Tailored
    from kubetailor.plugins.flyte.modules import images_of, serialize_module
    from kubetailor.plugins.flyte.notices import Notices
    from kubetailor.plugins.flyte.packages import Package

    given = {"project": project, "domain": domain, "version": version}
    known = {key: value for key, value in given.items() if value}
    tailor = required_tailor(config, chain, {**known, **task})
    if source.endswith((".tgz", ".tar.gz")):
        entities = Package.read(Path(source)).entities
    else:
        entities = serialize_module(source, images_of(image), **known)
    notices = Notices()
    items: list[Tailored] = []
    for item in entities.tailor(tailor):
        notices.say(item.outcome, item.where)
        items.append(item)
    if diff:
        items = [item for item in items if item.outcome.stamped]
    if output:
        _print_data([_machine_form(item) for item in items], output)
    else:
        for item in items:
            _print_item(item, diff)
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
    help="Where to write it; it may be IN.tgz.",
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
    from kubetailor.plugins.flyte.notices import Notices
    from kubetailor.plugins.flyte.packages import Package

    tailor = required_tailor(config, chain, task)
    read = Package.read(package)
    notices = Notices()
    changed = 0
    for item in read.entities.tailor(tailor):
        notices.say(item.outcome, item.where)
        changed += item.outcome.stamped and item.node is None
    read.write(output)
    click.echo(f"{changed} of {len(read.entities.tasks)} tasks tailored: {output}", err=True)


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


def _print_item(item: Any, diff: bool) -> None:
    before, after = _for_people(item.before), _for_people(item.after)
    if diff:
        # A container that became a pod is shown as that pod, and keys in the order of `after`, so
        # that what differs is what the chain changed.
        base = as_pod_task(before, after)
        before = {key: base[key] for key in (*after, *base) if key in base}
        print_diff(unified_diff(before, after, f"{item.where}, before", f"{item.where}, after"))
        return
    for text in _documents(item, before, after):
        click.echo(text, nl=False)


def _documents(item: Any, before: JsonMap, after: JsonMap) -> Iterable[str]:
    if not item.outcome.stamped:
        yield f"---\n# {item.where}: unchanged\n{dump_yaml([before])}"
        return
    yield f"---\n# {item.where}, before\n{dump_yaml([before])}"
    yield f"---\n# {item.where}, after\n{dump_yaml([after])}"


def _for_people(obj: JsonMap) -> JsonMap:
    """A template without the way back, which is for machines."""
    found = {}
    for key, value in obj.items():
        if isinstance(value, dict) and key in ("config", "metadata", "annotations"):
            value = _for_people({name: item for name, item in value.items() if name != UNDO})
        found[key] = value
    return found
