"""The commands, as a person or a Deployment starts them."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kubetailor.plugins.cli.root import cli
from kubetailor.plugins.webhook.certificates import renewed
from kubetailor.plugins.webhook.limits import TIME_LIMIT
from kubetailor.workloads import BUILTIN_KINDS

from .process import Server, now, serving, write

CONFIG = """
phases: [serialize, admit]
chains:
  default:
    steps: [{use: labels, with: {set: {said: a}}}]
"""


# manifests -------------------------------------------------------------------------------------


def manifests(tmp_path: Path, *arguments: str, config: str = CONFIG) -> dict[str, dict[str, Any]]:
    """Kind -> object; of several, the one that is named as all else."""
    path = tmp_path / "kubetailor.yaml"
    path.write_text(config)
    run = CliRunner().invoke(
        cli,
        ["webhook", "manifests", "--config", str(path), "--image", "acme/kubetailor:1", *arguments],
    )
    assert run.exit_code == 0, run.output
    objects = list(yaml.safe_load_all(run.output))
    names = [(obj["kind"], obj["metadata"]["name"]) for obj in objects]
    assert len(names) == len(set(names))
    found = {obj["kind"]: obj for obj in objects}
    return found | {obj["kind"]: obj for obj in objects if obj["metadata"]["name"] == "kubetailor"}


def test_the_webhook_configuration_is_careful(tmp_path: Path) -> None:
    found = manifests(tmp_path)["MutatingWebhookConfiguration"]
    # The API server calls them in the order of their names.
    assert found["metadata"]["name"] < "kueue-mutating-webhook-configuration"
    for webhook in found["webhooks"]:
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["reinvocationPolicy"] == "IfNeeded"
        assert webhook["sideEffects"] == "None"
        assert webhook["matchPolicy"] == "Equivalent"
        assert webhook["admissionReviewVersions"] == ["v1"]
        # An answer that says which step took too long beats one of the API server.
        assert TIME_LIMIT < webhook["timeoutSeconds"] <= 30
        assert {
            "key": "kubetailor.dev/tailor",
            "operator": "NotIn",
            "values": ["false"],
        } in webhook["namespaceSelector"]["matchExpressions"]
        (mirror,) = webhook["matchConditions"]
        assert "kubernetes.io/config.mirror" in mirror["expression"]
        # Anybody may annotate so what he launches; only a kubelet makes such pods.
        assert "'system:nodes' in request.userInfo.groups" in mirror["expression"]
        assert webhook["objectSelector"]["matchExpressions"]
        names = webhook["namespaceSelector"]["matchExpressions"][0]
        assert names["operator"] == "NotIn"
        assert names["key"] == "kubernetes.io/metadata.name"
        assert {"kube-system", "kubetailor-system"} <= set(names["values"])
        for rule in webhook["rules"]:
            assert rule["operations"] == ["CREATE"]
        resources = {r for rule in webhook["rules"] for r in rule["resources"]}
        assert {"pods", "jobs", "pytorchjobs", "rayjobs", "sparkapplications"} <= resources


def sent(found: dict[str, dict[str, Any]]) -> set[tuple[str, str]]:
    """The (API group, resource) that the API server sends for what Flyte made."""
    rules = found["MutatingWebhookConfiguration"]["webhooks"][0]["rules"]
    return {(group, name) for r in rules for group in r["apiGroups"] for name in r["resources"]}


RESOURCES = {
    "": "pods",
    "apps": "daemonsets deployments replicasets statefulsets",
    "argoproj.io": "cronworkflows workflows workflowtemplates",
    "batch": "cronjobs jobs",
    "batch.volcano.sh": "jobs",
    "jobset.x-k8s.io": "jobsets",
    "kubeflow.org": "jaxjobs mpijobs paddlejobs pytorchjobs tfjobs xgboostjobs",
    "kubernetes.dask.org": "daskclusters daskjobs daskworkergroups",
    "leaderworkerset.x-k8s.io": "leaderworkersets",
    "ray.io": "rayclusters rayjobs rayservices",
    "serving.kserve.io": "inferenceservices",
    "sparkoperator.k8s.io": "scheduledsparkapplications sparkapplications",
    "trainer.kubeflow.org": "trainjobs",
    "workload.codeflare.dev": "appwrappers",
}
"""`spec.names.plural` of each definition; what no pod is made of, a PodTemplate, is not sent."""


def test_every_kind_of_the_table_is_sent(tmp_path: Path) -> None:
    found = sent(manifests(tmp_path))
    assert found == {(group, name) for group, names in RESOURCES.items() for name in names.split()}
    assert len(found) == len(BUILTIN_KINDS) - len(("PodTemplate", "TaskTemplate"))


def test_executions_are_sent_only_where_the_phase_launch_is_installed(tmp_path: Path) -> None:
    execution = ("flyte.lyft.com", "flyteworkflows")
    assert execution not in sent(manifests(tmp_path))
    launch = CONFIG.replace("admit", "launch, admit")
    found = manifests(tmp_path, config=launch)
    assert execution in sent(found)
    # An object that asks for it by its label is no execution of Flyte's.
    labelled = found["MutatingWebhookConfiguration"]["webhooks"][1]["rules"]
    assert all("flyteworkflows" not in rule["resources"] for rule in labelled)


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("Proxy", "proxies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Batch", "batches"),
        ("Index", "indexes"),
        ("Mesh", "meshes"),
        ("RayJob", "rayjobs"),
    ],
)
def test_a_resource_is_named_as_kubebuilder_names_it(
    kind: str, resource: str, tmp_path: Path
) -> None:
    (tmp_path / "probe.py").write_text(
        "from kubetailor.registry import Kind, PodPath, hookimpl\n"
        "@hookimpl\n"
        "def register_kinds(register):\n"
        f"    register(Kind('{kind}', 'acme.example.com', (PodPath('worker', 'spec.template'),)))\n"
    )
    found = manifests(tmp_path, config="plugins: [./probe.py]\n" + CONFIG)
    assert ("acme.example.com", resource) in sent(found)


def test_kinds_of_plugins_are_sent_too(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(
        "from kubetailor.registry import Kind, PodPath, hookimpl\n"
        "@hookimpl\n"
        "def register_kinds(register):\n"
        "    register(Kind('Proxy', 'acme.example.com', (PodPath('worker', 'spec.template'),)))\n"
    )
    found = manifests(tmp_path, config="plugins: [./probe.py]\n" + CONFIG)
    assert ("acme.example.com", "proxies") in sent(found)
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
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["enableServiceLinks"] is False
    for spread in pod["topologySpreadConstraints"]:
        assert spread["labelSelector"] == deployment["selector"]
        assert spread["matchLabelKeys"] == ["pod-template-hash"]
    budget = found["PodDisruptionBudget"]["spec"]
    assert budget["minAvailable"] < deployment["replicas"]
    assert budget["selector"] == deployment["selector"]
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    labels = found["Namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert found["Certificate"]["spec"]["dnsNames"][0] == "kubetailor.platform.svc"
    annotations = found["MutatingWebhookConfiguration"]["metadata"]["annotations"]
    assert annotations == {"cert-manager.io/inject-ca-from": "platform/kubetailor"}


def test_cert_manager_renews_under_an_authority_that_stays(tmp_path: Path) -> None:
    path = tmp_path / "kubetailor.yaml"
    path.write_text(CONFIG)
    arguments = ["--image", "acme/kubetailor:1", "--certificates", "cert-manager"]
    run = CliRunner().invoke(cli, ["webhook", "manifests", "--config", str(path), *arguments])
    objects = {
        (obj["kind"], obj["metadata"]["name"]): obj for obj in yaml.safe_load_all(run.output)
    }
    # Whom the API server is told to trust is the authority, whatever becomes of the certificate.
    serving = objects["Certificate", "kubetailor"]["spec"]
    issuer = objects["Issuer", serving["issuerRef"]["name"]]["spec"]
    (authority,) = [
        spec
        for (kind, _), obj in objects.items()
        if kind == "Certificate"
        and (spec := obj["spec"])["secretName"] == issuer["ca"]["secretName"]
    ]
    assert authority["isCA"] is True
    # Renewed with the same key and name it still vouches for what it signed before.
    assert authority["privateKey"]["rotationPolicy"] == "Never"
    assert authority["commonName"]
    assert objects["Issuer", authority["issuerRef"]["name"]]["spec"] == {"selfSigned": {}}
    volumes = objects["Deployment", "kubetailor"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "certificates", "secret": {"secretName": serving["secretName"]}} in volumes


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
    # The Secret and the webhook configuration that it is told of are those that it may change.
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-1] == "--self-signed=$(NAMESPACE)/kubetailor"
    (variable,) = container["env"]
    assert variable["name"] == "NAMESPACE"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace"


def test_a_config_for_another_host_makes_no_manifests(tmp_path: Path) -> None:
    path = tmp_path / "kubetailor.yaml"
    path.write_text("chains: {default: {steps: []}}")
    run = CliRunner().invoke(
        cli, ["webhook", "manifests", "--config", str(path), "--image", "acme/kubetailor:1"]
    )
    assert run.exit_code == 2
    assert "phases" in run.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--image", ""), "expected an image, found ''"),
        (("--image", "a b"), "expected an image, found 'a b'"),
        (("--image", "a", "-n", "Bad_NS"), "namespace 'Bad_NS': must be at most 63"),
        (("--image", "a", "-n", ""), "namespace '': must be at most 63"),
    ],
)
def test_what_a_cluster_would_refuse_makes_no_manifests(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """Half of them would be there, and deny all."""
    path = tmp_path / "kubetailor.yaml"
    path.write_text(CONFIG)
    run = CliRunner().invoke(cli, ["webhook", "manifests", "--config", str(path), *words])
    assert run.exit_code == 2
    assert said in " ".join(run.output.replace("│", " ").split())


# serve -----------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "kubetailor.yaml").write_text(CONFIG)
    with serving(tmp_path / "kubetailor.yaml") as found:
        yield found


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


# what is not installed ---------------------------------------------------------------------------


def without_the_server(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command where nothing that the extra `webhook` brings is installed."""
    extra = ("uvicorn", "uvloop", "httptools", "orjson", "prometheus_client", "cryptography")
    code = (
        "import sys\n"
        f"for name in {extra}: sys.modules[name] = None\n"
        "from kubetailor.plugins.cli import main\n"
        "main()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code, "webhook", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        check=False,
    )


