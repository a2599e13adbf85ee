"""What a plugin's `validate` says of a result, and of whom it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry import StepError
from kubetailor.registry.testing import TailorBench

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}
CONFIG = """
plugins: [./team.py]
phases: [admit]
chains:
  default:
    steps:
      - {use: labels, with: {set: {a: b}}}
      - {use: env, with: {set: {A: x}}}
      - {use: annotations, with: {set: {a: b}}}
"""
TRAIN_JOB = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "t"},
    "spec": {"runtimeRef": {"name": "torch"}},
}


def run(tailor: TailorBench, folder: Path, body: str, obj: Any = POD) -> str:
    """What is said of a validate with this body; "" if it refuses nothing."""
    (folder / "team.py").write_text(
        "from kubetailor.registry import hookimpl\n\n"
        f"@hookimpl\ndef validate(workload):\n    {body}\n"
    )
    chain = tailor.chain(CONFIG)
    try:
        chain.run(obj)
    except StepError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return ['one', 'two']", "one; two"),
        ("yield 'one'; yield 'two'", "one; two"),
        ("return 'one'", "one"),
        ("return True", "it returned bool; a validate returns sentences, or None"),
        ("return 7", "it returned int; a validate returns sentences, or None"),
        ("yield 'one'; 1 + 'x'", "TypeError: unsupported operand"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("workload.label('x', 'y')", "it changed the workload, at which it may only look"),
        ("workload.pods()[0].tolerate('x')", "it changed the workload, at which it may only look"),
        ("workload.edit('metadata')['name'] = 'q'", "a step may not change what the object is"),
    ],
)
def test_every_fault_is_told_with_the_plugin(
    tailor: TailorBench, tmp_path: Path, body: str, message: str
) -> None:
    for obj in (POD, TRAIN_JOB):
        text = run(tailor, tmp_path, body, obj)
        assert message in text
        assert text.endswith("(validate of plugin team)")


@pytest.mark.parametrize(
    "body", ["pass", "return []", "return ''", "return False", "workload.pods()[0].edit()"]
)
def test_nothing_to_say(tailor: TailorBench, tmp_path: Path, body: str) -> None:
    for obj in (POD, TRAIN_JOB):
        assert run(tailor, tmp_path, body, obj) == ""


@pytest.mark.parametrize(
    ("body", "step"),
    [
        ("return ['x'] if 'a' in workload.labels else []", "labels"),
        ("return ['x'] if workload.pods()[0].primary.env else []", "env"),
        ("return ['x'] if 'a' in workload.annotations else []", "annotations"),
        ("return ['x']", "annotations"),  # the author's own, so all that can be named is the last
    ],
)
def test_the_step_that_did_it_is_named(
    tailor: TailorBench, tmp_path: Path, body: str, step: str
) -> None:
    assert f"step '{step}' (plugin kubetailor)" in run(tailor, tmp_path, body)


def test_one_that_raises_is_asked_once(tailor: TailorBench, tmp_path: Path) -> None:
    body = "calls.append(1); raise ValueError(len(calls))\n\ncalls = []"
    assert "ValueError: 1 (validate" in run(tailor, tmp_path, body)
