"""`make demo` ends well and shows what it promises."""

from __future__ import annotations

import re
from pathlib import Path

from .conftest import EXAMPLES, Run

SPOT = "+      acme.example.com/pool: spot"
QUEUE = "+      kueue.x-k8s.io/queue-name: speech"
MACHINE = "+      node.kubernetes.io/instance-type: a2-highgpu-%sg"
TASKS = {
    "prepare": [SPOT],
    "clean": [SPOT],
    "align": [SPOT],
    "features": [SPOT],
    "fit": [MACHINE % 4],
    "fit_each": [SPOT],
    "fit_by_hand": ["+    priorityClassName: batch-low"],
    "fit_distributed": [QUEUE, MACHINE % 8],
    "finetune": [QUEUE, MACHINE % 2],
    "tune": [QUEUE, SPOT],
}
"""Task -> lines of its diff."""
DIFF = re.compile(r"^\+\+\+ task (\S+), after\n(.*?)(?=^--- |^## |\Z)", re.MULTILINE | re.DOTALL)
EVERY = "+      acme.example.com/cost-centre: speech"


def files() -> set[Path]:
    return {p for p in EXAMPLES.rglob("*") if "__pycache__" not in p.parts}


def test_the_demo(python: Run, tmp_path: Path) -> None:
    before = files()
    done = python(str(EXAMPLES / "demo.py"), cwd=tmp_path)
    assert "Traceback" not in done.stdout + done.stderr
    diffs = dict(DIFF.findall(done.stdout))
    for task, wanted in TASKS.items():
        lines = diffs[f"speech.pipeline.{task}"].splitlines()
        for line in (EVERY, *wanted):
            assert line in lines, task
        assert f"speech.pipeline.{task} (tasks/" in done.stdout
    assert "kueue.x-k8s.io/queue-name: team-speech" in done.stdout  # the manifest
    assert files() == before  # it works in a folder of its own
