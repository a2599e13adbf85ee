"""A server that ends without losing a request.

uvicorn closes idle connections as soon as it is told to end, and what the API server is just
writing on one of them fails: it cannot know whether a POST was read, and does not try again. So
from then on each answer says that its connection is the last of it, and the server goes on until
nobody has asked for a moment.
"""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Final

import uvicorn

__all__ = ["Server"]

_CLOSE: Final = (b"connection", b"close")
_QUIET: Final = 0.5
_AT_MOST: Final = 5.0
"""Seconds. With the hook before the end and the time for what is still running, less than the
`terminationGracePeriodSeconds` of the Deployment."""


class Server(uvicorn.Server):
    """uvicorn's, told to end by SIGTERM; a second one, or Ctrl-C, ends it at once."""

    _end: float | None = None
    _asked: int = 0
    _quiet_since: float = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        if sig != signal.SIGTERM or self._end is not None:
            super().handle_exit(sig, frame)
            return
        self._end = time.monotonic() + _AT_MOST
        self._quiet_since = time.monotonic()
        # The first are those of the next request, the others those that they are made of anew.
        self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]
        self.config.encoded_headers = [*self.config.encoded_headers, _CLOSE]

    async def on_tick(self, counter: int) -> bool:
        """End where it is time to."""
        if self._end is not None:
            now, asked = time.monotonic(), self.server_state.total_requests
            if asked != self._asked or self.server_state.tasks:
                self._asked, self._quiet_since = asked, now
            if now >= min(self._end, self._quiet_since + _QUIET):
                self.should_exit = True
        return await super().on_tick(counter)
