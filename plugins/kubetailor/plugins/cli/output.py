"""What commands print: data on stdout; errors, warnings and notes on stderr."""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any, NoReturn

import click

from kubetailor.registry import KubetailorError, PluginError, Result
from kubetailor.workloads import Json, dump_yaml

__all__ = [
    "Fault",
    "Group",
    "fail",
    "faults_of",
    "note",
    "print_diff",
    "print_json",
    "print_notes",
    "print_table",
    "print_warnings",
    "shortened",
    "unified_diff",
    "warn",
]

_BROKEN_PIPE = 128 + 13
"""What a shell says of a command that SIGPIPE ended, as it ends kubectl."""

_PIPE_WIDTH = 10_000
"""No table is as wide: what is not read on a terminal is not folded, so that grep finds it."""


# errors ------------------------------------------------------------------------------------------


class Fault(click.ClickException):
    """Errors that the user can mend: each is said on stderr, and the command exits with 2."""

    exit_code = 2

    def __init__(self, messages: Sequence[str]) -> None:
        super().__init__("\n".join(messages))
        self.messages: tuple[str, ...] = tuple(messages)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print them."""
        for message in self.messages:
            prefix = click.style("Error", fg="red")
            click.echo(f"{prefix}: {message}", file=file, err=True, color=_color())


def fail(*messages: str) -> NoReturn:
    """End the command with errors and exit code 2."""
    raise Fault(messages)


def faults_of(error: KubetailorError) -> list[str]:
    """The messages of an error, one for each fault."""
    return list(error.faults) if isinstance(error, PluginError) else [str(error)]


class Group(click.Group):
    """A group whose commands may raise KubetailorError, and whose reader may close the pipe."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what the user can mend is said without a traceback."""
        try:
            return super().invoke(ctx)
        except KubetailorError as error:
            raise Fault(faults_of(error)) from error
        except BrokenPipeError:
            # What is still buffered must not fail once more when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(_BROKEN_PIPE)


# stderr ------------------------------------------------------------------------------------------


def warn(text: str) -> None:
    """Say what the user should mend, though the command goes on."""
    click.echo(f"{click.style('Warning', fg='yellow')}: {text}", err=True, color=_color())


def note(text: str) -> None:
    """Say what the user should know."""
    click.echo(f"Note: {text}", err=True)


def print_warnings(where: str, result: Result) -> None:
    """The warnings of a run, on stderr.

    Args:
        where: the object, for the messages.
        result: the run.
    """
    for warning in result.warnings:
        warn(f"{where}: {warning}")


def print_notes(results: Sequence[tuple[str, Result]]) -> None:
    """What runs left to a later phase, and how much they could not decide, on stderr.

    Args:
        results: each object, as messages call it, and its run.
    """
    for where, result in results:
        if (notice := result.notice) is not None:
            note(f"{where}: {notice}; --task gives it now")
    if undecided := [result.undecided for _, result in results if result.undecided]:
        many = sum(undecided)
        what = "1 condition" if many == 1 else f"{many} conditions"
        objects = "1 object" if len(undecided) == 1 else f"{len(undecided)} objects"
        note(
            f"{what} of {objects} could not be decided and {'does' if many == 1 else 'do'} not "
            "match; --task says what is known of the task"
        )


# stdout ------------------------------------------------------------------------------------------


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def unified_diff(before: Json, after: Json, old: str, new: str) -> str:
    """The unified diff of two objects as YAML; empty if they are the same.

    Args:
        before: JSON data.
        after: JSON data.
        old: what to call `before`.
        new: what to call `after`.
    """
    if before is after:
        return ""
    a, b = (dump_yaml([value]).splitlines(keepends=True) for value in (before, after))
    return "".join(difflib.unified_diff(a, b, old, new))


_DIFF_STYLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("---", {"bold": True}),
    ("+++", {"bold": True}),
    ("@@", {"fg": "cyan"}),
    ("+", {"fg": "green"}),
    ("-", {"fg": "red"}),
)


def print_diff(text: str) -> None:
    """A unified diff, coloured on a terminal."""
    click.echo("".join(map(_styled, text.splitlines(keepends=True))), nl=False, color=_color())


def _styled(line: str) -> str:
    style = next((style for start, style in _DIFF_STYLES if line.startswith(start)), None)
    return line if style is None else click.style(line, **style)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None
) -> None:
    """Rows under headings. Nothing is cut: a terminal folds what is too wide, a pipe gets it whole.

    Args:
        columns: the headings.
        rows: as many texts each.
        title: a line above it.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    if title is not None:
        click.echo(click.style(title, bold=True), color=_color())
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def shortened(value: Json, limit: int = 48) -> str:
    """A value in one line of at most `limit` characters, `…` where it is cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _color() -> bool | None:
    """False where the user wants none (https://no-color.org); None leaves it to the terminal."""
    return False if os.environ.get("NO_COLOR") else None