@pytest.mark.parametrize("command", [[], ["serve"], ["manifests"]])
def test_help_needs_none_of_what_serving_needs(command: list[str], tmp_path: Path) -> None:
    run = without_the_server(tmp_path, *command, "--help")
    assert (run.returncode, run.stderr) == (0, "")
    assert "Usage: " in run.stdout


@pytest.mark.parametrize("certificates", ["self-signed", "cert-manager"])
def test_manifests_need_none_of_what_serving_needs(certificates: str, tmp_path: Path) -> None:
    (tmp_path / "kubetailor.yaml").write_text(CONFIG)
    run = without_the_server(
        tmp_path, "manifests", "--image", "acme/kubetailor:1", "--certificates", certificates
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "kind: MutatingWebhookConfiguration" in run.stdout


def test_serving_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "kubetailor.yaml").write_text(CONFIG)
    run = without_the_server(tmp_path, "serve")
    assert run.returncode == 2
    assert "uvicorn, prometheus_client, cryptography" in run.stderr
    assert "pip install 'kubetailor[webhook]'" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_server_needs_nothing_but_the_extra() -> None:
    """Of all that is installed for tests, the image has only what `kubetailor[webhook]` brings."""
    absent = ("flyteidl", "flytekit", "google", "kubernetes", "requests", "jsonpatch")
    code = (
        "import sys\n"
        f"for name in {absent}: sys.modules[name] = None\n"
        "import kubetailor.plugins.webhook.serving\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert (run.returncode, run.stderr) == (0, "")
