"""`kubetailor flyte show`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kubetailor.plugins.cli.root import cli
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.undo import UNDO

HERE = Path(__file__).parent

MODULE = """
print("printed at import")
from flytekit import task, workflow, PodTemplate

@task(container_image="i:1")
def a(x: int) -> int:
    return x

@task(container_image="{{.image.other.fqn}}:{{.image.other.version}}")
def b(x: int) -> int:
    return x

@workflow
def wf(x: int = 1) -> int:
    return b(x=a(x=x).with_overrides(pod_template=PodTemplate()))
"""

CONFIG = """
phases: [serialize, launch]
chains:
  default:
    steps:
      - {use: priority_class, with: {name: high}, when: {task: "*.a"}}
      - {use: labels, with: {set: {a: b}}, when: {all: [{task: "*.a"}, {node: n0}]}}
"""


@pytest.fixture
def show(folder: Path, configure: Callable[[str], Path]) -> Callable[..., Result]:
    """Run the command on a module of its own; flytekit keeps what it has seen for good."""
    from flytekit import LaunchPlan
    from flytekit.core.context_manager import FlyteEntities

    configure(CONFIG)
    kept = FlyteEntities.entities[:]
    name = f"shown_{folder.name.replace('-', '_')}"
    (folder / f"{name}.py").write_text(MODULE)

    def run(*args: str, source: str = f"{name}.py") -> Result:
        FlyteEntities.entities.clear()
        try:
            options = ("--image", "i:2", "--image", "other=o:1")
            return CliRunner().invoke(cli, ["flyte", "show", source, *options, *args])
        finally:
            FlyteEntities.entities[:] = kept
            LaunchPlan.CACHE.pop(f"{name}.wf", None)
            sys.modules.pop(name, None)

    return run


def test_the_machine_form(show: Callable[..., Result]) -> None:
    done = show("-o", "json")
    assert done.exit_code == 0, done.output
    a, b, node = json.loads(done.stdout)
    assert a["task"].endswith(".a")
    assert a["before"]["container"]["image"] == "i:1"
    assert a["before"]["interface"]
    assert a["after"]["k8sPod"]["podSpec"]["priorityClassName"] == "high"
    assert UNDO in a["after"]["config"]
    assert STAMP in a["after"]["metadata"]["metadata"]["annotations"]
    (change,) = a["changes"]
    assert change["field"] == "k8sPod.podSpec.priorityClassName"
    assert (change["new"], change["step"]) == ("high", "priority_class")
    assert a["deferred"]["steps"] == ["labels"]
    assert a["deferred"]["until"] == "launch"
    assert "node" in a["deferred"]["unknown"]
    assert b["before"] == b["after"]
    assert b["before"]["container"]["image"] == "o:1"
    assert (b["changes"], b["deferred"]) == ([], None)
    assert node["task"] == a["task"]
    assert node["node"].endswith(".wf/n0")
    assert node["after"]["podSpec"]["priorityClassName"] == "high"
    # What the module prints does not get between, and notices are on stderr.
    assert "printed at import" in done.stderr
    assert "labels waits for the phase launch" in done.stderr


def test_yaml_says_the_same(show: Callable[..., Result]) -> None:
    assert yaml.safe_load(show("-o", "yaml").stdout) == json.loads(show("-o", "json").stdout)


def test_diff_is_kubectls(show: Callable[..., Result], configure: Callable[[str], Path]) -> None:
    done = show("--diff")
    assert done.exit_code == 1
    assert "+    priorityClassName: high" in done.stdout
    assert UNDO not in done.stdout
    assert ".b, before" not in done.stdout
    configure("chains: {}")
    done = show("--diff")
    assert (done.exit_code, done.stdout) == (0, "")


def test_a_diff_shows_what_changed_and_nothing_else(
    show: Callable[..., Result], configure: Callable[[str], Path]
) -> None:
    # One step that leaves a container a container, and one that makes it a pod.
    configure("""
        chains:
          default:
            steps:
              - {use: env, with: {set: {NEW: x}}, when: {task: "*.a"}}
              - {use: priority_class, with: {name: high}, when: {task: "*.b"}}
    """)
    done = show("--diff")
    lines = [line for line in done.stdout.splitlines() if line[0] in "+-" and line[1] not in "+-"]
    added = [line[1:].strip() for line in lines if line[0] == "+"]
    # Only what was empty and is filled now goes.
    assert all(line.endswith(("{}", "[]")) for line in lines if line[0] == "-")
    assert [line for line in added if line != "env:"] == [
        "- key: NEW",
        "value: x",
        "priorityClassName: high",
        "- name: NEW",  # the node's pod template
        "value: x",
    ]


def test_a_task_of_which_only_the_stamp_differs_is_not_in_a_diff_for_people(
    show: Callable[..., Result], configure: Callable[[str], Path]
) -> None:
    configure("""
        phases: [serialize, launch]
        chains: {default: {steps: [{use: priority_class, with: {name: a}, when: {node: n0}}]}}
    """)
    done = show("--diff")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "priority_class waits for the phase launch" in done.stderr
    assert STAMP in show().stdout
    done = show("--diff", "-o", "json")
    assert done.exit_code == 1
    for item in json.loads(done.stdout):
        assert STAMP in json.dumps(item["after"])


def test_it_says_the_same_each_time(
    flyte: Any, folder: Path, zoo: ModuleType, configure: Callable[[str], Path]
) -> None:
    shutil.copy(HERE / "zoo.py", folder)
    done = flyte.run("pyflyte", "--pkgs", "zoo", "package", "-o", "p.tgz", cwd=folder)
    assert done.returncode == 0, done.stdout
    configure(flyte.CONFIG)
    found = {
        flyte.run("kubetailor", "flyte", "show", "p.tgz", *options, cwd=folder).stdout
        for options in [("--diff",)] * 3
    }
    assert len(found) == 1
    for name in ("a.tgz", "b.tgz"):
        flyte.run("kubetailor", "flyte", "package", "p.tgz", "-o", name, cwd=folder)
    assert (folder / "a.tgz").read_bytes() == (folder / "b.tgz").read_bytes()


def test_a_config_without_the_phase_is_said(
    show: Callable[..., Result], configure: Callable[[str], Path]
) -> None:
    configure("phases: [launch, admit]\n" + CONFIG.partition("\n")[2].partition("\n")[2])
    done = show("-o", "json")
    assert done.exit_code == 0
    assert "`phases` does not list serialize" in done.stderr
    for item in json.loads(done.stdout):
        assert item["before"] == item["after"]


def test_people_see_both(show: Callable[..., Result]) -> None:
    done = show()
    assert done.exit_code == 0
    documents = list(yaml.safe_load_all(done.stdout))
    assert len(documents) == 5
    assert "unchanged" in done.stdout
    assert UNDO not in done.stdout


def test_project_and_domain_decide(
    show: Callable[..., Result], configure: Callable[[str], Path]
) -> None:
    configure("""
        chains: {p: {steps: [{use: priority_class, with: {name: x}}]}}
        select: [{when: {project: p, domain: d, version: v}, chain: p}]
    """)
    done = show()
    assert done.exit_code == 2
    assert "`select` needs" in done.stderr
    a, *_ = json.loads(show("-p", "p", "-d", "d", "-v", "v", "-o", "json").stdout)
    assert a["after"]["id"]["domain"] == "d"
    assert a["after"]["k8sPod"]["podSpec"]["priorityClassName"] == "x"


def test_a_dotted_module_and_a_package(
    show: Callable[..., Result], flyte: Any, folder: Path
) -> None:
    (module,) = folder.glob("shown_*.py")
    expected = json.loads(show("-o", "json").stdout)
    assert json.loads(show("-o", "json", source=module.stem).stdout) == expected
    (folder / "sub").mkdir()
    images = ("-i", "i:2", "-i", "other=o:1")
    done = flyte.run(
        "pyflyte", "--pkgs", module.stem, "package", "-o", "sub/p.tgz", *images, cwd=folder
    )
    assert done.returncode == 0, done.stdout
    # Packaged under the chain already: what the author wrote is shown all the same.
    found = json.loads(show("-o", "json", source="sub/p.tgz").stdout)
    assert found == expected


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (
            "no_such_module",
            "no_such_module: ModuleNotFoundError: No module named 'no_such_module'\n",
        ),
        ("no_such.tar", "no_such.tar: ModuleNotFoundError: No module named 'no_such'\n"),
        ("there.tar", "there.tar: expected a module, a package, or what `pyflyte package` wrote"),
        ("plain", "plain: no package: the folder has no __init__.py"),
        ("./plain", "plain: no package: the folder has no __init__.py"),
        ("plain/", "plain/: no package: the folder has no __init__.py"),
        (".", "no package: the folder has no __init__.py"),
        ("./empty", "no task in ./empty"),
        ("bare.py", "no task in bare.py"),
        ("no/such/file.py", "no such file"),
        ("broken.py", "broken.py:2"),
        ("syntax.py", "syntax.py:1)"),
        ("leaves.py", "SystemExit"),
        ("no.tgz", "No such file"),
    ],
)
def test_what_cannot_be_shown(
    show: Callable[..., Result], folder: Path, source: str, part: str
) -> None:
    (folder / "there.tar").write_text("")
    (folder / "plain").mkdir()
    (folder / "plain" / "leaves.py").write_text("raise SystemExit(0)\n")
    (folder / "empty").mkdir()
    (folder / "empty" / "__init__.py").write_text("")
    (folder / "bare.py").write_text("")
    (folder / "broken.py").write_text("import flytekit\n1 / 0\n")
    (folder / "syntax.py").write_text("def\n")
    (folder / "leaves.py").write_text("raise SystemExit(0)\n")
    done = show(source=source)
    assert done.exit_code == 2
    assert part in done.stderr
    assert source.removesuffix(".py") in done.stderr
    assert "Traceback" not in done.output
    assert done.stdout == ""


def test_without_a_config_it_is_an_error(show: Callable[..., Result], folder: Path) -> None:
    (folder / "kubetailor.yaml").unlink()
    done = show()
    assert done.exit_code == 2
    assert "no config" in done.stderr


def test_the_command_as_it_is_installed(folder: Path, flyte: Any) -> None:
    shutil.copy(HERE / "zoo.py", folder)
    (folder / "kubetailor.yaml").write_text(flyte.CONFIG)
    command = ("kubetailor", "flyte", "show", "zoo.py", "--diff")
    done = flyte.start(*command, cwd=folder)
    assert done.returncode == 1, done.stderr
    forked = flyte.run(*command, cwd=folder)
    assert (forked.returncode, forked.stdout) == (1, done.stdout)
    for where in ("task zoo.train", "task zoo.raw", "node zoo.overridden/train (task zoo.train)"):
        assert f"+++ {where}, after" in done.stdout
    for name in ("", "show", "package"):
        shown = CliRunner().invoke(cli, ["flyte", *name.split(), "--help"])
        assert shown.exit_code == 0
        assert "flyte" in shown.stdout.partition("\n")[0]
