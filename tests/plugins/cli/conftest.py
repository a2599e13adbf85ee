"""A working directory of its own, and the command in it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from click.testing import CliRunner, Result

from kubetailor.plugins.cli.root import cli


class Run(Protocol):
    def __call__(self, *args: str, stdin: str | bytes | None = None) -> Result: ...


Write = Callable[[str, str], Path]

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: main
    image: busybox
"""

CONFIG = """\
phases: [serialize, admit]
chains:
  default:
    steps:
      - use: labels
        with: {set: {team: speech}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; nothing of kubetailor is configured."""
    for name in os.environ:
        if name.startswith("KUBETAILOR"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """Write a file of the working directory."""

    def write_file(name: str, text: str) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def run() -> Run:
    """Run ``kubetailor`` in this process; what is no fault of the user's is raised."""

    def invoke(*args: str, stdin: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(cli, args, input=stdin, prog_name="kubetailor")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def distribution(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Install a distribution with one module and an entry point to it."""
    site = folder / "site"
    monkeypatch.syspath_prepend(str(site))

    def install(name: str, point: str, source: str) -> None:
        module = name.replace("-", "_")
        info = site / f"{module}-1.2.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[kubetailor]\n{point} = {module}\n")
        (site / f"{module}.py").write_text(textwrap.dedent(source))

    return install
