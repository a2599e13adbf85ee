"""A context that knows what was asked of it."""

from __future__ import annotations

from typing import Any

from kubetailor.registry import TaskContext
from kubetailor.registry.context import UNKNOWN
from kubetailor.workloads import Workload

__all__ = ["Watched"]


class Watched(TaskContext):
    """What is known of a task, and which fields were read.

    Where the node was not, another use of the same node comes out the same.

    Attributes:
        read: the fields that were read.
    """

    __slots__ = ("read",)

    def __init__(self, task: TaskContext) -> None:
        super().__init__(task.phase)
        self._values = task._values
        self.read: set[str] = set()

    def peek(self, field: str) -> Any:
        """A field, or UNKNOWN."""
        self.read.add(field)
        return self._values.get(field, UNKNOWN)

    def about(self, workload: Workload) -> TaskContext:
        """This context for a workload, whose labels and annotations it shows."""
        found = Watched(self)
        found.read = self.read
        found._workload = workload
        return found
