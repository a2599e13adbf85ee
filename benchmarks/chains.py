"""A chain over a Kubernetes object, against parsing and printing that object with orjson."""

from __future__ import annotations

from typing import Any

import jsonpatch
import orjson

from benchmarks.measure import Batch, Plan, batch, ratio
from benchmarks.objects import TASK, chain, kind_of, training_pod
from benchmarks.rows import Row, faster
from kubetailor.registry import Chain
from kubetailor.registry.result import Result
from kubetailor.workloads import json_patch

__all__ = ["ROWS"]


def run(name: str, pod: dict[str, Any]) -> Result:
    """What a chain of the benchmarks' config makes of a pod."""
    return chain(name).run(pod, kind_of(pod), TASK)


def _round_trip(obj: dict[str, Any], plan: Plan) -> Batch:
    data = orjson.dumps(obj)
    return batch(lambda: orjson.dumps(orjson.loads(data)), plan)


def _against_round_trip(steps: Chain, plan: Plan, explain: bool = False) -> float:
    pod = training_pod()
    kind = kind_of(pod)

    def work() -> None:
        result = steps.run(pod, kind, TASK)
        if explain:
            result.changes()

    return ratio(batch(work, plan), _round_trip(pod, plan), plan.rounds)


def _matching(plan: Plan) -> float:
    return _against_round_trip(chain("matching"), plan)


def _explained(plan: Plan) -> float:
    return _against_round_trip(chain("matching"), plan, explain=True)


def _changed() -> tuple[dict[str, Any], dict[str, Any]]:
    """A pod before and after ten changes of a chain."""
    result = run("ten-changes", training_pod())
    assert len(result.patch()) == 10
    return result.before, result.after


def _patch(plan: Plan) -> float:
    before, after = _changed()
    return ratio(
        batch(lambda: json_patch(before, after), plan), _round_trip(before, plan), plan.rounds
    )


def _make_patch(plan: Plan) -> float:
    before, after = _changed()
    theirs = batch(lambda: jsonpatch.make_patch(before, after), plan)
    return ratio(batch(lambda: json_patch(before, after), plan), theirs, plan.rounds)


ROWS = (
    Row(
        "chain",
        "10 steps with selectors on a 7 kB pod, against orjson parse + dump of it",
        0.75,
        1.0,
        _matching,
    ),
    Row("explain", "the same with every change explained", 2.5, 4.0, _explained),
    Row("patch", "JSON Patch of 10 changes, against orjson parse + dump", 0.75, 1.0, _patch),
    Row(
        "make-patch",
        "JSON Patch of 10 changes, against jsonpatch.make_patch",
        1 / 40,
        1 / 30,
        _make_patch,
        faster,
    ),
)
