"""The examples as a user has them: copies, with the team's plugin installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the team's plugin is installed, as pip installs it."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "team-plugin"
    shutil.copytree(EXAMPLES / "team-plugin", source)
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    command += ["--no-build-isolation", "--python", sys.executable, "--target", str(folder)]
    subprocess.run([*command, str(source)], check=True)
    return folder


@pytest.fixture(scope="session")
def run(site: Path) -> Run:
    """Runs a command of this Python, with the plugin installed and nothing of kubetailor set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KUBETAILOR", "FLYTE"))}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"

    def run(
        *command: str, cwd: Path, status: int = 0, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**env, "PYTHONPATH": str(site), **settings},
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run
