"""docs/tutorial/swap-a-gpu.md, all of it: a laptop without a cluster, then Flyte on one."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ..docs.test_pages import CHECKOUT, agrees, blocks_of, execute, run
from .build import program
from .conftest import MakeWebhook
from .executions import Run
from .stack.client import Client
from .stack.core import Core
from .stack.pyflyte import PROJECT, Pyflyte

PAGE: Final = CHECKOUT / "docs" / "tutorial" / "swap-a-gpu.md"
DOMAIN: Final = "development"
NEW_CONFIG: Final = "kubetailor webhook manifests "
"""A Deployment runs nothing here: the webhook is a process, whose config is replaced."""


@pytest.fixture
def home(core: Core, pyflyte: Pyflyte, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of a user whose kubectl and pyflyte are set up."""
    home = tmp_path / "home"
    (home / ".flyte").mkdir(parents=True)
    storage = {
        "type": "s3",
        "connection": {
            "endpoint": pyflyte.env["FLYTE_AWS_ENDPOINT"],
            "access-key": pyflyte.env["FLYTE_AWS_ACCESS_KEY_ID"],
            "secret-key": pyflyte.env["FLYTE_AWS_SECRET_ACCESS_KEY"],
            "auth-type": "accesskey",
        },
    }
    admin = {"endpoint": f"dns:///{pyflyte.endpoint}", "insecure": True}
    config = {"admin": admin, "storage": storage}
    (home / ".flyte" / "config.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(core.kubeconfig))
    monkeypatch.setenv("PATH", f"{program('kubectl').parent}{os.pathsep}{os.environ['PATH']}")
    return home


def test_every_command_does_what_the_page_says(
    home: Path, tmp_path: Path, client: Client, pyflyte: Pyflyte, webhook: MakeWebhook
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    server: Any = None
    with ExitStack() as ending:
        ending.callback(_terminate, client, pyflyte)
        for block in blocks_of(PAGE):
            if "norun" not in block.options:
                run(block, folder)
                continue
            for command, expected in block.commands:
                if command.startswith("pip "):
                    continue
                config = (folder / "kubetailor.yaml").read_text()
                if command.startswith(NEW_CONFIG):
                    server.reload(config)
                    continue
                server = server or webhook(config, f"{PROJECT}-{DOMAIN}")
                status, printed = execute(["env", f"HOME={home}", "bash", "-c", command], folder)
                assert status == 0, f"{block.where}: $ {command}\n{printed}"
                assert agrees(expected, printed), f"{block.where}: $ {command}\n{printed}"


def _terminate(client: Client, pyflyte: Pyflyte) -> None:
    remote = pyflyte.remote(DOMAIN)
    for found in remote.recent_executions(limit=50):
        if found.spec.launch_plan.name == "pipeline.speech":
            Run(client, remote, DOMAIN, found.id.name).end()
