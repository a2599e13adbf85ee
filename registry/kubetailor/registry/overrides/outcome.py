"""What an override did over a whole execution: a step that did nothing is refused."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from kubetailor.registry.context import FIELDS, UNKNOWN, TaskContext
from kubetailor.registry.errors import OverrideError
from kubetailor.registry.overrides.compiled import CompiledOverride, refused
from kubetailor.registry.overrides.overridable import when_text
from kubetailor.registry.result import Result
from kubetailor.registry.step import Step
from kubetailor.workloads import JsonMap, Kind, Workload, nearest

__all__ = ["OverrideOutcome"]

_MANY = {"task": "tasks", "node": "nodes", "role": "roles", "task_type": "task types"}


_LOOKED_AT = 10
"""As many globs of a list are looked at for a message: whoever may launch may write thousands."""


class OverrideOutcome:
    """What an override did so far, task by task.

    Attributes:
        override: the override.
        matched: the names of the steps that applied to a task.
        changed: the names of those that changed one.
        waiting: the names of those that wait for a later phase.
    """

    def __init__(self, override: CompiledOverride) -> None:
        self.override: CompiledOverride = override
        self.matched: set[str] = set()
        self.changed: set[str] = set()
        self.waiting: set[str] = set()
        self._seen: list[tuple[TaskContext, JsonMap, Kind]] = []

    def add(self, task: TaskContext, result: Result, kind: Kind) -> None:
        """Take note of one run.

        Args:
            task: what was known of the task.
            result: what the run did.
            kind: the row of its object.
        """
        self.matched.update(result.matched)
        self.changed.update(step.name for step, _ in result.roots if step.layer == "override")
        names = {step.name for step in self.override.steps}
        self.waiting |= names if result.unselected else names.intersection(result.deferred)
        self._seen.append((task, result.before, kind))

    def faults(self) -> list[OverrideError]:
        """Each step that did nothing, and is neither `optional` nor waits for a later phase."""
        return [self.fault(step) for step in self.idle()]

    def idle(self) -> list[Step]:
        """The steps of `faults`."""
        return [
            step
            for step in self.override.steps
            if step.name not in self.changed | self.waiting and not step.optional
        ]

    def fault(self, step: Step) -> OverrideError:
        """What there is to say of a step that did nothing."""
        return refused(step, self._reason(step))

    def check(self) -> None:
        """Refuse an override of which a step did nothing.

        Raises:
            OverrideError: all such steps.
        """
        if faults := self.faults():
            found = OverrideError("\n".join(map(str, faults)))
            found.mark = faults[0].mark
            raise found

    def _reason(self, step: Step) -> str:
        way_out = "`optional: true` allows it"
        if step.name in self.matched:
            return (
                f"it changes nothing: what it sets is there already, on every task "
                f"that it is for; {way_out}"
            )
        when = when_text(step.when)
        known = "; ".join(dict.fromkeys(self._near(step.when.written)))
        return f"it matches no task: when {when}; {known or way_out}" + (
            f"; {way_out}" if known else ""
        )

    def _near(self, when: Any) -> Iterator[str]:
        """What there is of the fields that a `when` asks for, and that none has as it says."""
        for field, globs in _asked(when):
            there = {str(value) for value in self._values(field) if value is not None}
            globs = globs if isinstance(globs, list) else [globs]
            texts = [glob for glob in globs if isinstance(glob, str)][:_LOOKED_AT]
            if texts and not any(fnmatch.filter(there, glob) for glob in texts):
                yield nearest(texts[0], there, what=_MANY.get(field, f"{field}s"))

    def _values(self, field: str) -> Iterator[Any]:
        for task, obj, kind in self._seen:
            if field in FIELDS:
                value = task.peek(field)
                yield None if value is UNKNOWN else value
                continue
            workload = Workload(obj, kind)
            if field == "kind":
                yield workload.kind_name
            else:
                yield from (role for pod in workload.pods() for role in pod.roles)


def _asked(when: Any) -> Iterator[tuple[str, Any]]:
    """(field, globs) of every plain field of a `when`, at any depth."""
    if not isinstance(when, Mapping):
        return
    for key, value in when.items():
        if key in ("any", "all"):
            for part in value:
                yield from _asked(part)
        elif key in ("kind", "role") or (key in FIELDS and key not in ("inputs", "attempt")):
            yield key, value
