"""`make demo` ends well and shows what it promises."""

from __future__ import annotations

import sys
from pathlib import Path

from .conftest import EXAMPLES, Run

TASKS = ("prepare", "clean", "align", "fit", "fit_distributed", "finetune", "tune", "features")


def files() -> set[Path]:
    return {p for p in EXAMPLES.rglob("*") if "__pycache__" not in p.parts}


def test_the_demo(run: Run, tmp_path: Path) -> None:
    before = files()
    done = run(sys.executable, str(EXAMPLES / "demo.py"), cwd=tmp_path)
    assert "Traceback" not in done.stdout + done.stderr
    for task in TASKS:
        assert f"+++ task speech.pipeline.{task}, after" in done.stdout
        assert f"speech.pipeline.{task} (tasks/" in done.stdout
    assert "kueue.x-k8s.io/queue-name: team-speech" in done.stdout  # the manifest
    assert files() == before  # it works in a folder of its own
