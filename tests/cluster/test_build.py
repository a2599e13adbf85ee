"""The builder of the tools, on a module that is built in a second."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from . import build as builder
from .build import ENVTEST, TOOLS, BuildError, Tool, build, program

MAIN = 'package main\n\nfunc main() { println("here") }\n'


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A tool of one file, in a cache of its own."""
    folder = tmp_path / "tools" / "hello"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module example.com/hello\n\ngo 1.26\n")
    (folder / "go.sum").touch()
    (folder / "main.go").write_text(MAIN)
    (folder / "notes").mkdir()
    (folder / "notes" / "notes.yaml").write_text("a: 1\n")
    monkeypatch.setattr(builder, "TOOLS_FOLDER", tmp_path / "tools")
    monkeypatch.setenv("KUBETAILOR_CLUSTER_TOOLS", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    files = {"notes": "example.com/hello notes"}
    found = Tool("hello", "hello", "example.com/hello", files=files)
    monkeypatch.setitem(TOOLS, "hello", found)
    return found


def test_what_is_built_is_whole_and_found(tool: Tool) -> None:
    with pytest.raises(BuildError, match=r"hello: .* is not there; `make cluster-tools` builds it"):
        program("hello")
    build(tool)
    assert tool.is_built
    said = subprocess.run([program("hello")], capture_output=True, text=True, check=True)
    assert said.stderr == "here\n"
    assert (tool.home / "notes" / "notes.yaml").read_text() == "a: 1\n"


def test_what_does_not_build_says_why_and_leaves_nothing(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "tools" / "hello" / "main.go").write_text(MAIN.replace("println", "printin"))
    with pytest.raises(BuildError, match="undefined: printin"):
        build(tool)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_tool_may_be_files_alone(tool: Tool) -> None:
    files = replace(tool, package=None)
    assert not files.path.exists()
    build(files)
    assert files.is_built
    assert [path.name for path in files.path.rglob("*") if path.is_file()] == ["notes.yaml"]


def test_the_cache_is_keyed_by_what_is_built(tool: Tool, tmp_path: Path) -> None:
    folder = tmp_path / "tools" / "hello"
    homes = {tool.home}
    (folder / "main_test.go").write_text("package main\n")
    assert tool.home in homes
    for name in ("main.go", "go.mod", "go.sum"):
        with (folder / name).open("a") as file:
            file.write("\n")
        assert tool.home not in homes
        homes.add(tool.home)


def test_three_of_them_may_be_envtests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = {name: tool.path for name, tool in TOOLS.items()}
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for name, tool in TOOLS.items():
        assert tool.path == (tmp_path / name if name in ENVTEST else own[name])
    with pytest.raises(BuildError, match=r"KUBEBUILDER_ASSETS has no etcd: .* is not there"):
        build(TOOLS["etcd"])


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_versions_are_those_of_the_modules(name: str) -> None:
    tool = TOOLS[name]
    assert (tool.version == "local") == (name == "flyteadmin")
    assert tool.sources[0].is_file()
