"""A server that is told to end; tests/cluster shows that nothing is lost meanwhile."""

from __future__ import annotations

import asyncio
import signal
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from kubetailor.plugins.webhook.server import Server

CLOSE = (b"connection", b"close")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which tests change."""
    now = [100.0]
    monkeypatch.setattr(f"{Server.__module__}.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def server() -> Server:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise NotImplementedError

    settings = uvicorn.Config(app, date_header=False, log_config=None)
    settings.load()
    return Server(settings)


def ends(server: Server, counter: int = 1) -> bool:
    return asyncio.run(server.on_tick(counter))


def test_until_it_is_told_to_it_goes_on(clock: list[float], server: Server) -> None:
    clock[0] += 1000
    assert not ends(server, 0)
    assert CLOSE not in server.server_state.default_headers


def test_it_goes_on_while_somebody_asks(clock: list[float], server: Server) -> None:
    server.handle_exit(signal.SIGTERM, None)
    for _ in range(10):
        clock[0] += 0.4
        server.server_state.total_requests += 1
        assert not ends(server)
    clock[0] += 0.4
    assert not ends(server)
    clock[0] += 0.2
    assert ends(server)


def test_nobody_can_keep_it_for_ever(clock: list[float], server: Server) -> None:
    server.handle_exit(signal.SIGTERM, None)
    for _ in range(100):
        clock[0] += 0.1
        server.server_state.total_requests += 1
        if ends(server):
            break
    assert clock[0] == pytest.approx(105, abs=0.2)


def test_each_answer_says_that_the_connection_ends(server: Server) -> None:
    server.handle_exit(signal.SIGTERM, None)
    assert CLOSE in server.server_state.default_headers
    ends(server, 0)  # uvicorn makes them anew
    assert CLOSE in server.server_state.default_headers


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_a_person_need_not_wait(first: signal.Signals, server: Server) -> None:
    server.handle_exit(first, None)
    if first == signal.SIGTERM:
        server.handle_exit(signal.SIGTERM, None)
    assert ends(server)
