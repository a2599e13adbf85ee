"""What an override did over a whole execution: a step that did nothing is refused."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubetailor.registry.context import FIELDS, UNKNOWN, TaskContext
from kubetailor.registry.errors import OverrideError
from kubetailor.registry.overrides.allowed import shown
from kubetailor.registry.overrides.compiled import CompiledOverride, refused
from kubetailor.registry.overrides.overridable import when_text
from kubetailor.registry.result import Result
from kubetailor.registry.selectors import MAP_FIELDS
from kubetailor.registry.step import Step
from kubetailor.workloads import JsonMap, Kind, Workload, nearest

__all__ = ["OverrideOutcome"]

_MANY = {
    "task": "tasks",
    "node": "nodes",
    "role": "roles",
    "task_type": "task types",
    "requests": "resources",
}
_OF_OBJECTS: Mapping[str, Callable[[Workload], Iterable[Any]]] = {
    "kind": lambda workload: [workload.kind_name],
    "role": lambda workload: (role for pod in workload.pods() for role in pod.roles),
    "requests": lambda workload: (name for pod in workload.pods() for name in pod.resource_names),
}
"""What conditions ask of an object, and not of the task."""

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
        self._seen.append((task, result.after, kind))

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
        options = step.transformer.options
        if step.name in self.matched:
            none = ", or no pod asks for an accelerator" if options.accelerator else ""
            return (
                f"it changes nothing: what it sets is there already{none}, on every task "
                f"that it is for; {way_out}"
            )
        if options.task_templates and not any(
            Workload(obj, kind).is_task_template for _, obj, kind in self._seen
        ):
            return (
                f"it matches no task: {step.transformer.name} is about Flyte's task templates "
                f"alone, of which there is none here; {way_out}"
            )
        when = when_text(step.when)
        known = "; ".join(dict.fromkeys(self._near(step.when.written)))
        return f"it matches no task: when {when}; {known or way_out}" + (
            f"; {way_out}" if known else ""
        )

    def _near(self, when: Any) -> Iterator[str]:
        """What there is of the fields that a `when` asks for, and that none has as it says."""
        for (field, *name), globs in _asked(when):
            globs = globs if isinstance(globs, list) else [globs]
            if name:
                maps = list(self._maps(field))
                names = {key for each in maps for key in each}
                if name[0] not in names and None not in globs:
                    yield nearest(name[0], names, what=field)
                    continue
                values = [each.get(name[0]) for each in maps]
                many = f"{field}.{name[0]}"
            else:
                values = list(self._values(field))
                many = _MANY.get(field, f"{field}s")
            there = {shown(value) for value in values if value is not None}
            texts = [glob for glob in globs if isinstance(glob, str)][:_LOOKED_AT]
            if texts and not any(fnmatch.filter(there, glob) for glob in texts):
                yield nearest(texts[0], there, what=many)

    def _values(self, field: str) -> Iterator[Any]:
        for task, obj, kind in self._seen:
            if field in FIELDS:
                value = task.peek(field)
                yield None if value is UNKNOWN else value
            else:
                yield from _OF_OBJECTS[field](Workload(obj, kind))

    def _maps(self, field: str) -> Iterator[Mapping[str, Any]]:
        for task, obj, kind in self._seen:
            if field == "inputs":
                found = task.peek("inputs")
                yield {} if found is UNKNOWN or found is None else found
            else:
                yield Workload(obj, kind).metadata.get(
                    "labels" if field == "labels" else "annotations"
                )


def _asked(when: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(field, globs) of every field of a `when`, at any depth; of a map, (field, name)."""
    if not isinstance(when, Mapping):
        return
    for key, value in when.items():
        if key in ("any", "all"):
            for part in value:
                yield from _asked(part)
        elif key in MAP_FIELDS:
            yield from (((key, name), globs) for name, globs in value.items())
        elif key in _OF_OBJECTS or (key in FIELDS and key != "attempt"):
            yield (key,), value
