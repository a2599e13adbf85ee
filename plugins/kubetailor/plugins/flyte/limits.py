"""What no step can change of a task, in a package as in flytekit: both are refused the same."""

from __future__ import annotations

import copy

from flyteidl.core import tasks_pb2
from flytekit.models import task

from kubetailor.plugins.flyte.messages import write_message
from kubetailor.plugins.flyte.write_models import write_model
from kubetailor.registry import Result, StepError
from kubetailor.registry.step import Step
from kubetailor.workloads import JsonMap, KubetailorError, Workload
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
    old, new = _without_open_parts(before), _without_open_parts(after)
    write_message(tasks_pb2.TaskTemplate(), old, new)
    write_model(copy.copy(_EMPTY), before, after)


_EMPTY = task.TaskTemplate(
    None, "", task.TaskMetadata.from_flyte_idl(tasks_pb2.TaskMetadata()), None, None
)


def _without_open_parts(template: JsonMap) -> JsonMap:
    """A template without protobuf's Structs, which hold any JSON data, and without labels.

    It takes protobuf long to parse them, and labels are checked as Kubernetes checks them.
    """
    found = {key: value for key, value in template.items() if key != "custom"}
    for name in ("k8sPod", "metadata"):
        if isinstance(part := found.get(name), dict):
            open_parts = ("metadata", "podSpec")
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
