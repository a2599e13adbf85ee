"""What a run says on stderr: notices as they come, and at its end how many tasks it tailored."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial

import click

from kubetailor.plugins.flyte.notices import Notices
from kubetailor.plugins.flyte.tailoring import Outcome

__all__ = ["Report", "Tally", "report_under"]


class Tally:
    """How many tasks there are, how many the chain changed, and for how many it waits."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[bool, str | None]] = {}

    def add(self, task: str, outcome: Outcome | None) -> None:
        """Count a task, once.

        Args:
            task: what tells it from others.
            outcome: what became of it; None if no step concerns it.
        """
        result = outcome.result if outcome else None
        self._tasks[task] = (result.changed, result.until) if result else (False, None)

    def clear(self) -> None:
        """Count anew."""
        self._tasks.clear()

    def __bool__(self) -> bool:
        return any(changed or until for changed, until in self._tasks.values())

    def __str__(self) -> str:
        many = len(self._tasks)
        changed = sum(changed for changed, _ in self._tasks.values())
        waits = [until for _, until in self._tasks.values() if until]
        text = f"{changed} of {many} {'task' if many == 1 else 'tasks'} tailored"
        if waits:
            verb = "waits" if len(waits) == 1 else "wait"
            text += f", {len(waits)} {verb} for the phase {' or '.join(sorted(set(waits)))}"
        return text


@dataclass
class Report:
    """What one run says.

    Attributes:
        notices: each thing that it said.
        tally: the tasks that it has seen.
    """

    notices: Notices = field(default_factory=Notices)
    tally: Tally = field(default_factory=Tally)


def report_under(path: str) -> Report:
    """The report of the command that runs, such as pyflyte's, for the config at a path.

    A command may serialize more than once; its tally is said when it ends, if any task was
    tailored. Outside of a command each run has a report of its own, and no tally is said.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return Report()
    reports: dict[str, Report] = context.meta.setdefault(__name__, {})
    if path not in reports:
        reports[path] = Report()
        context.find_root().call_on_close(partial(_say, path, reports[path].tally))
    return reports[path]


def _say(path: str, tally: Tally) -> None:
    if tally:
        near = os.path.relpath(path)
        shown = path if near.startswith(os.pardir) else near
        click.echo(f"kubetailor: {shown}: {tally}", err=True)
