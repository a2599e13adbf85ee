"""`kubetailor flyte show PROJECT/DOMAIN/NAME`: what is registered, in the words of transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from flytekit.remote import FlyteRemote

from kubetailor.plugins.client.show import is_name

from .conftest import register
from .nested import CHILD, alone, outer

PLACE = "speech/development"
OUTER = f"{PLACE}/{outer.name}"
ALONE = f"{PLACE}/{alone.name}"
H100 = ("--set", "gpu.type=nvidia-h100-80gb")

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def registered(remote: FlyteRemote) -> None:
    register(remote, outer)
    register(remote, alone)


def shown(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return yaml.safe_load(result.stdout)


def test_every_node_is_shown_as_it_is_registered(run: Run) -> None:
    found = shown(run("flyte", "show", OUTER))
    assert list(found) == ["nodes"]
    assert set(found["nodes"]) == {
        "n2-n0",
        "n2-n1",
        "n3",
        "n0.n0",
        "n1.n0",
        "n0.n1.n0",
        "n1.n1.n0",
    }
    node = found["nodes"]["n0.n1.n0"]
    rest = node["pods"]["primary"].pop("rest")
    assert rest["containers"][0]["args"][0] == "pyflyte-execute"
    assert node == {
        "task": f"{__package__}.nested.fit",
        "task_type": "python-task",
        "version": "v1",
        "cache": {"cache": False},
        "retries": 2,
        "timeout": None,
        "interruptible": None,
        "labels": {},
        "annotations": {},
        "pods": {
            "primary": {
                "gpu": {"type": None, "device": "nvidia-tesla-a100", "count": 1},
                "resources": {"limits": {}, "requests": {"cpu": "2"}},
                "image": "registry.example.com/speech:1",
                "env": {},
                "node_selector": {},
                "tolerations": [],
                "priority_class": None,
            }
        },
    }
    # What a node states is part of it.
    assert found["nodes"]["n3"]["pods"]["primary"]["gpu"]["count"] == 4
    assert found["nodes"]["n0.n0"]["cache"] == {"cache": True, "version": "1"}


def test_nodes_of_child_executions_are_behind_the_node_that_launches_them(run: Run) -> None:
    found = shown(run("flyte", "show", ALONE))["nodes"]
    assert list(found) == ["n0", "n1/n0"]
    assert found["n1/n0"]["launches"] == f"{PLACE}/{CHILD.name}@v1"


def test_with_an_override_it_is_the_result_and_the_difference(run: Run) -> None:
    result = run("flyte", "show", f"{OUTER}@v1", *H100, "--on", "node=n0.n1.*")
    assert result.exit_code == 0, result.output
    document, _, diffs = result.stdout.partition("\n--- ")
    nodes = yaml.safe_load(document)["nodes"]
    assert nodes["n0.n1.n0"]["pods"]["primary"]["gpu"] == {"type": "nvidia-h100-80gb", "count": 1}
    assert nodes["n1.n1.n0"]["pods"]["primary"]["gpu"]["device"] == "nvidia-tesla-a100"
    assert diffs.count("+++ ") == 1
    assert "-    device: nvidia-tesla-a100" in diffs
    assert "+      cloud.google.com/gke-accelerator: nvidia-h100-80gb" in diffs


def test_machines_get_the_changes_too(run: Run) -> None:
    words = ("-o", "json", "--set", "retries.retries=5", "--on", "task=*.fit")
    found = json.loads(run("flyte", "show", ALONE, *words).stdout)
    assert found["nodes"]["n1/n0"]["retries"] == 5
    (changes,) = found["changes"].values()
    assert [(each["field"], each["old"], each["new"]) for each in changes] == [
        ("metadata.retries.retries", 2, 5)
    ]
    plain = json.loads(run("flyte", "show", ALONE, "-o", "json").stdout)
    assert "changes" not in plain


def test_a_file_and_words_are_one_override(run: Run, folder: Path) -> None:
    (folder / "override.yaml").write_text("steps: [{use: cache, with: {cache: false}}]")
    words = ("--override", "override.yaml", "--set", "timeout.timeout=90s")
    found = json.loads(run("flyte", "show", ALONE, *words, "-o", "json").stdout)["nodes"]
    assert [found["n0"]["cache"], found["n0"]["timeout"]] == [
        {"cache": False, "version": "1"},
        "90s",
    ]


def test_only_differences_and_an_exit_code(run: Run, configure: Callable[[str], Path]) -> None:
    assert run("flyte", "show", ALONE, "--diff").exit_code == 0
    configure(
        "phases: [launch]\nchains: {default: {steps: [{use: labels, with: {set: {a: b}}}]}}\n"
    )
    result = run("flyte", "show", ALONE, "--diff")
    assert result.exit_code == 1
    assert result.stdout.startswith("--- n0 (")
    assert result.stdout.count("+++ ") == 2


def test_templates_are_shown_where_they_are_asked_for(run: Run) -> None:
    nodes = shown(run("flyte", "show", ALONE, "--templates"))["nodes"]
    assert nodes["n0"]["template"]["container"]["image"] == "registry.example.com/speech:1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((f"{PLACE}/{alone.name}s",), f"did you mean {alone.name}"),
        ((f"{PLACE}/{alone.name}@v7",), "no version 'v7'; versions: v1"),
        ((ALONE, "-p", "speech"), "-p, -d, -v and -i are for modules"),
        (("json", "--templates"), "json is not registered"),
        ((ALONE, *H100, "--on", "node=n7"), "matches no task"),
        ((ALONE, "--set", "image.image=x:1"), "image"),
        ((ALONE, "--override", "none.yaml"), "none.yaml: No such file"),
    ],
)
def test_what_cannot_be_is_said_without_a_traceback(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    result = run("flyte", "show", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("p/d/n", True),
        ("p/d/n@v", True),
        ("p/d/a/b/c", True),
        ("p/d", False),
        ("module", False),
        ("./a/b/c", False),
        ("/a/b/c", False),
        ("a/b/c.py", False),
        ("a/b/gone.py", False),
        ("a/b/gone.tgz", False),
    ],
)
def test_a_file_is_a_module_though_its_path_has_slashes(
    folder: Path, source: str, expected: bool
) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c.py").write_text("")
    assert is_name(source) is expected
