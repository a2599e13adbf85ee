"""The webhook's server by TLS, against one that says yes to everything on the same settings.

Both run at once, each in a process of its own, and are asked in turns over 16 connections that stay
open. How long answers take is the time of the clock, so a busy machine shows here; how long a start
takes is CPU time.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.measure import Plan
from benchmarks.reviews import review, webhook_config
from benchmarks.rows import Row, times
from kubetailor.plugins.webhook.certificates import CERTIFICATE, KEY, renewed

__all__ = ["ROWS"]

_HOST = "127.0.0.1"
_CONNECTIONS = 16
_SECONDS = 20
"""Turns are this many times as long as a batch of the plan."""


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        process: its process.
        port: where it listens.
        seconds: the CPU time from its start to the first answer.
    """

    process: subprocess.Popen[bytes]
    port: int
    seconds: float

    @property
    def mebibytes(self) -> float:
        """The memory that it has."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("there is no such process")


@contextmanager
def _folder() -> Generator[Path, None, None]:
    """A folder with certificates and a config."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = renewed(None, ["localhost"], datetime.datetime.now(datetime.timezone.utc))
        (folder / CERTIFICATE).write_bytes(made.certificate)
        (folder / KEY).write_bytes(made.key)
        (folder / "kubetailor.yaml").write_text(webhook_config())
        yield folder


@contextmanager
def _serving(command: list[str], folder: Path) -> Generator[Server, None, None]:
    """A server, until the block ends."""
    with socket.socket() as free:
        free.bind((_HOST, 0))
        port = free.getsockname()[1]
    options = ["--host", _HOST, "--port", str(port), "--certificates", str(folder)]
    deadline = time.monotonic() + 60
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[1]
    )
    try:
        while True:
            try:
                asyncio.run(_asked(port, 1, lambda done: done >= 1))
                break
            except OSError:
                assert process.poll() is None, "the server has ended"
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.005)
        yield Server(process, port, _cpu_seconds(process.pid))
    finally:
        process.terminate()
        process.wait()


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ours(folder: Path) -> list[str]:
    command = Path(sys.executable).with_name("kubetailor")
    return [str(command), "webhook", "serve", "--config", str(folder / "kubetailor.yaml")]


_NOOP = [sys.executable, "-m", "benchmarks.noop"]


async def _asked(port: int, connections: int, enough: Callable[[int], bool]) -> list[float]:
    """The seconds that each of many reviews took, over some connections, until it is enough."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    body = review()
    request = (
        f"POST /mutate HTTP/1.1\r\nhost: {_HOST}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode() + body
    taken: list[float] = []

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(_HOST, port, ssl=context)
        try:
            while True:
                start = time.perf_counter()
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200"), head
                length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                taken.append(time.perf_counter() - start)
                if enough(len(taken)):
                    break
        finally:
            writer.close()
            await writer.wait_closed()

    await asyncio.gather(*[connection() for _ in range(connections)])
    return taken


@dataclass(frozen=True)
class Turn:
    """What one server did in one turn: seconds, and reviews a second."""

    p50: float
    p99: float
    rate: float


def _turn(server: Server, seconds: float) -> Turn:
    start = time.perf_counter()
    taken = asyncio.run(
        _asked(server.port, _CONNECTIONS, lambda _: time.perf_counter() - start > seconds)
    )
    rate = len(taken) / (time.perf_counter() - start)
    taken.sort()
    return Turn(median(taken), taken[int(len(taken) * 0.99)], rate)


@functools.cache
def _turns(plan: Plan) -> tuple[tuple[Turn, Turn], ...]:
    """Pairs of neighbouring turns: ours, and the one that says yes; three rows read them."""
    seconds = plan.seconds * _SECONDS
    found = []
    with (
        _folder() as folder,
        _serving(_ours(folder), folder) as ours,
        _serving(_NOOP, folder) as theirs,
    ):
        for server in (ours, theirs):
            _turn(server, seconds / 2)
        for index in range(plan.rounds):
            if index % 2:
                mine, other = _turn(ours, seconds), _turn(theirs, seconds)
            else:
                other, mine = _turn(theirs, seconds), _turn(ours, seconds)
            found.append((mine, other))
    return tuple(found)


def _p50(plan: Plan) -> float:
    return median(ours.p50 / theirs.p50 for ours, theirs in _turns(plan))


def _p99(plan: Plan) -> float:
    return median(ours.p99 / theirs.p99 for ours, theirs in _turns(plan))


def _rate(plan: Plan) -> float:
    return median(theirs.rate / ours.rate for ours, theirs in _turns(plan))


@functools.cache
def _starts(plan: Plan) -> tuple[tuple[float, float], ...]:
    """(seconds to the first answer, memory after a turn) of some servers, one after the other."""
    found = []
    with _folder() as folder:
        for _ in range(min(plan.rounds, 5)):
            with _serving(_ours(folder), folder) as server:
                _turn(server, plan.seconds * 5)
                found.append((server.seconds, server.mebibytes))
    return tuple(found)


ROWS = (
    Row(
        "serve-p50",
        f"webhook over TLS, {_CONNECTIONS} connections, 10 steps, against a no-op: p50",
        1.75,
        2.0,
        _p50,
    ),
    Row("serve-p99", "the same: p99", 2.0, 3.0, _p99),
    Row(
        "serve-rate",
        "the same: reviews a second",
        1 / 0.55,
        1 / 0.4,
        _rate,
        lambda ratio: times(1 / ratio),
    ),
    Row(
        "serve-memory",
        "resident memory of the server",
        64,
        96,
        lambda plan: median(memory for _, memory in _starts(plan)),
        lambda size: f"{size:.0f} MiB",
    ),
    Row(
        "serve-start",
        "CPU time from start to first answer",
        0.5,
        1.0,
        lambda plan: median(seconds for seconds, _ in _starts(plan)),
        lambda seconds: f"{seconds:.2f} s",
    ),
)
