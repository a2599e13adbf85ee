"""Where FlytePropeller reads what a task template says, once an execution is compiled.

flytepropeller, pkg/apis/flyteworkflow/v1alpha1/nodes.go and pkg/compiler/transformers/k8s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

from kubetailor.plugins.execution.nodes import Node
from kubetailor.workloads import Draft, Json, JsonMap
from kubetailor.workloads.duration import duration_text, parse_duration

__all__ = ["compiled_fields", "follow", "own_metadata"]

T = TypeVar("T")


def follow(draft: Draft, node: Node, before: JsonMap, after: JsonMap) -> None:
    """Change what was compiled into a node with what it was compiled from.

    What the node says otherwise than the task did is its own, and stays.

    Args:
        draft: the FlyteWorkflow.
        node: the node.
        before: the template that the node was compiled with.
        after: the template as the chain made it.
    """
    if before is after:
        return
    for field, told, compiled, written in _COMPILED:
        old, new = told(before), told(after)
        own = compiled(node.spec.get(field))
        if old == new or own not in (None, old):
            continue
        path = (*node.path, field)
        if (value := written(new)) is None:
            draft.drop(path)
        else:
            draft.put(path, value)


def own_metadata(spec: JsonMap, template: JsonMap) -> JsonMap:
    """What a node says of itself otherwise than its task did, as a task's `metadata` says it.

    Args:
        spec: the node.
        template: the template that it was compiled with.
    """
    found: JsonMap = {}
    for field, told, compiled, _ in _COMPILED:
        own = compiled(spec.get(field))
        if field in _METADATA and own not in (None, told(template)):
            name, write = _METADATA[field]
            found[name] = write(own)
    return found


def compiled_fields(field: str, template: JsonMap) -> JsonMap:
    """The fields of a node that are compiled from a field of a task's `metadata`.

    Args:
        field: the field of the metadata.
        template: the template.

    Returns:
        Fields of the node -> values; None for one that is not there.
    """
    of_node = {name: own for own, (name, _) in _METADATA.items()}
    fields = (of_node[field], *(_DEADLINES if field == "timeout" else ()))
    return {name: written(told(template)) for name, told, _, written in _COMPILED if name in fields}


def _metadata(template: JsonMap, field: str, kind: type[T]) -> T | None:
    found = Draft(template).get(("metadata", field))
    return found if isinstance(found, kind) else None


def _attempts(template: JsonMap) -> int:
    retries = (_metadata(template, "retries", dict) or {}).get("retries")
    return (retries if isinstance(retries, int) else 0) + 1


def _min_attempts(retry: Any) -> int:
    found = retry.get("minAttempts") if isinstance(retry, dict) else None
    return found if isinstance(found, int) and found > 0 else 1


def _timeout(template: JsonMap) -> Decimal | None:
    return _seconds(_metadata(template, "timeout", str))


def _seconds(duration: Any) -> Decimal | None:
    """The seconds of a duration; none at all, and 0, are None."""
    return parse_duration(duration) or None


def _duration(seconds: Decimal | None) -> str | None:
    return None if seconds is None else f"{seconds.normalize():f}s"


def _twice(template: JsonMap) -> Decimal | None:
    seconds = _timeout(template)
    return None if seconds is None else 2 * seconds


_COMPILED: Final[
    tuple[
        tuple[str, Callable[[JsonMap], Any], Callable[[Any], Any], Callable[[Any], Json]],
        ...,
    ]
] = (
    (
        "retry",
        _attempts,
        _min_attempts,
        lambda attempts: {"minAttempts": attempts} if attempts > 1 else None,
    ),
    ("executionDeadline", _timeout, _seconds, _duration),
    ("activeDeadline", _twice, _seconds, _duration),
    (
        "interruptible",
        lambda template: _metadata(template, "interruptible", bool),
        lambda own: own if isinstance(own, bool) else None,
        lambda value: value,
    ),
)
"""Field of a node, what the task says of it, what the node does, and how it is written there.

Sources: compiler/transformers/k8s/utils.go, `computeRetryStrategy`; node.go, `activeDeadline`. That
a node's deadline and its being interruptible are the task's is flytekit's doing
(core/base_task.py, `construct_node_metadata`); FlytePropeller reads neither from the task. The
cache is in no node: it is read from the template (controller/nodes/task/cache.go).
"""

_DEADLINES: Final = ("activeDeadline",)
"""What goes with `executionDeadline`."""

_METADATA: Final[Mapping[str, tuple[str, Callable[[Any], Json]]]] = {
    "retry": ("retries", lambda attempts: {"retries": attempts - 1} if attempts > 1 else {}),
    "executionDeadline": ("timeout", duration_text),
    "interruptible": ("interruptible", lambda value: value),
}
"""Field of a node -> field of a task's `metadata`, and how that is written there."""
