"""What whoever runs the webhook sees of it: probes, metrics, logs."""

from __future__ import annotations

import datetime as dt
import urllib.error
from contextlib import nullcontext
from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubetailor.plugins.webhook.reload import load_tailor

from .conftest import MakeWebhook
from .objects import TAILORED
from .plain import pod
from .stack.client import ApiError, Client
from .stack.process import wait_for
from .stack.webhook import Webhook

PLUGIN: Final = '''
"""What no built-in does."""

from kubetailor.registry import Pod, transformer


@transformer
def broken(pod: Pod) -> None:
    """Fail as code does."""
    raise RuntimeError("no such table")
'''
CONFIG: Final = """
plugins: [./probe.py]
phases: [admit]
chains:
  spot:
    steps:
      - {name: pool, use: node_selector, with: {set: {pool: spot}}}
      - {use: env, with: {set: {THREADS: 8}}}
  broken:
    steps: [{name: table, use: probe.broken}]
  nothing: {}
select:
  - {when: {labels: {chain: spot}}, chain: spot}
  - {when: {labels: {chain: broken}}, chain: broken}
  - {when: {labels: {chain: nothing}}, chain: nothing}
"""
FILES: Final = {"probe.py": PLUGIN}
OUTCOMES: Final = {"spot": "patched", "broken": "denied", "nothing": "unchanged", "": "ignored"}
"""Label -> what is decided."""


def create(client: Client, namespace: str, chain: str, **more: Any) -> None:
    """Create a pod for which this chain is selected."""
    labels = {**TAILORED, **({"chain": chain} if chain else {})}
    asked = pod(namespace, "one-", labels=labels, **more)
    refused = pytest.raises(ApiError, match=r"^422: ") if chain == "broken" else nullcontext()
    with refused:
        client.create(asked)


def page(webhook: Webhook, port: int, path: str) -> tuple[int, str]:
    """A page with its code."""
    try:
        return 200, webhook.ask(port, path)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metrics(webhook: Webhook) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Name and labels -> value."""
    [port] = webhook.replicas
    families = text_string_to_metric_families(webhook.ask(port, "/metrics"))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def of(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """A key of `metrics`."""
    return f"kubetailor_{name}", frozenset(labels.items())


def test_it_is_ready_once_a_config_is_loaded(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    server = webhook(CONFIG, namespace, files=FILES)
    server.config.write_text(CONFIG.replace("probe.broken", "probe.brocken"))
    port = server.serve(until="/healthz")

    wait_for("the config", lambda: "is not loaded yet" not in page(server, port, "/readyz")[1])
    code, text = page(server, port, "/readyz")
    assert code == 503
    assert "kubetailor.yaml:" in text
    assert "probe.brocken" in text
    assert "probe.broken" in text.replace("probe.brocken", ""), "what may be meant"
    assert page(server, port, "/healthz") == (200, "ok\n")
    assert "kubetailor_config_last_reload_successful 0.0" in server.ask(port, "/metrics")
    # The one that had a config before keeps it.
    [older, _] = server.replicas
    assert page(server, older, "/readyz") == (200, "ok\n")

    server.config.write_text(CONFIG)
    wait_for("it to be ready", lambda: page(server, port, "/readyz") == (200, "ok\n"))
    server.replicas.pop(older).stop()
    create(client, namespace, "spot")
    assert server.log().count('"outcome":"patched"') == 1


def test_metrics_count_what_was_done(client: Client, webhook: MakeWebhook, namespace: str) -> None:
    server = webhook(CONFIG, namespace, files=FILES)
    for count, chain in enumerate(OUTCOMES, start=1):
        for _ in range(count):
            create(client, namespace, chain)

    found = metrics(server)
    for count, (chain, outcome) in enumerate(OUTCOMES.items(), start=1):
        assert found[of("decisions_total", outcome=outcome, kind="Pod", chain=chain)] == count
    assert found[of("requests_total", code="200")] == 10
    assert found[of("decision_seconds_count")] == 10
    assert 0 < found[of("decision_seconds_sum")] < 10
    assert found[of("decision_seconds_bucket", le="+Inf")] == 10
    for chain, step, count in (("spot", "pool", 1), ("spot", "env", 1), ("broken", "table", 2)):
        assert found[of("step_seconds_count", chain=chain, step=step)] == count
        assert found[of("step_seconds_sum", chain=chain, step=step)] > 0
    assert found[of("reloads_total", result="loaded")] == 1
    assert found[of("reloads_total", result="refused")] == 0
    digest = load_tailor(server.config).digest
    assert found[of("config_info", digest=digest)] == 1
    assert 0.9 < found[of("certificate_days_left")] < 1


def test_metrics_follow_files(webhook: MakeWebhook, namespace: str) -> None:
    server = webhook(CONFIG, namespace, files=FILES)
    before = load_tailor(server.config).digest
    server.config.write_text(CONFIG.replace("THREADS: 8", "THREADS: 4"))
    after = load_tailor(server.config).digest
    assert before != after
    server.renew(lives=dt.timedelta(days=30))

    def followed() -> bool:
        found = metrics(server)
        return (
            found.get(of("config_info", digest=after)) == 1
            and of("config_info", digest=before) not in found
            and found[of("reloads_total", result="loaded")] == 2
            and 29 < found[of("certificate_days_left")] < 30
        )

    wait_for("the metrics", followed)


def test_each_decision_is_one_line_and_tells_no_secret(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    server = webhook(CONFIG, namespace, files=FILES)
    secret = "c29tZWJvZHkncyB0b2tlbg"
    container = {
        "name": "main",
        "image": "python:3.12",
        "env": [{"name": "TOKEN", "value": secret}],
        "args": [f"--password={secret}"],
    }
    for chain in OUTCOMES:
        create(client, namespace, chain, containers=[container], annotations={"key": secret})

    found = server.decisions()
    assert [line["outcome"] for line in found] == list(OUTCOMES.values())
    assert len({line["uid"] for line in found}) == len(OUTCOMES)
    for line, chain in zip(found, OUTCOMES, strict=True):
        assert line.get("chain", "") == chain
        assert (line["kind"], line["namespace"], line["operation"]) == ("Pod", namespace, "CREATE")
        assert line["name"].startswith("one-")
        assert line["level"] == ("warning" if chain == "broken" else "info")
        assert 0 < line["ms"] < 10_000
    patched, denied, _, ignored = found
    assert patched["steps"] == ["pool", "env"]
    assert patched["operations"] > 0
    assert "step 'table'" in denied["reason"]
    assert ignored["reason"] == "no chain is selected"
    assert secret not in server.log()
    [port] = server.replicas
    assert secret not in server.ask(port, "/metrics")


def test_pages_can_be_read_and_nothing_else(webhook: MakeWebhook, namespace: str) -> None:
    server = webhook("phases: [admit]\nchains: {default: {}}\n", namespace)
    [port] = server.replicas
    for path in ("/healthz", "/readyz", "/metrics"):
        assert page(server, port, path)[0] == 200
        assert page(server, port, f"{path}/x")[0] == 404
    assert page(server, port, "/mutate")[0] == 405
