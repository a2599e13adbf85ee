"""The commands, as a person or a Deployment starts them."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kubetailor.plugins.cli.root import cli
from kubetailor.plugins.webhook.certificates import Certificates, renewed
from kubetailor.plugins.webhook.reviews import dump

from .conftest import review_of

CONFIG = """
phases: [serialize, admit]
chains:
  default:
    steps: [{use: labels, with: {set: {said: a}}}]
"""


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def write(directory: Path, found: Certificates) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "tls.key").write_bytes(found.key)
    (directory / "tls.crt").write_bytes(found.certificate)


# manifests -------------------------------------------------------------------------------------


def manifests(tmp_path: Path, *arguments: str, config: str = CONFIG) -> dict[str, dict[str, Any]]:
    path = tmp_path / "kubetailor.yaml"
    path.write_text(config)
    run = CliRunner().invoke(
        cli,
        ["webhook", "manifests", "--config", str(path), "--image", "acme/kubetailor:1", *arguments],
    )
    assert run.exit_code == 0, run.output
    objects = list(yaml.safe_load_all(run.output))
    kinds = [obj["kind"] for obj in objects]
    assert len(kinds) == len(set(kinds))
    return {obj["kind"]: obj for obj in objects}


def test_the_webhook_configuration_is_careful(tmp_path: Path) -> None:
    found = manifests(tmp_path)["MutatingWebhookConfiguration"]
    # The API server calls them in the order of their names.
    assert found["metadata"]["name"] < "kueue-mutating-webhook-configuration"
    for webhook in found["webhooks"]:
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["reinvocationPolicy"] == "IfNeeded"
        assert webhook["sideEffects"] == "None"
        assert webhook["admissionReviewVersions"] == ["v1"]
        assert webhook["objectSelector"]["matchExpressions"]
        names = webhook["namespaceSelector"]["matchExpressions"][0]
        assert names["operator"] == "NotIn"
        assert {"kube-system", "kubetailor-system"} <= set(names["values"])
        for rule in webhook["rules"]:
            assert rule["operations"] == ["CREATE"]
        resources = {r for rule in webhook["rules"] for r in rule["resources"]}
        assert {"pods", "jobs", "pytorchjobs", "rayjobs", "sparkapplications"} <= resources


def test_kinds_of_plugins_are_sent_too(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(
        "from kubetailor.registry import Kind, PodPath, hookimpl\n"
        "@hookimpl\n"
        "def register_kinds(register):\n"
        "    register(Kind('Proxy', 'acme.example.com', (PodPath('worker', 'spec.template'),)))\n"
    )
    found = manifests(tmp_path, config="plugins: [./probe.py]\n" + CONFIG)
    rules = found["MutatingWebhookConfiguration"]["webhooks"][0]["rules"]
    assert [rule["resources"] for rule in rules if rule["apiGroups"] == ["acme.example.com"]] == [
        ["proxies"]
    ]
    assert set(found["ConfigMap"]["data"]) == {"kubetailor.yaml", "probe.py"}


def test_a_plugin_in_another_folder_does_not_fit_into_a_config_map(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "probe.py").write_text("")
    path = tmp_path / "kubetailor.yaml"
    path.write_text("plugins: [./team/probe.py]\n" + CONFIG)
    run = CliRunner().invoke(
        cli, ["webhook", "manifests", "--config", str(path), "--image", "acme/kubetailor:1"]
    )
    assert run.exit_code == 2
    assert "team/probe.py" in run.output


def test_the_pods_may_do_nothing_that_they_need_not(tmp_path: Path) -> None:
    found = manifests(tmp_path, "--certificates", "cert-manager", "-n", "platform")
    assert not {"Role", "ClusterRole", "RoleBinding", "Secret"} & set(found)
    deployment = found["Deployment"]["spec"]
    assert deployment["replicas"] == 2
    pod = deployment["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["topologySpreadConstraints"]
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] == 1
    assert found["Certificate"]["spec"]["dnsNames"][0] == "kubetailor.platform.svc"
    annotations = found["MutatingWebhookConfiguration"]["metadata"]["annotations"]
    assert annotations == {"cert-manager.io/inject-ca-from": "platform/kubetailor"}


def test_who_signs_for_itself_may_change_its_own_secret_and_configuration(tmp_path: Path) -> None:
    found = manifests(tmp_path)
    for role, resource in (
        ("Role", "secrets"),
        ("ClusterRole", "mutatingwebhookconfigurations"),
    ):
        (rule,) = found[role]["rules"]
        assert (rule["resources"], rule["resourceNames"]) == ([resource], ["kubetailor"])
        assert "create" not in rule["verbs"]
    assert "data" not in found["Secret"]


def test_a_config_for_another_host_makes_no_manifests(tmp_path: Path) -> None:
    path = tmp_path / "kubetailor.yaml"
    path.write_text("chains: {default: {steps: []}}")
    run = CliRunner().invoke(
        cli, ["webhook", "manifests", "--config", str(path), "--image", "acme/kubetailor:1"]
    )
    assert run.exit_code == 2
    assert "phases" in run.output


# serve -----------------------------------------------------------------------------------------


class Server:
    """A process of `kubetailor webhook serve`, and connections to it."""

    def __init__(self, process: subprocess.Popen[bytes], bundle: bytes) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._started = threading.Event()
        self.port = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self._started.wait(60), self.lines
        assert self.port, self.lines
        self.trust(bundle)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            self.lines.append(said)
            if "running on https://" in said.get("message", ""):
                self.port = int(said["message"].partition("https://127.0.0.1:")[2].split(" ")[0])
                self._started.set()
        self._started.set()

    def trust(self, bundle: bytes) -> None:
        self._context = ssl.create_default_context(cadata=bundle.decode())

    def connect(self) -> http.client.HTTPSConnection:
        found = http.client.HTTPSConnection(
            "localhost", self.port, context=self._context, timeout=20
        )
        found.connect()
        return found

    @staticmethod
    def mutate(connection: http.client.HTTPSConnection) -> dict[str, Any]:
        body = dump(review_of("pod-n0-0"))
        connection.request("POST", "/mutate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found: dict[str, Any] = json.loads(answer.read())["response"]
        return found

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "kubetailor.yaml").write_text(CONFIG)
    made = renewed(None, ["localhost"], now())
    write(tmp_path / "certificates", made)
    arguments = ["--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "kubetailor", "webhook", "serve", *arguments),
            *("--config", str(tmp_path / "kubetailor.yaml")),
            *("--certificates", str(tmp_path / "certificates")),
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    found = Server(process, made.bundle)
    yield found
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            found.end()


def test_it_serves_by_https_until_it_is_told_to_end(server: Server) -> None:
    connection = server.connect()
    for _ in range(3):  # on one connection
        response = server.mutate(connection)
        assert response["allowed"]
        assert response["patchType"] == "JSONPatch"
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    assert "kubetailor_certificate_days_left 89." in text
    connection.close()
    assert server.end() in (0, -signal.SIGTERM)
    events = [line["event"] for line in server.lines]
    assert events.count("decision") == 3
    assert "config loaded" in events


def test_a_rotated_certificate_is_served_without_a_restart(server: Server, tmp_path: Path) -> None:
    open_before = server.connect()
    other = renewed(None, ["localhost"], now())
    write(tmp_path / "certificates", other)
    server.trust(other.bundle)
    end = time.monotonic() + 20
    while True:
        try:
            connection = server.connect()
            break
        except ssl.SSLCertVerificationError:
            assert time.monotonic() < end
            time.sleep(0.1)
    assert server.mutate(connection)["allowed"]
    assert server.mutate(open_before)["allowed"]
    connection.close()
    open_before.close()


def test_certificates_that_are_not_there_end_it_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "kubetailor.yaml").write_text(CONFIG)
    arguments = ["--config", str(tmp_path / "kubetailor.yaml"), "--certificates", str(tmp_path)]
    run = CliRunner().invoke(cli, ["webhook", "serve", *arguments])
    assert run.exit_code == 2
    assert "tls.crt" in run.output


@pytest.mark.parametrize("text", ["x", "a/", "/b", "a/b/c"])
def test_a_secret_is_named_by_namespace_and_name(text: str) -> None:
    run = CliRunner().invoke(cli, ["webhook", "serve", "--self-signed", text])
    assert run.exit_code == 2
    assert "NAMESPACE/NAME" in run.output


def test_help_needs_none_of_what_serving_needs(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('uvicorn', 'prometheus_client', 'cryptography'): sys.modules[name] = None\n"
        "from kubetailor.plugins.cli import main\n"
        "main()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, "webhook", "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "serve" in run.stdout
    assert "manifests" in run.stdout
