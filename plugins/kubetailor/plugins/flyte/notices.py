"""What a run leaves to a later phase, and what its steps warn of: on stderr, each thing once."""

from __future__ import annotations

from collections.abc import Iterable

import click

from kubetailor.plugins.flyte.tailoring import Outcome

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
        if (notice := outcome.result.notice) is not None:
            self._say(notice)
        self.warn(where, (*outcome.warnings, *outcome.result.warnings))

    def warn(self, where: str, warnings: Iterable[object]) -> None:
        """Say warnings, each once.

        Args:
            where: what they are about.
            warnings: what str() makes into text.
        """
        for warning in warnings:
            self._say(f"{where}: {warning}")

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            click.secho(f"kubetailor: {text}", fg="yellow", err=True)
