"""Where FlytePropeller reads what a task template says, once an execution is compiled.

flytepropeller, pkg/apis/flyteworkflow/v1alpha1/nodes.go and pkg/compiler/transformers/k8s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubetailor.workloads import Draft, JsonMap, Kind, Path, Workload
from kubetailor.workloads.quantity import is_extended_resource

__all__ = ["Node", "follow", "task_nodes"]


class Node(NamedTuple):
    """A node that runs a task.

    Attributes:
        id: its id in the workflow; of a map task, the map's.
        path: where it is in the FlyteWorkflow.
        task: the key of its template.
        has_pod_template: it has a pod of its own, which takes the place of the task's.
    """

    id: str
    path: Path
    task: str
    has_pod_template: bool


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
        yield Node(name, path, task, bool(spec.get("podTemplate")))
    array = spec.get("array")
    if isinstance(array, dict):
        yield from _of(array.get("SubNodeSpec"), (*path, "array", "SubNodeSpec"), name)


def follow(draft: Draft, node: Node, before: JsonMap, after: JsonMap, kind: Kind) -> None:
    """Change what was compiled into a node with what it was compiled from.

    Args:
        draft: the FlyteWorkflow.
        node: the node.
        before: the template that the node was compiled with.
        after: the template as the chain made it.
        kind: the row of task templates.
    """
    if before is after:
        return
    _follow_retries(draft, node, before, after)
    _follow_resources(draft, node, before, after, kind)


def _follow_retries(draft: Draft, node: Node, before: JsonMap, after: JsonMap) -> None:
    """`retry.minAttempts` is the task's retries and one, unless the node has its own.

    Source: compiler/transformers/k8s/utils.go, computeRetryStrategy.
    """
    old, new = _retries(before), _retries(after)
    path = (*node.path, "retry")
    if old == new or draft.get((*path, "minAttempts")) != (old + 1 if old else None):
        return
    if new:
        draft.put(path, {"minAttempts": new + 1})
    else:
        draft.drop(path)


def _retries(template: JsonMap) -> int:
    found = Draft(template).get(("metadata", "retries", "retries"))
    return found if isinstance(found, int) else 0


def _follow_resources(
    draft: Draft, node: Node, before: JsonMap, after: JsonMap, kind: Kind
) -> None:
    """A node's own number of GPUs is of the resource that the task asks for now."""
    own = {
        name
        for part in ("requests", "limits")
        for name in draft.get((*node.path, "resources", part)) or ()
    }
    if not own:
        return
    old, new = _devices(before, kind), _devices(after, kind)
    gone, come = (old - new) & own, new - old
    if len(gone) != 1 or len(come) != 1:
        return
    (was,), (now,) = gone, come
    for part in ("requests", "limits"):
        path = (*node.path, "resources", part)
        if was in (draft.get(path) or ()):
            entries = draft.edit(path)
            entries[now] = entries.pop(was)


def _devices(template: JsonMap, kind: Kind) -> set[str]:
    """The extended resources that a template asks for, by their full names."""
    workload = Workload(template, kind)
    full: dict[str, str] = {alias: name for name, alias in workload.resource_aliases.items()}
    names = {
        full.get(name, name)
        for pod in workload.pods()
        for container in pod.containers
        for part in ("requests", "limits")
        for name in map(str, container.resources.get(part) or ())
    }
    return {name for name in names if is_extended_resource(name)}
