"""The stack, one part a fixture: what a test asks for is started, once for the whole run."""

from __future__ import annotations

import functools
import importlib
import itertools
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from .executions import Launcher, register
from .stack.client import Client
from .stack.core import Core
from .stack.flyte import start_flyteadmin, start_propeller
from .stack.kubelet import start_kubelet
from .stack.kwok import start_kwok
from .stack.operators import start_jobset, start_kuberay, start_kueue, start_training_operator
from .stack.process import Process
from .stack.pyflyte import DOMAINS, PROJECT, Pyflyte
from .stack.s3 import S3, start_s3
from .stack.webhook import Webhook

_HERE = Path(__file__).parent
_NUMBER = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is marked `cluster`: `make test` leaves it out."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("cluster")


@pytest.fixture(scope="session")
def running() -> Iterator[ExitStack]:
    """What ends the stack, the last first."""
    # Once imported, flytekit has Ctrl-C: a test would fail of it, and the run would go on.
    importlib.import_module("flytekit")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def core(running: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Core:
    """etcd, the API server, the scheduler, the controller manager."""
    return Core(tmp_path_factory.mktemp("cluster"), running)


@pytest.fixture(scope="session")
def client(core: Core) -> Client:
    """The administrator's."""
    return core.client


@pytest.fixture(scope="session")
def kwok(core: Core, running: ExitStack) -> Process:
    """Keeps the nodes made by `stack.kwok.node`."""
    return start_kwok(core, running)


@pytest.fixture(scope="session")
def kueue(core: Core, training_operator: Process, running: ExitStack) -> Process:
    """Kueue, after the definitions of what it is to know."""
    return start_kueue(core, running)


@pytest.fixture(scope="session")
def training_operator(core: Core, running: ExitStack) -> Process:
    """Kubeflow's operator."""
    return start_training_operator(core, running)


@pytest.fixture(scope="session")
def kuberay(core: Core, running: ExitStack) -> Process:
    """KubeRay, which is not of the core: mark the test `all_tools`."""
    return start_kuberay(core, running)


@pytest.fixture(scope="session")
def jobset(core: Core, running: ExitStack) -> Process:
    """JobSet's operator, which is not of the core: mark the test `all_tools`."""
    return start_jobset(core, running)


@pytest.fixture(scope="session")
def s3(core: Core, running: ExitStack) -> S3:
    """An S3 server."""
    return start_s3(core.folder, running)


@pytest.fixture(scope="session")
def flyteadmin(core: Core, s3: S3, running: ExitStack) -> str:
    """The endpoint of FlyteAdmin, or of what stands in for it: host:port."""
    return start_flyteadmin(core, s3, running)


@pytest.fixture(scope="session")
def propeller(
    core: Core, s3: S3, flyteadmin: str, training_operator: Process, running: ExitStack
) -> Process:
    """FlytePropeller."""
    return start_propeller(core, s3, flyteadmin, running)


@pytest.fixture(scope="session")
def kubelet(core: Core, s3: S3, running: ExitStack) -> Process:
    """Runs Flyte's pods on the nodes with its label as processes."""
    return start_kubelet(core, s3, running)


@pytest.fixture(scope="session")
def pyflyte(client: Client, flyteadmin: str, propeller: Process, s3: S3) -> Pyflyte:
    """flytekit's commands and client, with Flyte's control plane behind them."""
    for domain in DOMAINS:
        client.namespace(f"{PROJECT}-{domain}")
    return Pyflyte(flyteadmin, s3)


RegisterOnce: TypeAlias = Callable[[str, str], None]
"""Registers a module of the project in a domain, unless that was done."""

MakeLauncher: TypeAlias = Callable[[str], Launcher]
"""What launches a module of the project."""


@pytest.fixture(scope="session")
def register_once(pyflyte: Pyflyte) -> RegisterOnce:
    """By `pyflyte register`, without a config."""
    return functools.cache(lambda module, domain: register(pyflyte, module, domain=domain))


@pytest.fixture
def launcher(client: Client, pyflyte: Pyflyte) -> Iterator[MakeLauncher]:
    """What it launched and still runs at the test's end is terminated."""
    with ExitStack() as stack:
        yield lambda module: Launcher(client, pyflyte, module, stack)


@pytest.fixture
def namespace(client: Client, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; what is in it goes with it."""
    word = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.lower().removeprefix("test_"))
    name = client.namespace(f"{word[:40].strip('-')}-{next(_NUMBER)}")
    yield name
    client.delete("v1", "Namespace", None, name)


MakeWebhook: TypeAlias = Callable[..., Webhook]
"""Starts a webhook: `stack.webhook.Webhook` without its first two arguments."""


@pytest.fixture
def webhook(core: Core) -> Iterator[MakeWebhook]:
    """Webhooks that end with the test."""
    with ExitStack() as stack:
        yield functools.partial(Webhook, core, stack)
