"""The config in use: read from a file, and read again when the file changes.

A ConfigMap is mounted as links: the kubelet writes a new folder and turns the link `..data` to it,
so what is watched is the file that the path leads to, not only when it was written.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from kubetailor.plugins.webhook.logs import log
from kubetailor.registry import ConfigError, KubetailorError
from kubetailor.registry.tailor import Tailor

if TYPE_CHECKING:
    from kubetailor.plugins.webhook.metrics import Metrics

__all__ = ["ConfigInUse", "load_tailor", "state_of", "throttled", "watch"]

LOAD_SECONDS: Final = 60.0
"""Seconds that a config, with all its plugins, may take to be loaded."""

_State: TypeAlias = "tuple[str, int, int, int] | None"

T = TypeVar("T")


def load_tailor(path: Path) -> Tailor:
    """Read a config for the webhook.

    Raises:
        ConfigError: it cannot be used, or is not meant for a webhook.
        PluginError: plugins that cannot be loaded.
    """
    tailor = Tailor.find(path)
    assert tailor is not None, "the path is given"
    if "admit" not in tailor.config.phases:
        listed = ", ".join(tailor.config.phases)
        raise ConfigError(
            f"{path}: the webhook is the phase admit, and `phases` lists only {listed}: with that, "
            "an earlier phase leaves nothing to it; write phases: [serialize, admit], or the like"
        )
    return tailor


class ConfigInUse:
    """The newest config at a path that could be used.

    Attributes:
        path: the file.
        tailor: the config; None until one could be used.
        fault: why the newest one cannot be used, or "".
    """

    def __init__(self, path: Path, metrics: Metrics) -> None:
        self.path: Path = path
        self.tailor: Tailor | None = None
        self.fault: str = "the config is not loaded yet"
        self._metrics = metrics
        self._state: _State | object = object()  # not yet looked at

    async def refresh(self) -> None:
        """Read the config if its file has changed; one that cannot be used changes nothing."""
        state = state_of(self.path)
        if state == self._state:
            return
        self._state = state
        try:
            tailor = await _apart(partial(load_tailor, self.path), LOAD_SECONDS)
        except asyncio.TimeoutError:
            self._refuse(f"a plugin took longer than {LOAD_SECONDS:g} s to be imported")
        except (KubetailorError, OSError) as error:
            self._refuse(str(error))
        except MemoryError:  # of a chain that runs meanwhile, and may be over by now
            self._state = object()
            self._refuse("there was not enough memory; it is read again")
        except Exception as error:  # a plugin's code; the old config still works
            self._refuse(f"{type(error).__name__}: {error}")
        else:
            self.tailor = self._metrics.loaded(tailor)
            self.fault = ""
            log("info", "config loaded", file=str(self.path), config_digest=tailor.digest)
            _settle()

    def _refuse(self, fault: str) -> None:
        self._metrics.refused()
        self.fault = fault
        kept = self.tailor.digest if self.tailor else None
        log("error", "config refused", file=str(self.path), reason=fault, kept=kept)


async def _apart(function: Callable[[], T], seconds: float) -> T:
    """Call a function in a thread; requests are decided meanwhile.

    The thread is none of the loop's own: one that hangs would keep the process from its end.

    Raises:
        asyncio.TimeoutError: it took too long; it goes on, and nobody waits for it.
        ConfigError: it raised what ends a program, such as KeyboardInterrupt.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("T", value))

    def run() -> None:
        value, fault = None, None
        try:
            value = function()
        except Exception as error:
            fault = error
        except BaseException as error:  # it would end the loop
            fault = ConfigError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, value, fault)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wait_for(future, seconds)


def state_of(path: Path) -> _State:
    """What tells one version of a file from the next; None if it is not there."""
    try:
        real = os.path.realpath(path)
        stat = os.stat(real)
    except OSError:
        return None
    return real, stat.st_mtime_ns, stat.st_size, stat.st_ino


async def watch(refresh: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Call a coroutine function again and again; what it raises is logged."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await refresh()
        except Exception as error:  # it must not end: nobody would notice
            log("error", "watch", reason=f"{type(error).__name__}: {error}")


def throttled(
    refresh: Callable[[], Awaitable[None]], seconds: float
) -> Callable[[], Awaitable[None]]:
    """A coroutine function that does nothing for some time after it did something."""
    last = time.monotonic()

    async def run() -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            await refresh()

    return run


def _settle() -> None:
    """Let the garbage collector look no more at what stays: it takes up to 20 ms on a request."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
