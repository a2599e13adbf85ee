"""What a Service is to its clients: one address in front of several servers."""

from __future__ import annotations

import selectors
import socket
import socketserver
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

from typing_extensions import Self

__all__ = ["Service"]


class Service:
    """Hands each new connection to the next server that is there."""

    def __init__(self, ports: Callable[[], Sequence[int]]) -> None:
        """It listens on a port of its own from now on.

        Args:
            ports: the ports of the servers that are ready now.
        """
        turn = iter(range(1 << 62))

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                found = ports()
                for _ in found:
                    try:
                        port = found[next(turn) % len(found)]
                        server = socket.create_connection(("127.0.0.1", port), timeout=5)
                    except OSError:
                        continue
                    with server:
                        server.settimeout(None)
                        _pump(self.request, server)
                    return

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks is what the tests break."""


def _pump(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until either side ends."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(one, selectors.EVENT_READ, other)
        waiting.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in waiting.select():
                source, target = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                data = source.recv(1 << 16)
                if not data:
                    return
                target.sendall(data)
