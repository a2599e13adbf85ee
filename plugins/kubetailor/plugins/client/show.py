"""``kubetailor flyte show PROJECT/DOMAIN/NAME``: what is registered, and what would come of it."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubetailor.plugins.cli.output import print_json
from kubetailor.workloads import JsonMap, dump_yaml

if TYPE_CHECKING:
    from kubetailor.plugins.cli.overriding import GivenOverride
    from kubetailor.plugins.client.preview import Preview
    from kubetailor.registry.tailor import Tailor

__all__ = ["is_name", "show_registered"]


def is_name(source: str) -> bool:
    """Whether ``PROJECT/DOMAIN/NAME[@VERSION]`` is meant, and no file or folder."""
    path = source.partition("@")[0]
    is_file = source.endswith((".py", ".tgz", ".tar.gz")) or Path(source).exists()
    return path.count("/") >= 2 and not path.startswith((".", "/")) and not is_file


def show_registered(
    name: str,
    override: GivenOverride,
    tailor: Tailor,
    *,
    diff: bool = False,
    output: str | None = None,
    templates: bool = False,
) -> bool:
    """Print every node, also of the executions that nodes launch, in the words of transformers.

    Args:
        name: what is registered.
        override: the override; with one, or with `diff`, what would run is shown.
        tailor: the config.
        diff: whether to print the differences alone.
        output: `yaml` or `json`, for machines.
        templates: whether to print the task templates too.

    Returns:
        Whether anything differs from what is registered.

    Raises:
        KubetailorError: there is no such thing, or the cluster would refuse the override.
    """
    from kubetailor.plugins.client.previewing import preview
    from kubetailor.plugins.client.remote import look_up
    from kubetailor.plugins.client.rendering import print_diffs

    with redirect_stdout(sys.stderr):  # what a plugin or flytekit prints
        said = override.read(tailor.config.plugins) if override else None
        found = preview(look_up(name), tailor, said)
        found.check()
    found.say()
    final = diff or bool(override)
    document = _document(found, tailor, final=final, templates=templates)
    if output == "json":
        print_json(document)
    elif output or not diff:
        click.echo(dump_yaml([document]), nl=False)
    if not final:
        return False
    if output:
        return "changes" in document
    return print_diffs(found)


def _document(found: Preview, tailor: Tailor, *, final: bool, templates: bool) -> JsonMap:
    from kubetailor.plugins.client.editable import document

    said = document(found, tailor.config.catalogue, final=final)
    changes: JsonMap = {}
    for node in found.nodes:
        if templates:
            said["nodes"][node.title]["template"] = node.final if final else node.registered
        if node.changes:
            changes[node.title] = [change.as_json() for change in node.changes]
    return {**said, "changes": changes} if final and changes else said
