"""What a run leaves to a later phase, and what its steps warn of: on stderr, each thing once."""

from __future__ import annotations

import click

from kubetailor.plugins.flyte.tailoring import Outcome
from kubetailor.registry import Result

__all__ = ["Notices"]


class Notices:
    """The notices of one command."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, outcome: Outcome, where: str) -> None:
        """Say what is new about a task.

        Args:
            outcome: what became of it.
            where: what to call it.
        """
        if outcome.result.until is not None:
            self._say(_deferred(outcome.result))
        for warning in (*outcome.warnings, *outcome.result.warnings):
            self._say(f"{where}: {warning}")

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            click.secho(f"kubetailor: {text}", fg="yellow", err=True)


def _deferred(result: Result) -> str:
    steps = ", ".join(result.deferred)
    if result.deferred == ("select",):
        what = "the whole chain waits"
    else:
        what = f"{steps} {'waits' if len(result.deferred) == 1 else 'wait'}"
    return f"{what} for the phase {result.until}: {result.unknown} is not known yet"
