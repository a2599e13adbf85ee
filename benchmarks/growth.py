"""Whether time and memory stay linear as the object and the chain grow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from benchmarks.measure import Plan, batch, ratio
from benchmarks.objects import TASK, chain, kind_of, many_steps, training_pod
from benchmarks.rows import Row
from kubetailor.registry import Chain

__all__ = ["ROWS"]

_SMALL_ENV, _LARGE_ENV = 80, 22_300  # 10 kB and 1.5 MB
_FEW, _MANY = 10, 100
_FEW_PODS, _MANY_PODS = 10, 100

# Quadratic would be 150 x for the object and 10 x for the steps.
_GOAL, _FAIL = 1.1, 1.5


def _run(steps: Chain, pod: dict[str, Any]) -> Callable[[], object]:
    kind = kind_of(pod)
    return lambda: steps.run(pod, kind, TASK).patch()


def _pods() -> tuple[dict[str, Any], dict[str, Any], float]:
    small, large = training_pod(_SMALL_ENV), training_pod(_LARGE_ENV)
    return small, large, len(orjson.dumps(large)) / len(orjson.dumps(small))


def _time_by_size(plan: Plan) -> float:
    steps = chain("matching")
    small, large, size = _pods()
    return (
        ratio(batch(_run(steps, large), plan), batch(_run(steps, small), plan), plan.rounds) / size
    )


def _memory_by_size(plan: Plan) -> float:
    steps = chain("matching")
    small, large, size = _pods()
    return _peak(_run(steps, large)) / _peak(_run(steps, small)) / size


def _peak(work: Callable[[], object]) -> int:
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _chains() -> tuple[Chain, Chain]:
    many = many_steps(_MANY)
    return replace(many, steps=many.steps[:_FEW]), many


def _time_by_steps(plan: Plan) -> float:
    few, many = _chains()
    pod = training_pod()
    found = ratio(batch(_run(many, pod), plan), batch(_run(few, pod), plan), plan.rounds)
    return found / (_MANY / _FEW)


def _memory_by_steps(plan: Plan) -> float:
    few, many = _chains()
    pod = training_pod()
    return _peak(_run(many, pod)) / _peak(_run(few, pod)) / (_MANY / _FEW)


def _job(pods: int) -> dict[str, Any]:
    """A JobSet of that many jobs."""
    jobs = [
        {"name": f"job-{n}", "template": {"spec": {"template": {"spec": training_pod()["spec"]}}}}
        for n in range(pods)
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"replicatedJobs": jobs},
    }


def _time_by_pods(plan: Plan) -> float:
    """Defaults, some of which find nothing that they may change in any of the pods."""
    many = many_steps(_FEW)
    steps = replace(many, steps=tuple(replace(step, layer="defaults") for step in many.steps))
    few, lots = _run(steps, _job(_FEW_PODS)), _run(steps, _job(_MANY_PODS))
    found = ratio(batch(lots, plan), batch(few, plan), plan.rounds)
    return found / (_MANY_PODS / _FEW_PODS)


ROWS = (
    Row(
        "growth-object",
        "time per byte of an object, 1.5 MB against 10 kB",
        _GOAL,
        _FAIL,
        _time_by_size,
    ),
    Row(
        "growth-object-memory",
        "peak memory per byte of an object, 1.5 MB against 10 kB",
        _GOAL,
        _FAIL,
        _memory_by_size,
    ),
    Row(
        "growth-steps",
        "time per step of a chain, 100 steps against 10",
        _GOAL,
        _FAIL,
        _time_by_steps,
    ),
    Row(
        "growth-steps-memory",
        "peak memory per step of a chain, 100 steps against 10",
        _GOAL,
        _FAIL,
        _memory_by_steps,
    ),
    Row(
        "growth-pods",
        "time per pod of a workload under defaults, 100 pods against 10",
        _GOAL,
        _FAIL,
        _time_by_pods,
    ),
)
