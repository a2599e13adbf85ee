"""A time limit for code that is not ours, without a thread: the alarm of the process.

A thread cannot be ended, and handing each request to one costs as much as deciding it. SIGALRM
interrupts a loop in Python and a wait in the kernel alike; only code in C that neither waits nor
calls Python goes on, and then the liveness probe ends the process.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final, ParamSpec, TypeVar

from kubetailor.plugins.webhook.decision import TimeLimitError

__all__ = ["TIMEOUT", "TIME_LIMIT", "TimeLimit"]

TIME_LIMIT: Final = 5.0
"""Seconds that a chain may take."""

TIMEOUT: Final = 10
"""Seconds that the API server waits for an answer; it takes no more than 30."""

P = ParamSpec("P")
T = TypeVar("T")


class TimeLimit:
    """Runs functions in the main thread, each for a limited time."""

    def __init__(self, seconds: float) -> None:
        """Take over SIGALRM, where that can be done: in the main thread.

        Args:
            seconds: the limit. It is raised anew after as long again, should the code go on.
        """
        self.seconds: float = seconds
        self._running = False
        self._works = threading.current_thread() is threading.main_thread()
        if self._works:
            signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, _: int, __: FrameType | None) -> None:
        if self._running:
            raise TimeLimitError(f"it took longer than {self.seconds:g} s")

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function.

        Raises:
            TimeLimitError: raised inside of the function when the time is over.
        """
        if not self._works:
            return function(*args, **kwargs)
        self._running = True
        signal.setitimer(signal.ITIMER_REAL, self.seconds, self.seconds)
        try:
            return function(*args, **kwargs)
        finally:
            self._running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
