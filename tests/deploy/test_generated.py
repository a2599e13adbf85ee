"""What deploy/ says beside the code that says it too. tests/cluster/test_deploy.py builds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kubetailor.plugins.cli.root import cli
from kubetailor.plugins.webhook.reload import load_tailor

CHECKOUT = Path(__file__).resolve().parents[2]
DEPLOY = CHECKOUT / "deploy"
KUSTOMIZATIONS = sorted(DEPLOY.rglob("kustomization.yaml"))
CONFIGS = sorted(DEPLOY.rglob("kubetailor.yaml"))


def read(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def test_generated_files_are_those_of_the_code() -> None:
    done = subprocess.run(
        [sys.executable, str(DEPLOY / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run `make docs`:\n{done.stdout}{done.stderr}"


def test_the_base_is_what_the_command_prints() -> None:
    arguments = ["--config", str(DEPLOY / "base" / "kubetailor.yaml")]
    image = ["--image", "registry.example.com/kubetailor"]
    run = CliRunner().invoke(cli, ["webhook", "manifests", *arguments, *image])
    assert run.exit_code == 0, run.output
    assert list(yaml.safe_load_all(run.output)) == read(DEPLOY / "base" / "webhook.yaml")


def test_the_rules_of_the_prometheus_operator_are_those_of_prometheus() -> None:
    (rules,) = read(DEPLOY / "monitoring" / "alerts.yaml")
    (resource,) = read(DEPLOY / "monitoring" / "prometheusrule.yaml")
    assert resource["kind"] == "PrometheusRule"
    assert resource["spec"] == rules


def test_the_service_monitor_finds_the_service() -> None:
    (monitor,) = read(DEPLOY / "monitoring" / "servicemonitor.yaml")
    objects = {obj["kind"]: obj for obj in read(DEPLOY / "base" / "webhook.yaml")}
    service, deployment = objects["Service"], objects["Deployment"]
    (endpoint,), selector = monitor["spec"]["endpoints"], monitor["spec"]["selector"]
    assert selector["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"]
    (port,) = service["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert port["targetPort"] in [port["name"] for port in container["ports"]]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.parent.name)
def test_a_config_of_deploy_is_one_for_a_webhook(path: Path) -> None:
    assert load_tailor(path).config.phases


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_a_kustomization_names_files_that_are_there(path: Path) -> None:
    (found,) = read(path)
    assert found["kind"] in ("Kustomization", "Component")
    assert found["apiVersion"].startswith("kustomize.config.k8s.io/")
    generated = [name for made in found.get("configMapGenerator", ()) for name in made["files"]]
    for name in [*found.get("resources", ()), *found.get("components", ()), *generated]:
        assert (path.parent / name).exists(), name
