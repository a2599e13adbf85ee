"""`kubetailor webhook serve --self-signed` as it is installed: Secret, Service, trust, renewal."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml

from kubetailor.plugins.webhook.manifests import installation, manifests
from kubetailor.plugins.webhook.objects import NAME
from kubetailor.plugins.webhook.reload import load_tailor

from .load import Load
from .plain import pod
from .stack.client import Client
from .stack.core import Core
from .stack.kubectl import kubectl
from .stack.process import Process, free_port, wait_for

ADMISSION: Final = "admissionregistration.k8s.io/v1"
NAMESPACE: Final = "self-signed-system"
CONFIG: Final = """
phases: [admit]
chains:
  default:
    steps:
      - {use: node_selector, with: {set: {pool: a}}}
"""
SERVE: Final = """
import sys
from pathlib import Path
from kubetailor.plugins.webhook.serving import serve

config, port, certificates, account, namespace, name = sys.argv[1:]
serve(
    Path(config),
    host="127.0.0.1",
    port=int(port),
    certificates=Path(certificates),
    self_signed=(namespace, name),
    account=Path(account),
)
"""
"""What the command does; only a pod's files are elsewhere."""


@pytest.fixture
def port(core: Core, tmp_path: Path) -> Iterator[int]:
    """What `manifests` prints is applied; the Service leads to this port of loopback."""
    port = free_port()
    (tmp_path / "kubetailor.yaml").write_text(CONFIG)
    tailor = load_tailor(tmp_path / "kubetailor.yaml")
    objects = manifests(installation(tailor, "unused", NAMESPACE, "self-signed"))
    # Its server is a process of this machine, which no ClusterIP leads to.
    objects = [obj for obj in objects if obj["kind"] != "Deployment"]
    for obj in objects:
        if obj["kind"] == "Service":
            ports = [{"name": "https", "port": port}]
            obj["spec"] = {"type": "ExternalName", "externalName": "localhost", "ports": ports}
        for webhook in obj.get("webhooks", ()):
            webhook["clientConfig"]["service"]["port"] = port
    text = yaml.safe_dump_all(objects)
    kubectl(core, "apply", "-f", "-", stdin=text)
    yield port
    core.client.delete(ADMISSION, "MutatingWebhookConfiguration", None, NAME)
    kubectl(core, "delete", "--ignore-not-found", "-f", "-", stdin=text)


@pytest.fixture
def server(core: Core, port: int, tmp_path: Path) -> Iterator[Process]:
    """The server, in what it takes for its pod."""
    (tmp_path / "token").write_text(kubectl(core, "create", "token", NAME, f"-n={NAMESPACE}"))
    (tmp_path / "ca.crt").write_bytes((core.folder / "ca.crt").read_bytes())
    where = urlsplit(core.url)
    env = {
        **os.environ,
        "KUBERNETES_SERVICE_HOST": str(where.hostname),
        "KUBERNETES_SERVICE_PORT": str(where.port),
    }
    command = [sys.executable, "-c", SERVE, tmp_path / "kubetailor.yaml", port]
    command += [tmp_path / "certificates", tmp_path, NAMESPACE, NAME]
    with Process("server", command, folder=tmp_path, env=env) as process:
        process.wait_for(lambda: "certificate renewed" in events(process))
        yield process


def events(server: Process) -> list[str]:
    return [json.loads(line)["event"] for line in server.log.read_text().splitlines()]


def secret(client: Client) -> dict[str, str]:
    found: dict[str, str] = client.get("v1", "Secret", NAMESPACE, NAME).get("data", {})
    return found


def bundles(client: Client) -> set[str]:
    found = client.get(ADMISSION, "MutatingWebhookConfiguration", None, NAME)
    return {webhook["clientConfig"].get("caBundle", "") for webhook in found["webhooks"]}


def test_its_certificates_are_made_trusted_and_made_anew(
    client: Client, server: Process, namespace: str
) -> None:
    def tailored() -> Any:
        return client.create(pod(namespace, "first-"))["spec"]["nodeSelector"] == {"pool": "a"}

    wait_for("the first that is tailored", tailored, while_=server.check)
    first = secret(client)
    assert first.keys() == {"tls.crt", "tls.key", "ca.crt", "ca.key"}
    assert bundles(client) == {first["ca.crt"]}

    with Load(client, namespace, clients=2, dryRun="All") as load:
        load.goes_on()
        emptied = dict.fromkeys(first)
        client.patch("v1", "Secret", NAMESPACE, NAME, {"data": emptied})
        assert secret(client) == {}
        # It looks at the Secret once a minute.
        wait_for(
            "the new certificate",
            lambda: "certificate loaded" in events(server),
            seconds=180,
            while_=server.check,
        )
        load.goes_on()

    assert load.refused == []
    assert {one["spec"]["nodeSelector"]["pool"] for one in load.created} == {"a"}
    second = secret(client)
    assert {name for name in first if first[name] == second[name]} == set()
    assert bundles(client) == {second["ca.crt"]}
    assert base64.b64decode(second["ca.crt"]).endswith(base64.b64decode(first["ca.crt"]))
