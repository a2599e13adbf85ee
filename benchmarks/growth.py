"""Whether time and memory stay linear as the object and the chain grow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from benchmarks.measure import Plan, batch, ratio
from benchmarks.objects import TASK, chain, kind_of, many_steps, training_pod
from benchmarks.rows import Row
from kubetailor.registry import Chain

__all__ = ["ROWS"]

_SMALL_ENV, _LARGE_ENV = 80, 22_300  # 10 kB and 1.5 MB
_FEW, _MANY = 10, 100

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


def _groups(groups: int) -> dict[str, Any]:
    """A RayCluster of that many groups of workers."""
    spec = {"template": {"spec": training_pod()["spec"]}, "rayStartParams": {}}
    workers = [{**spec, "groupName": f"group-{n}", "replicas": 1} for n in range(groups)]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "tune"},
        "spec": {"headGroupSpec": spec, "workerGroupSpecs": workers},
    }


def _containers(containers: int) -> dict[str, Any]:
    """A pod of that many containers."""
    pod = training_pod()
    trainer, exporter = pod["spec"]["containers"]
    more = [{**exporter, "name": f"metrics-{n}"} for n in range(containers - 1)]
    return {**pod, "spec": {**pod["spec"], "containers": [trainer, *more]}}


@dataclass(frozen=True)
class _Growing:
    """Something of which an object may have many.

    Attributes:
        name: what to call it.
        what: one of them, for people.
        few: how many are few.
        many: how many are many.
        make: makes an object of so many.
    """

    name: str
    what: str
    few: int
    many: int
    make: Callable[[int], dict[str, Any]]

    def time(self, plan: Plan) -> float:
        """What one of many takes against one of few."""
        few, many = (batch(work, plan) for work in self._works())
        return ratio(many, few, plan.rounds) / (self.many / self.few)

    def memory(self, plan: Plan) -> float:
        """The same in memory, at its peak."""
        few, many = map(_peak, self._works())
        return many / few / (self.many / self.few)

    def rows(self) -> Iterator[Row]:
        """Both."""
        numbers = f"{self.many} against {self.few}"
        what = f"per {self.what} under defaults and steps, {numbers}"
        yield Row(f"growth-{self.name}", f"time {what}", _GOAL, _FAIL, self.time)
        yield Row(f"growth-{self.name}-memory", f"peak memory {what}", _GOAL, _FAIL, self.memory)

    def _works(self) -> Iterator[Callable[[], object]]:
        """Defaults, some of which find nothing that they may change, and steps."""
        chain = many_steps(2 * _FEW)
        defaults = [replace(step, layer="defaults") for step in chain.steps[:_FEW]]
        chain = replace(chain, steps=(*defaults, *chain.steps[_FEW:]))
        return (_run(chain, self.make(count)) for count in (self.few, self.many))


_GROWING = (
    _Growing("pods", "pod of a JobSet", 10, 100, _job),
    _Growing("groups", "group of workers", 10, 100, _groups),
    _Growing("containers", "container", 20, 200, _containers),
    _Growing("env", "variable of a container", 50, 500, training_pod),
)

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
    *(row for growing in _GROWING for row in growing.rows()),
)
