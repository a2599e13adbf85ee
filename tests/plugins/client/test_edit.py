"""`kubetailor override edit`: what is edited comes out as the override that makes it so."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from flytekit import LaunchPlan
from flytekit.remote import FlyteRemote

from kubetailor.plugins.client.edited import override_of_edit
from kubetailor.registry import OverrideError

from . import nested as _nested
from . import workflows as _workflows

workflows: Any = _workflows
nested: Any = _nested
NIGHTLY = "speech/development/nightly"
ENFORCED = """
phases: [launch]
chains:
  default:
    enforce:
      - {use: retries, with: {retries: 1}}
"""
Run = Callable[..., Result]
Edit = Callable[..., None]


@pytest.fixture(autouse=True)
def registered(remote: FlyteRemote, configure: Callable[[str], Path]) -> None:
    configure("{phases: [launch], chains: {}}")
    for name, workflow in (("nightly", workflows.train), ("outer", nested.outer)):
        remote.register_launch_plan(LaunchPlan.get_or_create(workflow, name), version="v1")


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edit:
    """An editor that runs these lines of Python over the text, one line each time it is opened."""

    def with_lines(*lines: str) -> None:
        script = tmp_path / "editor.py"
        script.write_text(
            "import pathlib, sys\n"
            "path = pathlib.Path(sys.argv[1])\n"
            "count = pathlib.Path(__file__).with_suffix('.count')\n"
            "number = int(count.read_text()) if count.exists() else 0\n"
            "count.write_text(str(number + 1))\n"
            "text = path.read_text()\n"
            f"lines = {list(lines)!r}\n"
            "if number < len(lines):\n"
            "    text = eval(lines[number])\n"
            "path.write_text(text)\n"
        )
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")

    return with_lines


def steps(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = yaml.safe_load(done.stdout)["steps"]
    return found


def test_one_word(run: Run, edit: Edit) -> None:
    edit("text.replace('retries: 2', 'retries: 5')")
    assert steps(run("override", "edit", NIGHTLY)) == [
        {"use": "retries", "with": {"retries": 5}, "when": {"node": "n1"}}
    ]


def test_it_can_be_launched_with(run: Run, edit: Edit, tmp_path: Path) -> None:
    edit("text.replace('retries: 2', 'retries: 5')")
    assert run("override", "edit", NIGHTLY, "-o", str(tmp_path / "override.yaml")).stdout == ""
    (tmp_path / "x.yaml").write_text("x: 1\n")
    given = ("--inputs", str(tmp_path / "x.yaml"), "--override", str(tmp_path / "override.yaml"))
    assert run("launch", NIGHTLY, *given).exit_code == 0


def test_saved_as_it_is_nothing_comes_out(run: Run, edit: Edit) -> None:
    edit()
    done = run("override", "edit", NIGHTLY)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "nothing was changed" in done.stderr


def test_comments_are_no_change(run: Run, edit: Edit) -> None:
    edit("'# mine\\n' + text")
    assert "nothing was changed" in run("override", "edit", NIGHTLY).stderr


def test_a_fault_opens_the_editor_again_with_what_was_written(run: Run, edit: Edit) -> None:
    edit(
        "text.replace('retries: 2', 'retries: many')",
        "text.replace('many', '5') if text.startswith('# Error: ') and 'many' in text else 1 / 0",
    )
    assert steps(run("override", "edit", NIGHTLY))[0]["with"] == {"retries": 5}


def test_leaving_with_the_fault_ends_it(run: Run, edit: Edit) -> None:
    edit("text.replace('retries: 2', 'retries: many')")
    done = run("override", "edit", NIGHTLY)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "many" in done.stderr


def test_no_yaml_is_a_fault_like_another(run: Run, edit: Edit) -> None:
    edit("text + '  : ['")
    done = run("override", "edit", NIGHTLY)
    assert done.exit_code == 2
    assert "not YAML" in done.stderr


@pytest.mark.parametrize("word", ["labels", "annotations", "env", "node_selector"])
def test_a_string_is_what_was_written(run: Run, edit: Edit, word: str) -> None:
    odd = ("no", "on", "0755", "1e3", "1.10", "0x1f", "1_000", "2020-01-01", "12.30", "true")
    said = ", ".join(f"a{i}: {text}" for i, text in enumerate(odd))
    edit(f"text.replace('{word}: {{}}', '{word}: {{{said}}}')")
    (step,) = steps(run("override", "edit", NIGHTLY))
    assert step["with"] == {"set": {f"a{i}": text for i, text in enumerate(odd)}}


def test_a_toleration_s_value_is_what_was_written(run: Run, edit: Edit) -> None:
    edit("text.replace('tolerations: []', 'tolerations: [{key: 0755, value: no}]')")
    (step,) = steps(run("override", "edit", NIGHTLY))
    assert step["with"] == {"add": [{"key": "0755", "value": "no"}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("text.replace('retries: 2', 'retries: no')", "valid integer"),
        ("text.replace('retries: 2', 'retries: 2.5')", "valid integer"),
        ("text + 'other: 1'", "`other` cannot be changed"),
        ("'# nothing'", "the file is empty"),
        ("'[a]'", "expected a map `nodes`"),
        ("'nodes: [a]'", "expected a map `nodes`"),
        ("text + '\\n---\\n' + text", "another document"),
    ],
)
def test_what_cannot_be_read_as_it_was_meant_is_said(
    run: Run, edit: Edit, change: str, said: str
) -> None:
    edit(change)
    done = run("override", "edit", NIGHTLY)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_what_the_chain_enforces_is_said(
    run: Run, edit: Edit, configure: Callable[[str], Path]
) -> None:
    configure(ENFORCED)
    edit("text.replace('retries: 1', 'retries: 5', 1)")
    done = run("override", "edit", NIGHTLY)
    assert done.exit_code == 2
    assert "`retries` would stay as it is: the chain enforces it" in done.stderr


def test_what_may_not_be_overridden_is_said(run: Run, edit: Edit) -> None:
    edit("text.replace('speech:1', 'speech:2')")
    done = run("override", "edit", NIGHTLY)
    assert done.exit_code == 2
    assert "image may not be overridden" in done.stderr


def test_nested_nodes_that_change_alike_are_one_step(run: Run, edit: Edit) -> None:
    edit("text.replace('retries: 2', 'retries: 3')")
    (step,) = steps(run("override", "edit", "speech/development/outer"))
    assert step["with"] == {"retries": 3}
    assert {"n0.n1.n0", "n1.n1.n0"} <= set(step["when"]["node"])


def test_no_editor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", os.devnull)
    monkeypatch.delenv("VISUAL", raising=False)
    done = run("override", "edit", NIGHTLY)
    assert done.exit_code != 0
    assert done.stdout == ""


# words -------------------------------------------------------------------------------------------

GIVEN: dict[str, Any] = {
    "task": "t",
    "cache": {"cache": True, "version": "1"},
    "timeout": "60s",
    "interruptible": True,
    "labels": {"a": "b", "c": "d"},
    "replicas": {"worker": 2},
    "spark_conf": {"x": "1"},
    "task_config": {"runPolicy": {"backoffLimit": 1, "cleanPodPolicy": "All"}, "slots": 1},
    "pods": {
        "head": {
            "gpu": {"type": "nvidia-l4", "count": 1, "device": "nvidia-l4"},
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1"}},
            "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}],
            "rest": {"hostNetwork": True},
        },
        "worker:gpu": {"env": {"A": "1"}},
    },
}
HEAD = {"role": ["head"]}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The node with another value at a path; without it, if that is None."""
    found: dict[str, Any] = yaml.safe_load(yaml.safe_dump(GIVEN))
    *parents, last = path.split("/")
    place = found
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "use", "parameters", "role"),
    [
        ("cache", {"cache": False, "version": "1"}, "cache", {"cache": False}, {}),
        ("timeout", None, "timeout", {"timeout": None}, {}),
        ("interruptible", None, "interruptible", {"interruptible": None}, {}),
        (
            "labels",
            {"a": "x", "e": "f"},
            "labels",
            {"set": {"a": "x", "e": "f"}, "remove": ["c"]},
            {},
        ),
        ("replicas/worker", 8, "task_config", {"replicas": 8, "role": "worker"}, {}),
        ("spark_conf/x", None, "spark_conf", {"remove": ["x"]}, {}),
        (
            "task_config/runPolicy",
            {"backoffLimit": 3},
            "task_config",
            {"set": {"runPolicy": {"backoffLimit": 3, "cleanPodPolicy": None}}},
            {},
        ),
        ("pods/head/gpu/count", 4, "gpu", {"type": "nvidia-l4", "count": 4}, HEAD),
        ("pods/head/gpu/type", "nvidia-a100-80gb", "gpu", {"type": "nvidia-a100-80gb"}, HEAD),
        (
            "pods/head/resources/requests",
            {"cpu": "4"},
            "resources",
            {"requests": {"cpu": "4", "memory": None}},
            HEAD,
        ),
        (
            "pods/head/tolerations",
            [{"key": "b", "operator": "Exists"}],
            "tolerations",
            {
                "add": [{"key": "b", "operator": "Exists"}],
                "remove": [{"key": "a", "operator": "Exists"}],
            },
            HEAD,
        ),
        ("pods/worker:gpu/env/B", "2", "env", {"set": {"B": "2"}}, {"role": ["worker:gpu"]}),
    ],
)
def test_what_each_word_says(
    path: str, value: Any, use: str, parameters: dict[str, Any], role: dict[str, Any]
) -> None:
    found = override_of_edit({"nodes": {"n0": GIVEN}}, {"nodes": {"n0": changed(path, value)}}, {})
    (step,) = found.document()["steps"]
    assert step == {"use": use, "with": parameters, "when": {"node": "n0", **role}}


