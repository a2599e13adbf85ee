"""What is measured, and how far it may go: one row each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measure import Plan

__all__ = ["NotMeasuredError", "Row", "faster", "more", "times"]


class NotMeasuredError(Exception):
    """What a row needs is not there; the message says how to get it."""


def times(ratio: float) -> str:
    """A ratio as ``0.74 x``."""
    return f"{ratio:.2f} x"


def more(ratio: float) -> str:
    """A ratio as what it adds: ``+4.0 %``."""
    return f"{ratio - 1:+.1%}".replace("%", " %")


def faster(ratio: float) -> str:
    """A ratio as how much faster we are: ``52 x faster``."""
    return f"{1 / ratio:.0f} x faster"


@dataclass(frozen=True)
class Row:
    """One thing that is measured; a smaller ratio is better.

    Attributes:
        name: what to call it on the command line.
        what: what is compared with what.
        goal: the ratio to reach; infinite where it is only told.
        fail: the ratio at which `--check` fails.
        measure: measures it, or raises a NotMeasuredError.
        shown: how people read the ratio.
    """

    name: str
    what: str
    goal: float
    fail: float
    measure: Callable[[Plan], float]
    shown: Callable[[float], str] = times

    def verdict(self, ratio: float) -> str:
        """Whether a ratio reaches the goal, and if not whether it is beyond the limit."""
        if math.isinf(self.goal):
            return ""
        if ratio > self.fail:
            return "FAIL"
        return "good" if ratio <= self.goal else "over the goal"
