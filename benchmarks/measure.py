"""CPU time of two things side by side: interleaved, in one process, as a ratio.

CPU time and pairs of neighbouring batches, because a machine is rarely quiet: what slows one batch
slows the one beside it, and the ratio of the two stays.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

__all__ = ["FULL", "Batch", "Plan", "batch", "ratio", "timed"]

Batch: TypeAlias = Callable[[], float]
"""Does one batch of work and returns its CPU seconds for one piece of it."""


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: how many pairs of batches; the median of their ratios counts.
        seconds: how long a batch of something short is.
        tasks: how many Flyte tasks are serialized on either side.
        processes: how many pairs of processes are started.
    """

    rounds: int = 9
    seconds: float = 0.1
    tasks: int = 1000
    processes: int = 15


FULL = Plan()


def timed(work: Callable[[], Any]) -> float:
    """The CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def batch(work: Callable[[], Any], plan: Plan) -> Batch:
    """A batch that calls `work` as often as fits the plan's seconds."""
    loops = 1
    while (taken := timed(_repeated(work, loops))) < plan.seconds / 4:
        loops *= 2
    loops = max(1, round(loops * plan.seconds / taken)) if taken else 1
    repeated = _repeated(work, loops)
    return lambda: timed(repeated) / loops


def _repeated(work: Callable[[], Any], loops: int) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(loops):
            work()

    return repeated


def ratio(ours: Batch, theirs: Batch, rounds: int) -> float:
    """What ours costs for each unit of theirs: the median over pairs of batches.

    The order within a pair alternates, and what one batch left to the garbage collector is not
    counted to the next.
    """
    found = []
    for index in range(rounds):
        taken = {}
        for each in (ours, theirs) if index % 2 else (theirs, ours):
            gc.collect()
            taken[each] = each()
        found.append(taken[ours] / taken[theirs])
    return median(found)
