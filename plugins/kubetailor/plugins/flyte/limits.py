"""What no step can change of a task, in a package as in flytekit: both are refused the same."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from flyteidl.core import tasks_pb2
from flytekit.models import task

from kubetailor.plugins.flyte.messages import write_message
from kubetailor.plugins.flyte.write_models import write_model
from kubetailor.registry import Result, StepError
from kubetailor.registry.step import Step
from kubetailor.workloads import Json, JsonMap, KubetailorError, Workload
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["check_result"]


def check_result(result: Result) -> None:
    """Refuse a change that Flyte's messages or flytekit's models cannot hold.

    Args:
        result: a run over a task template.

    Raises:
        StepError: with the step that made the first such change.
    """
    if result.after is result.before:
        return
    try:
        _check(result.before, result.after)
    except KubetailorError as error:
        step = _culprit(result, str(error))
        raise StepError(
            str(error),
            step=step.name,
            plugin=step.transformer.plugin,
            obj=Workload(result.before, TASK_TEMPLATE).title,
            mark=step.mark,
            field=error.field,
        ) from None


def _check(before: JsonMap, after: JsonMap) -> None:
    if before.keys() - after.keys() <= {"container"} and all(
        [_holds_any(part, before.get(part), new) for part, new in after.items()]
    ):
        return
    old, new = _without_open_parts(before), _without_open_parts(after)
    write_message(tasks_pb2.TaskTemplate(), old, new)
    write_model(copy.copy(_EMPTY), before, after)


def _holds_any(part: str, old: Json, new: Json) -> bool:
    """Whether a part is as it was, or changed only where Flyte and flytekit hold any JSON data.

    Nearly every chain writes nothing else, and asking the messages takes long.
    """
    if new is old:
        return True
    if part == "config":
        return isinstance(new, dict) and all([type(value) is str for value in new.values()])
    known = _OPEN_PARTS.get(part)
    if known is None or not isinstance(new, dict):
        return False
    was = old if isinstance(old, dict) else {}
    changed = [key for key in {**was, **new} if was.get(key) is not new.get(key)]
    return known.issuperset(changed) and _is_metadata(new.get("metadata"))


_OPEN_PARTS: Mapping[str, frozenset[str]] = {
    "k8sPod": frozenset({"metadata", "podSpec"}),
    "metadata": frozenset({"metadata"}),
}


def _is_metadata(value: Json) -> bool:
    """Whether it is labels and annotations of text, and nothing else."""
    if value is None:
        return True
    return (
        isinstance(value, dict)
        and value.keys() <= {"labels", "annotations"}
        and all([isinstance(entries, dict) for entries in value.values()])
        and all([type(v) is str for entries in value.values() for v in entries.values()])
    )


_EMPTY = task.TaskTemplate(
    None, "", task.TaskMetadata.from_flyte_idl(tasks_pb2.TaskMetadata()), None, None
)


def _without_open_parts(template: JsonMap) -> JsonMap:
    """A template without protobuf's Structs, which hold any JSON data, and without labels.

    It takes protobuf long to parse them, and labels are checked as Kubernetes checks them.
    """
    found = {key: value for key, value in template.items() if key != "custom"}
    for name in _OPEN_PARTS:
        if isinstance(part := found.get(name), dict):
            open_parts = _OPEN_PARTS[name]
            found[name] = {key: value for key, value in part.items() if key not in open_parts}
    return found


def _culprit(result: Result, fault: str) -> Step:
    """The first step after which the fault is there."""
    for _, step, after in result.versions():
        try:
            _check(result.before, after)
        except KubetailorError as error:
            if str(error) == fault:
                return step
    return result.roots[-1][0]
