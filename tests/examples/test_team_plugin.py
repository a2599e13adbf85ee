"""The team's plugin is a distribution that kubetailor finds, and it passes its own tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .conftest import EXAMPLES, Run


def test_its_own_tests_pass(python: Run, tmp_path: Path) -> None:
    folder = tmp_path / "team-plugin"
    shutil.copytree(EXAMPLES / "team-plugin", folder)
    shutil.rmtree(folder / "acme_platform")  # what is tested is what is installed
    done = python("-m", "pytest", "-p", "no:cacheprovider", cwd=folder)
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_kubetailor_finds_it_and_what_it_registers(run: Run, tmp_path: Path) -> None:
    listed = json.loads(run("kubetailor", "plugins", "-o", "json", cwd=tmp_path).stdout)
    plugin = next(entry for entry in listed if entry["name"] == "acme_platform")
    assert plugin["version"] == "1.0.0"
    assert sorted(plugin["transformers"]) == [
        "acme_platform.cost_centre",
        "acme_platform.ndots",
        "acme_platform.spot",
    ]
    assert "TrainingRun" in run("kubetailor", "kinds", cwd=tmp_path).stdout