def test_a_node_of_a_child_execution_is_named_with_its_workflow() -> None:
    titles = {"n3/n0": GIVEN}, {"n3/n0": changed("timeout", "2h")}
    found = override_of_edit({"nodes": titles[0]}, {"nodes": titles[1]}, {"n3/n0": "child.wf"})
    (step,) = found.document()["steps"]
    assert step["when"] == {"node": "n0", "workflow": "child.wf"}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("task", "other", "`task` cannot be changed"),
        ("labels", ["a"], "`labels`: expected a map"),
        ("pods", {}, "pods cannot be added or taken away"),
        ("replicas/ps", 2, "role 'ps' cannot be added"),
        ("pods/head/rest", {}, "`rest` of pod 'head' cannot be changed"),
        ("pods/head/gpu/device", "x", "device is for reading"),
        ("pods/head/gpu/type", None, "`gpu` needs a `type`"),
        ("pods/head/tolerations", "x", "`tolerations`: expected a list"),
    ],
)
def test_what_cannot_be_changed(path: str, value: Any, said: str) -> None:
    with pytest.raises(OverrideError, match=said):
        override_of_edit({"nodes": {"n0": GIVEN}}, {"nodes": {"n0": changed(path, value)}}, {})


@pytest.mark.parametrize("after", [{}, {"nodes": {}}, {"nodes": []}, {"nodes": {"n0": 1}}])
def test_nodes_stay(after: dict[str, Any]) -> None:
    with pytest.raises(OverrideError, match="node"):
        override_of_edit({"nodes": {"n0": GIVEN}}, after, {})
