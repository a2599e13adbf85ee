"""``kubetailor override edit``: an override by editing what would run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kubetailor.plugins.cli.options import config_option
from kubetailor.plugins.cli.output import fail, note
from kubetailor.registry import ConfigError, Override, OverrideError
from kubetailor.workloads import JsonMap, dump_yaml, same

if TYPE_CHECKING:
    from kubetailor.plugins.client.preview import Preview
    from kubetailor.plugins.client.registered import Registered
    from kubetailor.registry.tailor import Tailor

__all__ = ["edit"]

_HEAD: Final = """\
# What {name} would run as. Change what one execution is to have otherwise, save, and
# leave the editor: what you changed comes out as an override. `rest` is for reading.
# Saved as it is, nothing comes out.
"""
_SOURCE: Final = "what was edited"


@click.command()
@click.argument("name", metavar="PROJECT/DOMAIN/NAME[@VERSION]")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file that the override is written to, as YAML; by default it is printed. An editor "
    "in the terminal needs it: what is printed cannot be redirected then.",
)
@config_option
def edit(name: str, output: Path | None, config: Path | None) -> None:
    """Edit what would run, and print what was changed as an override.

    Opens every node of what is registered in $VISUAL or $EDITOR, as `flyte show` prints it. What
    cannot be overridden is said at the top of the file, and the editor opens again.

    FlyteAdmin is that of pyflyte: its config file, or FLYTE_PLATFORM_URL.

    For instance: `kubetailor override edit NAME -o override.yaml`, then `kubetailor launch NAME
    --override override.yaml`.
    """
    from kubetailor.plugins.client.launching import tailor_in_force
    from kubetailor.plugins.client.remote import look_up

    with redirect_stdout(sys.stderr):
        tailor = tailor_in_force(config)
        override = _edited(_Editing(look_up(name), tailor))
    if override is None:
        note("nothing was changed")
        return
    text = dump_yaml([override.document()])
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


def _edited(editing: _Editing) -> Override | None:
    """What comes of it; None if nothing was changed."""
    head = _HEAD.format(name=editing.registered.name)
    text = head + dump_yaml([editing.given])
    faults = ""
    while True:
        shown = faults + text
        saved = click.edit(shown, extension=".yaml", require_save=False)
        if saved is None or saved == shown:
            if faults:
                fail(*faults.replace("# Error: ", "").splitlines(), "nothing more was changed")
            return None
        text = saved.removeprefix(faults)
        try:
            return editing.override(text)
        except ConfigError as error:
            faults = "".join(f"# Error: {line}\n" for line in str(error).splitlines())


class _Editing:
    """What is edited.

    Attributes:
        registered: what it is of.
        given: the document that is given out.
    """

    def __init__(self, registered: Registered, tailor: Tailor) -> None:
        self.registered: Registered = registered
        self._tailor = tailor
        self._preview = self._previewed(None)
        self._preview.check()
        self.given: JsonMap = self._document(self._preview)

    def override(self, text: str) -> Override | None:
        """The override that a text says; None if it says what was given out.

        Raises:
            ConfigError: it is no YAML.
            OverrideError: it changes what cannot be, or what would come out all the same.
        """
        from kubetailor.plugins.client.edited import override_of_edit, read_edited

        wanted = read_edited(text, _SOURCE)
        found = override_of_edit(self.given, wanted, self._workflows())
        if not found.steps:
            return None
        shown = self._previewed(found)
        shown.check()
        self._compare(wanted, self._document(shown))
        return found

    def _previewed(self, override: Override | None) -> Preview:
        from kubetailor.plugins.client.previewing import preview

        return preview(self.registered, self._tailor, override)

    def _document(self, preview: Preview) -> JsonMap:
        from kubetailor.plugins.client.editable import document

        return document(preview, self._tailor.config.catalogue)

    def _workflows(self) -> dict[str, str]:
        """Of each node of a child execution, the child's workflow: its node ids are its own."""
        return {
            node.title: execution.registered.workflow.name
            for execution in self._preview.executions
            if execution.path
            for node in execution.nodes
        }

    def _compare(self, wanted: JsonMap, final: JsonMap) -> None:
        """Refuse an edit that something after the override takes back.

        Raises:
            OverrideError: it names the words.
        """
        faults = [
            f"node {title}: {words} would stay as it is: the chain enforces it"
            for title, node in wanted["nodes"].items()
            for words in _in_vain(self.given["nodes"][title], node, final["nodes"][title])
        ]
        if faults:
            raise OverrideError("\n".join(faults))


def _in_vain(given: JsonMap, wanted: JsonMap, final: JsonMap) -> Iterator[str]:
    """The words that were changed, and are what they were all the same."""
    for word, value in wanted.items():
        old, new = given.get(word), final.get(word)
        if same(value, old):
            continue
        if isinstance(value, dict) and isinstance(old, dict) and isinstance(new, dict):
            yield from (f"{word}: {below}" for below in _in_vain(old, value, new))
        elif same(old, new):
            yield f"`{word}`"
