"""Creating pods through a real API server: without a webhook, and with three of them, in turns.

One says yes to everything. One has decided once, and gives the same patch to every pod: the time
between these two is the API server's, which applies the patch and runs its own plugins again. The
third is ours.

Fifty clients create pods as fast as they are taken, each over a connection of its own. How long it
takes is the time of the clock, and all that runs shares the cores: the clients, the API server,
etcd, the webhook.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import math
import os
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import orjson
import yaml
from tests.cluster.build import TOOLS
from tests.cluster.stack.certificates import Authority
from tests.cluster.stack.core import Core
from tests.cluster.stack.process import Process, free_port

from benchmarks.measure import Plan
from benchmarks.reviews import review, webhook_config
from benchmarks.rows import NotMeasuredError, Row
from kubetailor.plugins.webhook.manifests import installation
from kubetailor.plugins.webhook.reload import load_tailor
from kubetailor.plugins.webhook.selection import configuration

__all__ = ["ROWS", "Turn", "turns"]

_CLIENTS: Final = 50
_SECONDS: Final = 20
"""Turns are this many times as long as a batch of the plan."""

_HOST: Final = "127.0.0.1"
_TOOLS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_CONFIG: Final = "kubetailor.yaml"
_SERVERS: Final = {
    "noop": (sys.executable, "-m", "benchmarks.noop"),
    "remembered": (sys.executable, "-m", "benchmarks.remembered"),
    "ours": (
        Path(sys.executable).with_name("kubetailor"),
        "webhook",
        "serve",
        f"--config=../{_CONFIG}",
    ),
}
_PATCHING: Final = ("remembered", "ours")
_WAYS: Final = ("none", *_SERVERS)
"""Each has a namespace of its name."""


@dataclass(frozen=True)
class Turn:
    """What creating pods in one way took in one turn: seconds, and how many there were."""

    p50: float
    p99: float
    count: int


@functools.cache
def turns(plan: Plan) -> tuple[dict[str, Turn], ...]:
    """Rounds, each of a turn in every way; the rows read them.

    Raises:
        NotMeasuredError: the API server is not built.
    """
    if missing := [name for name in _TOOLS if not TOOLS[name].is_built]:
        raise NotMeasuredError(f"no {', '.join(missing)}: `make cluster-tools` builds them")
    seconds = plan.seconds * _SECONDS
    found = []
    with _cluster() as core:
        for way in _WAYS:
            _turn(core, way, seconds / 2)
        for index in range(plan.rounds):
            first = index % len(_WAYS)
            order = (*_WAYS[first:], *_WAYS[:first])
            found.append({way: _turn(core, way, seconds) for way in order})
    return tuple(found)


# the cluster -----------------------------------------------------------------------------------


@contextmanager
def _cluster() -> Generator[Core, None, None]:
    """An API server that asks each webhook of the pods in its namespace."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        core = Core(Path(name), stack)
        (core.folder / _CONFIG).write_text(webhook_config())
        priority = {"metadata": {"name": "batch-low"}, "value": -10}
        core.client.create(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **priority}
        )
        account = _pod()["spec"]["serviceAccountName"]
        for way in _WAYS:
            core.client.namespace(way)
            metadata = {"name": account, "namespace": way}
            core.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        for way in _SERVERS:
            _serve(core, stack, way)
        yield core


def _serve(core: Core, stack: ExitStack, way: str) -> None:
    """Start the server of a way, and let the API server ask it in the namespace of that name."""
    authority, port, folder = Authority(), free_port(), core.folder / way
    authority.write(folder)
    listening = (f"--host={_HOST}", f"--port={port}", f"--certificates={folder}")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    server = Process(way, [*_SERVERS[way], *listening], folder=folder, env=env)

    def listens() -> bool:
        with socket.create_connection((_HOST, port), timeout=1):
            return True

    stack.enter_context(server).wait_for(listens)
    of = installation(load_tailor(core.folder / _CONFIG), "none", "none", "self-signed")
    found = configuration(of)
    found["metadata"]["name"] = way
    for webhook in found["webhooks"]:
        webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": way}}
        webhook["clientConfig"] = {
            "url": f"https://{_HOST}:{port}/mutate",
            "caBundle": base64.b64encode(authority.pem).decode(),
        }
    core.client.create(found)


def _pod() -> dict[str, Any]:
    """The training pod as FlytePropeller creates it, but for nobody to schedule or to collect."""
    pod: dict[str, Any] = orjson.loads(review())["request"]["object"]
    pod["metadata"] = {
        "generateName": "train-",
        "labels": pod["metadata"]["labels"],
        "annotations": pod["metadata"]["annotations"],
    }
    pod["spec"]["schedulerName"] = "nobody"
    return pod


# the clients -----------------------------------------------------------------------------------


def _turn(core: Core, way: str, seconds: float) -> Turn:
    start = time.perf_counter()
    taken = sorted(asyncio.run(_created(core, way, lambda: time.perf_counter() - start > seconds)))
    return Turn(median(taken), taken[int(len(taken) * 0.99)], len(taken))


async def _created(core: Core, way: str, enough: Callable[[], bool]) -> list[float]:
    """The seconds that each pod took, of at least one by each client, until it is enough."""
    config = yaml.safe_load(core.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
    port = int(cluster["server"].rpartition(":")[2])
    body = orjson.dumps(_pod())
    request = (
        f"POST /api/v1/namespaces/{way}/pods HTTP/1.1\r\nhost: {_HOST}\r\n"
        f"authorization: Bearer {config['users'][0]['user']['token']}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body
    taken: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection(_HOST, port, ssl=trust)
        while True:
            start = time.perf_counter()
            writer.write(request)
            head, answer = await _answer(reader)
            taken.append(time.perf_counter() - start)
            assert head.startswith(b"HTTP/1.1 201"), answer
            assert (b"example.com/spot" in answer) == (way in _PATCHING), "who was asked"
            if enough():
                break
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(client() for _ in range(_CLIENTS)))
    return taken


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body, which may come in pieces."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower().replace(b"http/", b"HTTP/")
    _, found, length = head.partition(b"content-length: ")
    if found:
        return head, await reader.readexactly(int(length.partition(b"\r\n")[0]))
    return head, await reader.readuntil(b"\r\n0\r\n\r\n")


def _ratio(
    of: Callable[[Turn], float], against: str, *, way: str = "ours"
) -> Callable[[Plan], float]:
    return lambda plan: median(of(each[way]) / of(each[against]) for each in turns(plan))


def _p50(turn: Turn) -> float:
    return turn.p50


def _p99(turn: Turn) -> float:
    return turn.p99


ROWS = (
    Row(
        "create-noop-p50",
        f"creating pods through the API server, {_CLIENTS} clients, a no-op webhook against none: "
        "p50",
        math.inf,
        math.inf,
        _ratio(_p50, "none", way="noop"),
    ),
    Row(
        "create-p50",
        f"creating pods through the API server, {_CLIENTS} clients, 10 steps, against a no-op: p50",
        1.1,
        1.25,
        _ratio(_p50, "noop"),
    ),
    Row("create-p99", "the same: p99", 1.15, 1.4, _ratio(_p99, "noop")),
    Row(
        "create-remembered-p50",
        "the same, against one that has the same patch from memory: p50",
        1.1,
        1.25,
        _ratio(_p50, "remembered"),
    ),
    Row("create-remembered-p99", "the same: p99", 1.15, 1.4, _ratio(_p99, "remembered")),
)
