"""What a run made of an object, and what a test may ask of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubetailor.registry.explain import Change, readable
from kubetailor.registry.fieldpath import ABSENT, field_at, with_field
from kubetailor.registry.result import Result
from kubetailor.workloads import Json, JsonMap, diff
from kubetailor.workloads.task_target import as_pod_task

__all__ = ["Outcome", "lines", "must", "text_of"]


@dataclass(frozen=True)
class Outcome:
    """What a run made of an object.

    Attributes:
        result: the run's result, with all that hosts see of it.
    """

    result: Result

    @property
    def before(self) -> JsonMap:
        """The object that was given; of a Flyte task that became a pod task, as that."""
        return as_pod_task(self.result.before, self.result.after)

    @property
    def after(self) -> JsonMap:
        """The object that came out."""
        return self.result.after

    @property
    def patch(self) -> list[JsonMap]:
        """The RFC 6902 patch from the one to the other."""
        return self.result.patch()

    @property
    def changes(self) -> list[Change]:
        """Every changed field, and which step changed it."""
        return self.result.changes()

    @property
    def warnings(self) -> list[str]:
        """What steps had to say."""
        return [str(warning) for warning in self.result.warnings]

    @property
    def deferred(self) -> tuple[str, ...]:
        """The names of the steps that wait for a later phase."""
        return self.result.deferred

    @property
    def diff(self) -> list[str]:
        """One line for each changed field: ``+ spec.nodeSelector = {"pool": "a"}``."""
        return lines(self.before, self.after)

    def __getitem__(self, path: str) -> Json:
        """What came out at a path such as ``spec.containers[main].env[0]``; None if nothing."""
        found = field_at(self.after, path)
        return None if found is ABSENT else found

    def assert_changes(self, fields: Mapping[str, Any]) -> None:
        """Fail unless these fields have these values and nothing else changed.

        Args:
            fields: path -> value, or `ABSENT`. List entries by name or index:
                ``spec.containers[main].resources.limits['nvidia.com/gpu']``.
        """
        expected = self.before
        for path, value in fields.items():
            expected = with_field(expected, path, value)
        others = lines(expected, self.after)
        must(not others, "what came out is not what was expected:", *others)

    def assert_unchanged(self) -> None:
        """Fail if anything changed."""
        self.assert_changes({})


def lines(before: JsonMap, after: JsonMap) -> list[str]:
    """One line for each field in which an object differs from another."""
    found = []
    for op, path, old, new in diff(before, after):
        field = readable(path, after, old if op == "remove" else new)
        if op == "replace":
            found.append(f"~ {field}: {text_of(old)} -> {text_of(new)}")
        else:
            sign, value = ("+", new) if op == "add" else ("-", old)
            found.append(f"{sign} {field} = {text_of(value)}")
    return found


def text_of(value: Json) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def must(holds: bool, *lines: str) -> None:
    """Fail, with these lines, unless something holds."""
    if not holds:
        raise AssertionError("\n".join(lines))
