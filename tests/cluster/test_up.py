"""`make cluster-up` and `make cluster-down`."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from .build import TOOLS
from .stack.client import Client
from .stack.process import wait_for

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache with the tools of the core, and no stack."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for tool in TOOLS.values():
        if tool.core:
            (folder / tool.home.name).symlink_to(tool.home)
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.up", *words],
        cwd=ROOT,
        env={**os.environ, "KUBETAILOR_CLUSTER_TOOLS": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_stack_comes_up_and_nothing_is_left_of_it(folder: Path) -> None:
    said = run(folder)
    try:
        assert said.returncode == 0, said.stderr
        exports = [line.removeprefix("export ") for line in said.stdout.splitlines()]
        env = dict(shlex.split(line)[0].split("=", 1) for line in exports)
        assert env.keys() >= {"KUBECONFIG", "FLYTE_PLATFORM_URL", "FLYTE_AWS_ENDPOINT"}
        client = Client(Path(env["KUBECONFIG"]))
        config = yaml.safe_load(Path(env["KUBECONFIG"]).read_text())
        server = config["clusters"][0]["cluster"]["server"]
        wait_for("its nodes", lambda: len(client.list("v1", "Node")) == 2)
        # It is the one that runs now.
        assert run(folder).stdout == said.stdout
    finally:
        ended = run(folder, "--down")
    assert ended.returncode == 0, ended.stderr
    assert not Path(env["KUBECONFIG"]).parent.exists()
    for url in (server, env["FLYTE_AWS_ENDPOINT"]):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=5)
    again = run(folder, "--down")
    assert (again.returncode, again.stderr) == (0, "no stack is running\n")


def test_what_a_lost_stack_left_harms_nobody(folder: Path) -> None:
    """Its id may be anybody's now."""
    with subprocess.Popen(["sleep", "600"]) as other:
        (folder / "stack.json").write_text(json.dumps({"pid": other.pid, "env": {}}))
        said = run(folder, "--down")
        assert (said.returncode, said.stderr) == (0, "no stack is running\n")
        assert other.poll() is None
        other.kill()
