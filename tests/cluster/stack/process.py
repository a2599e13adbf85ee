"""Programs of the stack: started, waited for, and stopped by their own ids."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from typing_extensions import Self

__all__ = ["Process", "StackError", "free_port", "wait_for"]

# Where util-linux is, nothing outlives a test run that was killed.
_BOUND: Final = ("setpriv", "--pdeathsig=KILL", "--") if shutil.which("setpriv") else ()
_GRACE: Final = 10.0


class StackError(Exception):
    """A part of the stack does not do what it should."""


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def wait_for(
    what: str,
    ready: Callable[[], object],
    *,
    seconds: float = 60,
    every: float = 0.1,
    while_: Callable[[], None] | None = None,
) -> None:
    """Ask until the answer is true.

    Args:
        what: what is waited for, for the message.
        ready: the question. What it raises counts as no.
        seconds: how long to wait at most.
        every: seconds between two questions.
        while_: asked each time too; what it raises ends the waiting.

    Raises:
        StackError: it never was, with the last answer.
    """
    end, last = time.monotonic() + seconds, "nothing"
    while True:
        if while_ is not None:
            while_()
        try:
            answer = ready()
            if answer:
                return
            last = repr(answer)
        except Exception as error:
            last = f"{type(error).__name__}: {error}"
        if time.monotonic() > end:
            raise StackError(f"{what}: not within {seconds:g} s; last: {last[:2000]}")
        time.sleep(every)


class Process:
    """One running program; its output goes to a file.

    A session of its own keeps the Ctrl-C of a terminal from it, so that it is stopped in order.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[object],
        *,
        folder: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start it.

        Args:
            name: a word for it, and the stem of its log.
            command: program and arguments, each a string or a path.
            folder: where it runs and its log is written.
            env: its whole environment; None for this process's.
        """
        self.name: str = name
        self.log: Path = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_BOUND, *(str(word) for word in command)],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Its id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return not self._has_ended(within=0)

    def _has_ended(self, *, within: float | None) -> bool:
        """Wait so long for its end; what it started is ended with it."""
        if self._process.returncode is None:
            try:
                self._process.wait(within)
            except subprocess.TimeoutExpired:
                return False
            self._kill_group()
        return True

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def check(self) -> None:
        """Raise a StackError, with the end of its log, if it has ended."""
        if not self.is_running:
            raise StackError(f"{self.name} ended with {self.wait()}:\n{self.tail()}")

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_for(self, ready: Callable[[], object], *, seconds: float = 60) -> Self:
        """Wait until it is ready; a StackError says why it is not."""
        try:
            wait_for(self.name, ready, seconds=seconds, while_=self.check)
        except StackError as error:
            if not self.is_running:
                raise
            self.stop()
            raise StackError(f"{error}\n{self.tail()}") from None
        return self

    def wait(self) -> int:
        """Wait for its end; its exit code."""
        self._has_ended(within=None)
        return self._process.wait()

    def stop(self) -> None:
        """Ask it to end, then end what is left of it and of what it started."""
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)
            if not self._has_ended(within=_GRACE):
                self.kill()

    def kill(self) -> None:
        """End it and what it started, as a lost node would: at once."""
        if self.is_running:
            self._kill_group()
            self.wait()
