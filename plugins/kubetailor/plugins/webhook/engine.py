"""Where FlytePropeller reads what a task template says, once an execution is compiled.

flytepropeller, pkg/apis/flyteworkflow/v1alpha1/nodes.go and pkg/compiler/transformers/k8s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeVar

from kubetailor.workloads import Draft, Json, JsonMap, Path

__all__ = ["Node", "follow", "task_nodes"]

T = TypeVar("T")


class Node(NamedTuple):
    """A node that runs a task.

    Attributes:
        id: its id in the workflow; of a map task, the map's.
        path: where it is in the FlyteWorkflow.
        task: the key of its template.
        spec: what the FlyteWorkflow says of it.
    """

    id: str
    path: Path
    task: str
    spec: JsonMap


def task_nodes(obj: JsonMap) -> Iterator[Node]:
    """Every node of an execution that runs a task, in subworkflows and map tasks too."""
    read = Draft(obj).get
    graphs: list[Path] = [("spec",)]
    subworkflows = obj.get("subWorkflows")
    graphs += [
        ("subWorkflows", key) for key in (subworkflows if isinstance(subworkflows, dict) else ())
    ]
    for graph in graphs:
        nodes = read((*graph, "nodes"))
        for key, spec in nodes.items() if isinstance(nodes, dict) else ():
            yield from _of(spec, (*graph, "nodes", key), str(key))
        yield from _of(read((*graph, "onFailure")), (*graph, "onFailure"), "")


def _of(spec: Any, path: Path, node: str) -> Iterator[Node]:
    if not isinstance(spec, dict):
        return
    name = node or str(spec.get("id", ""))
    if isinstance(task := spec.get("task"), str):
        yield Node(name, path, task, spec)
    array = spec.get("array")
    if isinstance(array, dict):
        yield from _of(array.get("SubNodeSpec"), (*path, "array", "SubNodeSpec"), name)


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
    """A duration as Go or protobuf writes it, ``1h0m0s`` or ``3600s``; none at all is None."""
    if not isinstance(duration, str) or not _DURATION.fullmatch(duration):
        return None
    parts = _DURATION_PART.findall(duration)
    return sum((Decimal(number) * _UNITS[unit] for number, unit in parts), Decimal()) or None


def _duration(seconds: Decimal | None) -> str | None:
    return None if seconds is None else f"{seconds.normalize():f}s"


def _twice(template: JsonMap) -> Decimal | None:
    seconds = _timeout(template)
    return None if seconds is None else 2 * seconds


_UNITS: Final[Mapping[str, Decimal]] = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
}
_DURATION_PART: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?)(ns|us|µs|ms|s|m|h)")
_DURATION: Final = re.compile(f"(?:{_DURATION_PART.pattern})+")

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
(core/base_task.py, `construct_node_metadata`); FlytePropeller reads neither from the task.
"""
