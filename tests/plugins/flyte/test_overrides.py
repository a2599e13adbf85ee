"""A node's own `with_overrides` beats every step, and `serialize` says so where they disagree."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flytekit import PodTemplate, Resources, task, workflow
from flytekit.extras.accelerators import A100, T4

from kubetailor.plugins.flyte.entities import Entities
from kubetailor.plugins.flyte.install import left_alone
from kubetailor.plugins.flyte.report import Report
from kubetailor.registry.tailor import Tailor

CONFIG = """
accelerators:
  amd: {resource: amd.com/gpu, node_selector: {pool: amd}}
  t4: {resource: nvidia.com/gpu, device: nvidia-tesla-t4, node_selector: {pool: t4}}
chains:
  default:
    steps:
      - %s
"""
SWAP = "{use: gpu, with: {type: amd}}"
T4_STEP = "{use: gpu, with: {type: t4}}"
CPU = "{use: resources, with: {requests: {cpu: 2}, raise_limits: true}}"
IMAGE = "{use: image, with: {image: 'scanned:1'}}"
RETRIES = "{use: retries, with: {retries: 5}}"
TIMEOUT = "{use: timeout, with: {timeout: 60}}"
SPOT = "{use: interruptible, with: {interruptible: true}}"
LABELS = "{use: labels, with: {set: {a: b}}}"


def gpus(number: str) -> dict[str, Any]:
    return {"requests": Resources(gpu=number), "limits": Resources(gpu=number)}


def _work(x: int) -> int:
    return x


train = task(container_image="i:1", **gpus("1"))(_work)


def node(**overrides: Any) -> Any:
    @workflow
    def wf(x: int) -> int:
        return train(x=x).with_overrides(**overrides)  # type: ignore[no-any-return]  # a promise

    return wf


@pytest.mark.parametrize(
    ("step", "overrides", "parts"),
    [
        (
            SWAP,
            {"accelerator": T4},
            [["accelerator is nvidia-tesla-t4", "'gpu'", "wrote amd;"]],
        ),
        (T4_STEP, {"accelerator": A100}, [["accelerator is nvidia-tesla-a100", "nvidia-tesla-t4"]]),
        (T4_STEP, {"accelerator": T4}, []),
        (LABELS, {"accelerator": T4}, []),
        (
            SWAP,
            gpus("4"),
            [
                ["requests nvidia.com/gpu is 4", "'gpu'", "took it off"],
                ["limits nvidia.com/gpu is 4", "'gpu'", "took it off"],
            ],
        ),
        (LABELS, gpus("4"), []),
        (
            CPU,
            {"requests": Resources(cpu="1", mem="1Gi")},
            [["requests cpu is 1", "'resources'", "wrote 2"]],
        ),
        (CPU, {"requests": Resources(cpu="2000m")}, []),
        (IMAGE, {"container_image": "mine:1"}, [["container_image is mine:1", "wrote scanned:1"]]),
        (IMAGE, {"container_image": "scanned:1"}, []),
        (IMAGE, {"retries": 3}, []),
        (RETRIES, {"retries": 3}, [["retries is 3", "'retries'", "wrote 5"]]),
        (RETRIES, {"retries": 5}, []),
        (RETRIES, {"timeout": timedelta(seconds=5)}, []),
        (TIMEOUT, {"timeout": timedelta(seconds=5)}, [["timeout is 5s", "'timeout'", "wrote 60s"]]),
        (SPOT, {"interruptible": False}, [["interruptible is false", "wrote true"]]),
        (
            IMAGE,
            {"container_image": "mine:1", "pod_template": PodTemplate()},
            [["container_image is mine:1", "wrote scanned:1"]],
        ),
    ],
)
def test_what_beats_a_step_is_said_by_both(
    flyte: Any,
    configure: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
    step: str,
    overrides: dict[str, Any],
    parts: list[list[str]],
) -> None:
    wf = node(**overrides)
    with left_alone():
        specs = [spec.to_flyte_idl() for spec in flyte.serialize(wf).values()]
    path = configure(CONFIG % step)
    flyte.serialize(wf)
    said = beaten(capsys)
    assert len(said) == len(parts)
    for line, words in zip(said, parts, strict=True):
        for part in ["n0 (task ", f"{path}:8:", "the phase launch", *words]:
            assert part in line
    tailor = Tailor.find(path)
    assert tailor is not None
    tasks = [spec for spec in specs if "TaskSpec" in type(spec).__name__]
    flows = [spec for spec in specs if "WorkflowSpec" in type(spec).__name__]
    list(Entities(tasks, flows).tailor(tailor, Report()))
    again = beaten(capsys)
    assert [line.partition("): ")[2] for line in again] == [
        line.partition("): ")[2] for line in said
    ]


TEAM = """
from kubetailor.registry import Pod, transformer

@transformer(accelerator=True)
def pooled(pod: Pod) -> None:
    "Choose the nodes of a GPU in the team's own way."
    pod.select_node("pool", "mine")
"""


def test_what_beats_a_teams_own_choice_of_an_accelerator_is_said(
    flyte: Any, configure: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = configure("plugins: [./team.py]\nchains: {default: {steps: [{use: team.pooled}]}}\n")
    path.with_name("team.py").write_text(TEAM)
    flyte.serialize(node(accelerator=T4))
    (said,) = beaten(capsys)
    for part in ("accelerator is nvidia-tesla-t4", "wrote what team.pooled chooses"):
        assert part in said
    flyte.serialize(node(retries=1))
    assert not beaten(capsys)


def beaten(capsys: pytest.CaptureFixture[str]) -> list[str]:
    err = capsys.readouterr().err
    return [line for line in err.splitlines() if "beats the chain" in line]
