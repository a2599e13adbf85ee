"""The reviews of one real execution, and configs to decide them by."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.decision import Decision
from kubetailor.plugins.webhook.reviews import AdmissionReview, dump, parse
from kubetailor.registry.load import load_config
from kubetailor.registry.tailor import Tailor

REVIEWS = Path(__file__).parent / "reviews"
NAMES = sorted(path.stem for path in REVIEWS.glob("*.json"))

PLUGIN = '''
"""Transformers that only tests need."""

from kubetailor.registry import Pod, TaskContext, Workload, transformer


@transformer
def cost_centre(workload: Workload, task: TaskContext) -> None:
    """Label the object itself with who pays."""
    workload.label("example.com/cost-centre", task.project or "nobody")


@transformer
def said_by(pod: Pod, task: TaskContext, *, field: str) -> None:
    """Say what is known of the task."""
    pod.annotate(f"example.com/{field}", str(getattr(task, field)))


@transformer
def broken(pod: Pod) -> None:
    """Fail as code does."""
    raise RuntimeError("no such table")


@transformer
def endless(pod: Pod) -> None:
    """Never come back."""
    while True:
        pass


@transformer
def sleeping(pod: Pod) -> None:
    """Wait for what does not come."""
    import time

    time.sleep(3600)


@transformer
def queued(pod: Pod) -> None:
    """Put the pods themselves into a queue, as no chain should."""
    pod.label("kueue.x-k8s.io/queue-name", "wrong")


@transformer
def suspended(workload: Workload) -> None:
    """Suspend the object, where it can be."""
    if workload.kind.suspend:
        workload.edit(*workload.kind.suspend[:-1])[workload.kind.suspend[-1]] = True


@transformer(queue=True)
def enqueued(pod: Pod) -> None:
    """Send the pods through a queue that the team alone knows."""
    pod.label("example.com/queue", "q")


@transformer(accelerator=True)
def pooled(pod: Pod) -> None:
    """Choose the nodes of a GPU in the team's own way."""
    pod.select_node("example.com/gpu", "mine")


@transformer
def retried(workload: Workload, *, times: int) -> None:
    """Let a task be tried again."""
    if workload.is_task_template:
        workload.edit("metadata", "retries")["retries"] = times


@transformer
def timed(workload: Workload, *, timeout: str | None) -> None:
    """Limit the time of a task, or do not."""
    if workload.is_task_template:
        workload.edit("metadata")["timeout"] = timeout
        if timeout is None:
            del workload.edit("metadata")["timeout"]


@transformer
def spot(workload: Workload, *, interruptible: bool | None) -> None:
    """Let a task be interrupted, or not, or say nothing."""
    if workload.is_task_template:
        workload.edit("metadata")["interruptible"] = interruptible
        if interruptible is None:
            del workload.edit("metadata")["interruptible"]


@transformer
def class_name(pod: Pod, *, field: str, name: str) -> None:
    """Set a field of the pod spec."""
    pod.set_field(field, name)
'''


def review_of(name: str) -> AdmissionReview:
    """One of the real reviews."""
    return parse((REVIEWS / f"{name}.json").read_bytes())


def object_of(review: AdmissionReview) -> dict[str, Any]:
    """The object of a review, to be changed by a test."""
    found = review["request"].get("object")
    assert found is not None
    return found


def with_all_its_tasks(review: AdmissionReview) -> AdmissionReview:
    """The review of the execution without what has tasks that are not in the object.

    Its node n13 launches another execution, and the task of n11 makes tasks as it runs.
    """
    obj = object_of(review)
    kept = {name: node for name, node in obj["spec"]["nodes"].items() if name not in ("n11", "n13")}
    tasks = {key: task for key, task in obj["tasks"].items() if task["id"]["name"] != "zoo.fan_out"}
    return again(review, {**obj, "spec": {**obj["spec"], "nodes": kept}, "tasks": tasks})


def answer_of(decision: Decision) -> dict[str, Any]:
    """The answer of a decision, with whatever it holds."""
    return {**decision.response}


def patch_of(decision: Decision) -> list[dict[str, Any]]:
    """The patch that a decision returns."""
    text = decision.response.get("patch")
    assert ("patchType" in decision.response) == (text is not None)
    return [] if text is None else json.loads(base64.b64decode(text))


def patched(review: AdmissionReview, decision: Decision) -> dict[str, Any]:
    """What the API server makes of the object, by a patch library that is not ours."""
    assert decision.response["allowed"], decision.reason
    found: dict[str, Any] = jsonpatch.apply_patch(object_of(review), patch_of(decision))
    return found


def again(review: AdmissionReview, obj: dict[str, Any]) -> AdmissionReview:
    """The review of another version of the object."""
    return parse(dump({**review, "request": {**review["request"], "object": obj}}))


@pytest.fixture
def tailor_of(tmp_path: Path) -> Callable[[str], Tailor]:
    """Makes a config in use of the `chains` (and more) of a YAML text."""

    def make(text: str) -> Tailor:
        (tmp_path / "probe.py").write_text(PLUGIN)
        path = tmp_path / "kubetailor.yaml"
        path.write_text("plugins: [./probe.py]\nphases: [serialize, launch, admit]\n" + text)
        return Tailor(load_config(path, entry_points=False))

    return make


@pytest.fixture
def decide_with(tailor_of: Callable[[str], Tailor]) -> Callable[..., Decision]:
    """Decides a review by a chain `default` of this YAML text."""

    def run(review: AdmissionReview, chain: str, rest: str = "") -> Decision:
        return decide(review, tailor_of(f"chains:\n  default: {chain}\n{rest}"))

    return run
