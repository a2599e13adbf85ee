"""The pods that a step is about."""

from __future__ import annotations

from dataclasses import dataclass

from kubetailor.workloads import Pod

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection:
    """What a step's `when` picked; injected into a transformer of whole workloads that asks.

    Attributes:
        pods: the pods, in the order of the workload.
        by_role: whether `when.role` named them.
    """

    pods: tuple[Pod, ...]
    by_role: bool
