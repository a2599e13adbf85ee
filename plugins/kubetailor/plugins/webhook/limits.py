"""Limits for code that is not ours, without a thread or a process of its own.

Time: the alarm of the process. A thread cannot be ended, and handing each request to one costs as
much as deciding it. SIGALRM interrupts a loop in Python and a wait in the kernel alike; only code
in C that neither waits nor calls Python goes on, and then the liveness probe ends the process.

Memory: while a chain runs, the process may have only so much more data than it is wont to have: so
what a step piles up is a MemoryError of that step, and not the end of the server with all that it
answers. What a step keeps for good becomes what the process is wont to have; there the memory limit
of the container is the last line.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import threading
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Final, ParamSpec, TypeVar

from kubetailor.plugins.webhook.decision import MemoryLimitError, TimeLimitError

__all__ = ["MEMORY_LIMIT", "TIMEOUT", "TIME_LIMIT", "Limits"]

TIME_LIMIT: Final = 5.0
"""Seconds that a chain may take."""

TIMEOUT: Final = 10
"""Seconds that the API server waits for an answer; it takes no more than 30."""

MEMORY_LIMIT: Final = 128 * 1024 * 1024
"""Bytes that a chain may need while it runs, over what the process is wont to have."""

_PAGE: Final = resource.getpagesize()

P = ParamSpec("P")
T = TypeVar("T")


class _Over(BaseException):
    """The time is over, for code that catches every Exception."""


class Limits:
    """Runs functions in the main thread, each with limited time and memory."""

    def __init__(self, seconds: float, memory: int = MEMORY_LIMIT) -> None:
        """Take over SIGALRM, where that can be done: in the main thread.

        Args:
            seconds: the limit of time. It is raised anew after as long again, should the code go
                on.
            memory: the limit of memory, in bytes.
        """
        self.seconds: float = seconds
        self.memory: int = memory
        self._running = False
        self._rang = False
        self._works = threading.current_thread() is threading.main_thread()
        if self._works:
            signal.signal(signal.SIGALRM, self._ring)
        self._usual, self._most = -memory, 0
        self._statm: int | None = None
        with contextlib.suppress(OSError):  # only Linux has it
            self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def _ring(self, _: int, __: FrameType | None) -> None:
        if self._running:
            if self._rang:
                raise _Over
            self._rang = True
            raise TimeLimitError(self._late)

    @property
    def _late(self) -> str:
        return f"it took longer than {self.seconds:g} s"

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function.

        Raises:
            TimeLimitError: raised inside of the function when the time is over.
            MemoryLimitError: it needed more memory than it may.
        """
        if not self._works:
            return function(*args, **kwargs)
        before = resource.getrlimit(resource.RLIMIT_DATA)
        self._allow(before)
        self._running, self._rang = True, False
        signal.setitimer(signal.ITIMER_REAL, self.seconds, self.seconds)
        try:
            return function(*args, **kwargs)
        except MemoryError as error:
            resource.setrlimit(resource.RLIMIT_DATA, before)
            traceback.clear_frames(error.__traceback__)
            raise MemoryLimitError(
                f"it needed more than {self.memory // 1024**2} MiB of memory"
            ) from None
        except _Over:
            raise TimeLimitError(self._late) from None
        finally:
            self._running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            resource.setrlimit(resource.RLIMIT_DATA, before)

    def _allow(self, limits: tuple[int, int]) -> None:
        """Let the process have so much more data than it is wont to have."""
        if self._statm is None:
            return
        if self._has()[0] > self._usual + self.memory // 2:
            # What an earlier one piled up is free, but may not have been given back.
            gc.collect()
            _give_back()
            has, data = self._has()
            if has > self._usual + self.memory // 2:
                self._usual, self._most = has, data + self.memory
        known = [limit for limit in limits if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min([self._most, *known]), limits[1]))

    def _has(self) -> tuple[int, int]:
        """Bytes of memory that are this process' own, and of data, which may not be in memory."""
        assert self._statm is not None
        _, resident, shared, _, _, data, *_ = map(int, os.pread(self._statm, 256, 0).split())
        return (resident - shared) * _PAGE, data * _PAGE


def _give_back() -> None:
    """Give free memory back to the system, where the C library is glibc."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
