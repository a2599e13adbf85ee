"""The manifests are cut to the cluster as their config says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from .conftest import EXAMPLES, Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "manifests", tmp_path / "manifests"))


def test_a_pytorchjob_goes_to_the_pool(run: Run, folder: Path) -> None:
    done = run("kubetailor", "render", "-f", "pytorchjob.yaml", "-o", "json", cwd=folder)
    job: dict[str, Any] = json.loads(done.stdout)
    assert not done.stderr
    assert job["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "team-speech",
        "cost-centre": "speech",
    }
    for role, env in (("Master", None), ("Worker", [{"name": "NCCL_DEBUG", "value": "INFO"}])):
        template = job["spec"]["pytorchReplicaSpecs"][role]["template"]
        spec = template["spec"]
        assert template["metadata"]["labels"] == {"cost-centre": "speech"}
        assert spec["nodeSelector"] == {"acme.example.com/pool": "h100"}
        assert [entry["key"] for entry in spec["tolerations"]] == ["acme.example.com/pool"]
        assert spec["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "64Gi"}
        assert spec["containers"][0].get("env") == env


def test_only_the_workers_of_a_rayjob_go_there(run: Run, folder: Path) -> None:
    done = run("kubetailor", "render", "-f", "rayjob.yaml", "-o", "json", cwd=folder)
    spec = json.loads(done.stdout)["spec"]["rayClusterSpec"]
    assert "nodeSelector" not in spec["headGroupSpec"]["template"]["spec"]
    workers = spec["workerGroupSpecs"][0]["template"]["spec"]
    assert workers["nodeSelector"] == {"acme.example.com/pool": "h100"}


def test_what_is_rendered_is_left_alone(run: Run, folder: Path) -> None:
    (folder / "done.yaml").write_text(run("kubetailor", "render", "-f", ".", cwd=folder).stdout)
    run("kubetailor", "render", "-f", "done.yaml", "--check", cwd=folder)
