"""deploy/ on a real API server: what is built, what the server takes, what the pods may do."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from kubetailor.plugins.webhook.cluster import ApiServer, ApiServerError
from kubetailor.plugins.webhook.manifests import installation, manifests
from kubetailor.plugins.webhook.objects import CertificatesBy
from kubetailor.plugins.webhook.reload import load_tailor
from kubetailor.plugins.webhook.rotation import SelfSigned

from ..docs.test_pages import blocks_of, run
from . import objects
from .build import TOOLS, program
from .stack.client import ApiError, Client
from .stack.core import Core
from .stack.kubectl import kubectl
from .stack.kwok import node
from .stack.process import wait_for

DEPLOY = Path(__file__).parents[2] / "deploy"
IMAGE = "registry.example.com/kubetailor"
NAMESPACE = "kubetailor-system"
ADMISSION = "admissionregistration.k8s.io/v1"
Objects = dict[tuple[str, str], dict[str, Any]]
Build = Callable[[str], str]


def objects_of(text: str) -> Objects:
    return {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(text)}


@pytest.fixture
def build(core: Core, tmp_path: Path) -> Build:
    """Builds a kustomization of deploy/, also with components that a user puts into it."""

    def make(what: str) -> str:
        name, *components = what.split("+")
        folder = shutil.copytree(DEPLOY, tmp_path / what)
        if components:
            lines = [f"  - ../../{component}\n" for component in components]
            with (folder / name / "kustomization.yaml").open("a") as file:
                file.write("components:\n" + "".join(lines))
        return kubectl(core, "kustomize", str(folder / name))

    return make


# what is built -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "config", "image", "namespace", "certificates"),
    [
        ("base", "base", IMAGE, NAMESPACE, "self-signed"),
        ("overlays/cert-manager", "base", IMAGE, NAMESPACE, "cert-manager"),
        (
            "overlays/team",
            "overlays/team",
            "registry.example.com/speech/kubetailor:1",
            "speech-platform",
            "self-signed",
        ),
        (
            "overlays/team+cert-manager",
            "overlays/team",
            "registry.example.com/speech/kubetailor:1",
            "speech-platform",
            "cert-manager",
        ),
    ],
)
def test_a_kustomization_says_what_the_command_prints(
    what: str,
    config: str,
    image: str,
    namespace: str,
    certificates: CertificatesBy,
    build: Build,
) -> None:
    tailor = load_tailor(DEPLOY / config / "kubetailor.yaml")
    wanted = manifests(installation(tailor, image, namespace, certificates))
    assert objects_of(build(what)) == {(o["kind"], o["metadata"]["name"]): o for o in wanted}


def test_monitoring_follows_the_namespace(build: Build) -> None:
    plain, found = (objects_of(build(f"overlays/team{more}")) for more in ("", "+monitoring"))
    added = found.keys() - plain.keys()
    assert {kind for kind, _ in added} == {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
    assert {found[key]["metadata"]["namespace"] for key in added} == {"speech-platform"}
    (endpoint,) = found["ServiceMonitor", "kubetailor"]["spec"]["endpoints"]
    assert endpoint["tlsConfig"]["serverName"] == "kubetailor.speech-platform.svc"
    dashboard = found["ConfigMap", "kubetailor-dashboard"]["data"]["dashboard.json"]
    assert json.loads(dashboard) == json.loads((DEPLOY / "monitoring/dashboard.json").read_text())


# what the API server takes -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def definitions(core: Core) -> Iterator[None]:
    """The custom resources of cert-manager and the Prometheus operator, as they ship them."""
    folder = TOOLS["crds"].path
    assert folder.is_dir(), f"{folder} is not there; `make cluster-tools` makes it"
    # cert-manager's are templates, in their labels.
    texts = [re.sub(r".*{{.*\n", "", path.read_text()) for path in sorted(folder.iterdir())]
    text = "---\n".join(texts)
    kubectl(core, "apply", "--server-side", "-f", "-", stdin=text)
    kubectl(core, "wait", "--for=condition=Established", "crd", "--all")
    yield
    kubectl(core, "delete", "--wait=false", "-f", "-", stdin=text)


@pytest.mark.parametrize(
    "what",
    [
        "base",
        "overlays/cert-manager",
        "overlays/team",
        "overlays/team+monitoring",
        "overlays/team+cert-manager+monitoring",
    ],
)
@pytest.mark.usefixtures("definitions")
def test_the_api_server_takes_them(what: str, build: Build, core: Core) -> None:
    text = build(what)
    objects = objects_of(text)
    # Of a namespace that a dry run made nobody knows.
    (namespace,) = (obj for (kind, _), obj in objects.items() if kind == "Namespace")
    core.client.create(namespace)
    try:
        run = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"]
        said = kubectl(core, *run, stdin=text)
        assert len(re.findall(r"\(server dry run\)$", said, re.MULTILINE)) == len(objects)
    finally:
        core.client.delete("v1", "Namespace", None, namespace["metadata"]["name"])
        gone(core.client, namespace["metadata"]["name"])


def gone(client: Client, namespace: str) -> None:
    def left() -> bool:
        return namespace in [obj["metadata"]["name"] for obj in client.list("v1", "Namespace")]

    wait_for(f"the end of {namespace}", lambda: not left())


# what is installed -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(core: Core) -> Iterator[str]:
    """The base, applied; nobody answers, as no kubelet runs its pods."""
    text = kubectl(core, "kustomize", str(DEPLOY / "base"))
    kubectl(core, "apply", "-f", "-", stdin=text)
    yield text
    core.client.delete(ADMISSION, "MutatingWebhookConfiguration", None, "kubetailor")
    kubectl(core, "delete", "--ignore-not-found", "-f", "-", stdin=text)
    gone(core.client, NAMESPACE)


RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(namespace: str, name: str, labels: dict[str, str]) -> Any:
    """A pod that the restricted namespaces take too."""
    container = {"name": "main", "image": "python:3.12", "securityContext": RESTRICTED}
    return objects.pod(namespace, name, labels=labels, containers=[container])


@pytest.mark.usefixtures("installed")
def test_its_pods_are_within_the_restricted_standard(core: Core) -> None:
    # The namespace enforces it: else there would be a ReplicaSet, and no pod.
    selector = "app.kubernetes.io/name=kubetailor"
    wait_for(
        "the pods",
        lambda: len(core.client.list("v1", "Pod", NAMESPACE, labelSelector=selector)) == 2,
    )


@pytest.fixture
def account(core: Core, tmp_path: Path) -> ApiServer:
    """The API server, called as the pods call it."""
    token = tmp_path / "token"
    token.write_text(kubectl(core, "create", "token", "kubetailor", "-n", NAMESPACE))
    where = urlsplit(core.url)
    assert where.hostname is not None
    assert where.port is not None
    return ApiServer(where.hostname, where.port, token, core.folder / "ca.crt")


def trusted(client: Client) -> set[str]:
    found = client.get(ADMISSION, "MutatingWebhookConfiguration", None, "kubetailor")
    return {webhook["clientConfig"].get("caBundle", "") for webhook in found["webhooks"]}


def test_it_may_keep_its_own_certificates(
    core: Core, installed: str, account: ApiServer, tmp_path: Path
) -> None:
    folder = tmp_path / "certificates"
    own = SelfSigned(
        account, namespace=NAMESPACE, name="kubetailor", directory=folder, told_seconds=0
    )
    asyncio.run(own.refresh())
    secret = core.client.get("v1", "Secret", NAMESPACE, "kubetailor")["data"]
    assert base64.b64decode(secret["tls.crt"]) == (folder / "tls.crt").read_bytes()
    assert trusted(core.client) == {secret["ca.crt"]}
    # Who applies the manifests again takes away neither.
    for arguments in ([], ["--server-side", "--force-conflicts"]):
        kubectl(core, "apply", *arguments, "-f", "-", stdin=installed)
        assert core.client.get("v1", "Secret", NAMESPACE, "kubetailor")["data"] == secret
        assert trusted(core.client) == {secret["ca.crt"]}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/other"),
        ("DELETE", f"/api/v1/namespaces/{NAMESPACE}/secrets/kubetailor"),
        ("GET", "/api/v1/namespaces/default/secrets/kubetailor"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/kubetailor"),
        ("GET", f"/apis/{ADMISSION}/mutatingwebhookconfigurations"),
        ("GET", f"/apis/{ADMISSION}/mutatingwebhookconfigurations/other"),
        ("DELETE", f"/apis/{ADMISSION}/mutatingwebhookconfigurations/kubetailor"),
        ("GET", "/api/v1/pods"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_it_may_do_nothing_else(method: str, path: str, account: ApiServer) -> None:
    with pytest.raises(ApiServerError) as error:
        account.call(method, path)
    assert error.value.code == 403


@pytest.mark.usefixtures("installed")
def test_nothing_of_a_pipeline_comes_in_while_nobody_answers(core: Core, namespace: str) -> None:
    client = core.client
    for name, labels in (
        ("flyte", {"execution-id": "a1"}),
        ("labelled", objects.TAILORED),
    ):
        with pytest.raises(ApiError, match=f'failed calling webhook "{name}.kubetailor.dev"'):
            client.create(pod(namespace, name, labels))
    # Everything else does, and everything in the namespaces that are left alone.
    client.create(pod(namespace, "plain", {}))
    client.create(pod(namespace, "asks-not", {"kubetailor.dev/tailor": "false"}))
    for other in ("kube-system", NAMESPACE):
        client.create(pod(other, "left-alone", {"execution-id": "a1"}))
        client.delete("v1", "Pod", other, "left-alone")
    patch = {"metadata": {"labels": {"kubetailor.dev/tailor": "false"}}}
    client.patch("v1", "Namespace", None, namespace, patch)

    def is_left_alone() -> bool:
        client.create(pod(namespace, "flyte", {"execution-id": "a1"}), dryRun="All")
        return True

    wait_for("the API server to see the label", is_left_alone)

    # What deploy/monitoring asks of the API server.
    calls = [
        line
        for line in client.raw("GET", "/metrics").splitlines()
        if line.startswith("apiserver_admission_webhook_rejection_count{")
        and 'name="flyte.kubetailor.dev"' in line
    ]
    assert any('error_type="calling_webhook_error"' in line for line in calls), calls


# the page ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kwok")
def test_the_commands_of_the_page_do_what_it_says(
    core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.client.create(node("page"))
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    monkeypatch.setenv("KUBECONFIG", str(core.kubeconfig))
    path = f"{program('kubectl').parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    try:
        for block in blocks_of(DEPLOY.parent / "docs" / "how-to" / "install-the-webhook.md"):
            if block.language != "text" and "docker" not in block.body:
                run(block, tmp_path)
    finally:
        core.client.delete(ADMISSION, "MutatingWebhookConfiguration", None, "kubetailor")
        core.client.delete("v1", "Namespace", None, "sandbox")
        core.client.delete("v1", "Node", None, "page")
    gone(core.client, NAMESPACE)
