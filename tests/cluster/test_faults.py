"""What goes wrong around the webhook: no pipeline object comes in untailored, and nobody waits."""

from __future__ import annotations

import datetime as dt
import ssl
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from .conftest import MakeWebhook
from .load import Load
from .objects import TAILORED
from .plain import pod
from .stack.client import ApiError, Client
from .stack.process import wait_for
from .stack.webhook import Webhook

HOUR: Final = dt.timedelta(hours=1)

PLUGIN: Final = '''
"""Takes as long as a test wants."""

import time
from pathlib import Path

from kubetailor.registry import Pod, transformer


@transformer
def waits(pod: Pod, *, file: str) -> None:
    """Say that it has begun, and wait until a file is there."""
    Path(__file__).with_name("begun").touch()
    while not Path(__file__).with_name(file).exists():
        time.sleep(0.01)
'''
FILES: Final = {"probe.py": PLUGIN}


def config(pool: str, *steps: str) -> str:
    """One whose chain says which pool, after these steps."""
    selector = f"{{use: node_selector, with: {{set: {{pool: {pool}}}}}}}"
    listed = "".join(f"      - {step}\n" for step in (*steps, selector))
    return f"""
plugins: [./probe.py]
phases: [admit]
chains:
  default:
    steps:
{listed}"""


def pools(made: list[dict[str, Any]]) -> set[str | None]:
    """The pools that pods were given; None is of one that is not tailored."""
    return {one["spec"].get("nodeSelector", {}).get("pool") for one in made}


def check(client: Client, namespace: str, load: Load, *expected: str) -> None:
    """What is in the cluster is what was created, and all of it is tailored."""
    there = {one["metadata"]["name"]: one for one in client.list("v1", "Pod", namespace)}
    assert pools(list(there.values())) <= set(expected)
    assert pools(load.created) <= set(expected)
    assert {one["metadata"]["name"] for one in load.created} <= there.keys()
    assert not {name for name, _ in load.refused} & there.keys()


def serial(webhook: Webhook, port: int) -> str:
    """What tells one certificate from the next."""
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=10)


# the server ------------------------------------------------------------------------------------


def test_a_server_that_dies_in_the_middle_lets_nothing_in(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    waiting = config("a", "{use: probe.waits, when: {labels: {wait: x}}, with: {file: go}}")
    server = webhook(waiting, namespace, files=FILES)
    [(port, process)] = server.replicas.items()
    asked = pod(namespace, "in-the-middle", labels={**TAILORED, "wait": "x"})
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(client.create, asked)
        wait_for("the request", (server.config.parent / "begun").exists, every=0.01)
        process.kill()
        with pytest.raises(ApiError, match="failed calling webhook") as error:
            asking.result()
    assert error.value.code == 500

    with pytest.raises(ApiError, match="labelled") as error:
        client.create(pod(namespace, "meanwhile"))
    assert error.value.code == 500
    assert client.list("v1", "Pod", namespace) == []

    (server.config.parent / "go").touch()
    server.serve(port)
    assert pools([client.create(asked), client.create(pod(namespace, "after"))]) == {"a"}


def test_one_of_two_servers_ends_in_order_and_no_request_is_lost(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    server = webhook(config("a"), namespace, files=FILES, replicas=2)
    with Load(client, namespace) as load:
        load.goes_on()
        for _ in range(2):
            # A Service is told of a pod's end no later than the pod.
            _, process = server.replicas.popitem()
            process.stop()
            assert process.wait() == 0
            load.goes_on()
            server.serve()
            load.goes_on()

    assert load.refused == []
    check(client, namespace, load, "a")


def test_one_of_two_servers_is_lost_and_nothing_comes_in_untailored(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    server = webhook(config("a"), namespace, files=FILES, replicas=2)
    with Load(client, namespace) as load:
        load.goes_on()
        next(iter(server.replicas.values())).kill()
        load.goes_on(100)

    assert len(load.refused) <= 40, "what was on its way, and on connections that seemed open"
    for _, error in load.refused:
        assert error.code == 500
        assert "failed calling webhook" in error.message
    check(client, namespace, load, "a")


def test_a_thousand_pods_at_once(client: Client, webhook: MakeWebhook, namespace: str) -> None:
    """A client each, all of them let go in the same moment."""
    server = webhook(config("a"), namespace, files=FILES)
    client.create(pod(namespace, "first"), dryRun="All")
    all_there = threading.Barrier(1000)

    def create(number: int) -> tuple[Any, float]:
        all_there.wait(60)
        start = time.monotonic()
        return client.create(pod(namespace, f"one-{number}")), time.monotonic() - start

    with ThreadPoolExecutor(1000) as threads:
        made, took = zip(*threads.map(create, range(1000)), strict=True)

    # On two cores that etcd, the API server and the clients share: nobody is left waiting.
    assert statistics.median(took) < 30
    assert max(took) < 60
    assert pools(list(made)) == {"a"}
    assert len({one["metadata"]["uid"] for one in made}) == 1000
    assert len(client.list("v1", "Pod", namespace)) == 1000
    [port] = server.replicas
    said = server.ask(port, "/metrics")
    assert 'kubetailor_decisions_total{chain="default",kind="Pod",outcome="patched"} 1001.0' in said


# the config ------------------------------------------------------------------------------------


def test_configs_change_under_load_and_no_request_is_lost(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    server = webhook(config("a"), namespace, files=FILES)
    [port] = server.replicas

    def newest_in_use() -> str:
        name = "kubetailor_config_last_reload_successful "
        lines = server.ask(port, "/metrics").splitlines()
        return next(line.removeprefix(name) for line in lines if line.startswith(name))

    assert newest_in_use() == "1.0"
    with Load(client, namespace, clients=4) as load:
        load.goes_on()
        broken = ("chains: [", config("b", "{use: nothing}"), "")
        for number, text in enumerate(broken, start=1):
            server.config.write_text(text)
            server.wait_for_events("config refused", number)
            assert newest_in_use() == "0.0"
            assert server.ask(port, "/readyz") == "ok\n", "the old one is in use"
            load.goes_on()
        assert pools(load.created) == {"a"}
        for number, pool in enumerate("bcb", start=2):
            server.config.write_text(config(pool))
            server.wait_for_events("config loaded", number)
            load.goes_on()
        assert newest_in_use() == "1.0"

    assert load.refused == []
    assert pools(load.created[-1:]) == {"b"}
    check(client, namespace, load, "a", "b", "c")
    assert "nothing" in server.events("config refused")[1]["reason"]


# certificates ----------------------------------------------------------------------------------


def test_an_expired_certificate_lets_nothing_in_and_says_so(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    server = webhook(config("a"), namespace, files=FILES)
    server.renew(lives=-HOUR)
    server.wait_for_events("certificate loaded", 1)
    with pytest.raises(ApiError, match="certificate has expired") as error:
        client.create(pod(namespace))
    assert error.value.code == 500
    assert client.list("v1", "Pod", namespace) == []

    server.renew(lives=HOUR)
    server.wait_for_events("certificate loaded", 2)
    assert pools([client.create(pod(namespace))]) == {"a"}


def test_certificates_are_renewed_under_load_and_no_request_is_lost(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    server = webhook(config("a"), namespace, files=FILES)
    [port] = server.replicas
    seen = {serial(server, port)}
    with Load(client, namespace, clients=4) as load:
        for number in range(1, 4):
            server.renew(lives=HOUR)
            server.wait_for_events("certificate loaded", number)
            seen.add(serial(server, port))
            load.goes_on()

    assert len(seen) == 4
    assert load.refused == []
    check(client, namespace, load, "a")
