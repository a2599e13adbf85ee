"""`kubetailor flyte show MODULE` with an override: what `launch` would make of its tasks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from flytekit.core.context_manager import FlyteEntities

CONFIG = """\
phases: [serialize, launch, admit]
chains:
  default:
    steps:
      - {use: gpu, with: {type: nvidia-a100-80gb}, when: {requests: nvidia.com/gpu}}
    enforce:
      - {use: labels, with: {set: {cost-centre: speech}}}
overridable:
  - {use: gpu, allow: {type: {pattern: "nvidia-.*"}, count: {max: 4}}}
  - {use: labels}
  - {use: retries}
"""
MODULE = """\
from flytekit import Resources, task, workflow


@task(container_image="a:1")
def prepare(x: int) -> int:
    return x


@task(container_image="a:1", limits=Resources(gpu="1"))
def fit(x: int) -> int:
    return x


@workflow
def train(x: int) -> int:
    return fit(x=prepare(x=x))
"""
H100 = ("--set", "gpu.type=nvidia-h100-80gb")
DEVICE = "cloud.google.com/gke-accelerator: nvidia-{}-80gb"
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def module(folder: Path, configure: Callable[[str], Path], entities: None) -> Iterator[None]:
    FlyteEntities.entities.clear()  # all that other tests have made would be shown too
    configure(CONFIG)
    (folder / "training.py").write_text(MODULE)
    yield
    sys.modules.pop("training", None)


def test_what_is_registered_comes_before_and_what_runs_after(run: Run) -> None:
    done = run("flyte", "show", "training.py", "--diff", *H100, "--on", "task=*.fit")
    assert done.exit_code == 1, done.output
    assert "--- task training.fit, registered\n+++ task training.fit, launched" in done.stdout
    lines = [line.lstrip("+- ") for line in done.stdout.splitlines() if line[:1] in "+-"]
    assert [line for line in lines if line.startswith("cloud.google")] == [
        DEVICE.format("a100"),
        DEVICE.format("h100"),
    ]
    assert len(lines) == 4  # with the two that say which task it is
    done = run("flyte", "show", "training.py", "--diff", *H100, "--on", "task=*")
    assert "training.prepare" not in done.stdout  # it has another stamp, and no GPU


def test_enforce_stays_above_it(run: Run) -> None:
    words = ("--set", "labels.set={cost-centre: vision, team: a}")
    done = run("flyte", "show", "training.py", "-o", "json", *words)
    assert done.exit_code == 0, done.output
    for item in json.loads(done.stdout):
        assert item["after"]["metadata"]["metadata"]["labels"] == {
            "cost-centre": "speech",
            "team": "a",
        }
        assert "override" in {change["layer"] for change in item["changes"]}


def test_what_is_about_task_templates_is_seen(run: Run) -> None:
    done = run("flyte", "show", "training.py", "-o", "json", "--set", "retries.retries=4")
    items = json.loads(done.stdout)
    assert [item["after"]["metadata"]["retries"]["retries"] for item in items] == [4, 4]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*H100, "--on", "task=*.tain"), "tasks: training.fit, training.prepare"),
        ((*H100, "--set", "gpu.count=8"), "count: 8; allowed: at most 4"),
        (("--set", "image.image=b:1"), "image may not be overridden"),
        ((*H100, "--on", "node=n0"), "`when` reads node, which only an execution says"),
        ((*H100, "--on", "inputs.x=3"), "`when` reads inputs, which only an execution says"),
        ((*H100, "--templates"), "--templates is for PROJECT/DOMAIN/NAME"),
    ],
)
def test_what_would_be_refused_is_refused(run: Run, words: tuple[str, ...], said: str) -> None:
    done = run("flyte", "show", "training.py", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_what_selects_the_chain_has_to_be_said(run: Run, configure: Callable[[str], Path]) -> None:
    configure(CONFIG + "select:\n  - {when: {domain: development}, chain: default}\n")
    words = ("flyte", "show", "training.py", "--diff", *H100, "--on", "task=*.fit")
    done = run(*words)
    assert done.exit_code == 2
    assert "`select` needs domain, which a module does not say: give it with --task" in done.stderr
    assert run(*words, "--task", "domain=development").exit_code == 1
