"""The examples as a user has them: copies, with the team's plugin installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .. import forks

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
def environ(site: Path) -> dict[str, str]:
    """An environment with the plugin installed and nothing of kubetailor set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KUBETAILOR", "FLYTE"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    return {**env, "PATH": path, "PYTHONPATH": str(site)}


@pytest.fixture(scope="session")
def run(environ: dict[str, str]) -> Run:
    """Runs a command of this environment."""

    def run(
        name: str, *args: str, cwd: Path, status: int = 0, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).with_name(name)
        done = forks.run(program, *args, cwd=cwd, env={**environ, **settings})
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def python(environ: dict[str, str]) -> Run:
    """Runs this Python anew: in its process nothing is imported yet."""

    def python(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *args]
        done = subprocess.run(
            command, cwd=cwd, env=environ, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return python
