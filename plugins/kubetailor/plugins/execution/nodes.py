"""The graphs of an execution, and what their nodes run.

The workflow itself is one graph, and each subworkflow is one, however many nodes use it. What a
branch may run is in the graph of the branch. Sources: flytepropeller,
pkg/apis/flyteworkflow/v1alpha1/nodes.go and subworkflow.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kubetailor.workloads import Draft, JsonMap, Path

__all__ = ["MAIN", "Child", "Graph", "Node", "Use", "graphs_of"]

MAIN: Final = ""
"""What stands for the graph of the workflow itself; each other one has its key."""


class Node(NamedTuple):
    """A node that runs a task.

    Attributes:
        id: its id in its graph; of a map task, the map's.
        path: where it is in the FlyteWorkflow.
        task: the key of its template.
        spec: what the FlyteWorkflow says of it.
    """

    id: str
    path: Path
    task: str
    spec: JsonMap


class Use(NamedTuple):
    """A node that runs a subworkflow.

    Attributes:
        id: its id in its graph.
        path: where it is in the FlyteWorkflow.
        graph: the key of the subworkflow.
    """

    id: str
    path: Path
    graph: str


class Child(NamedTuple):
    """A node that launches another execution.

    Attributes:
        id: its id in its graph; of a map, the map's.
        launch_plan: flyteidl.core.Identifier in JSON form.
    """

    id: str
    launch_plan: JsonMap


@dataclass(frozen=True)
class Graph:
    """A workflow of an execution.

    Attributes:
        key: its key in `subWorkflows`, or MAIN.
        path: where it is in the FlyteWorkflow.
        nodes: its nodes that run tasks.
        uses: its nodes that run subworkflows.
        children: its nodes that launch other executions.
    """

    key: str
    path: Path
    nodes: tuple[Node, ...] = ()
    uses: tuple[Use, ...] = ()
    children: tuple[Child, ...] = ()


def graphs_of(obj: JsonMap) -> dict[str, Graph]:
    """The graphs of an execution by their keys, its own first.

    Args:
        obj: the FlyteWorkflow.
    """
    found = obj.get("subWorkflows")
    subworkflows = found if isinstance(found, dict) else {}
    paths: dict[str, Path] = {MAIN: ("spec",)}
    paths.update({key: ("subWorkflows", key) for key in subworkflows if key != MAIN})
    return {key: _graph(obj, key, path) for key, path in paths.items()}


def _graph(obj: JsonMap, key: str, path: Path) -> Graph:
    read = Draft(obj).get
    nodes = read((*path, "nodes"))
    found: list[Node | Use | Child] = []
    for name, spec in nodes.items() if isinstance(nodes, dict) else ():
        found += _of(spec, (*path, "nodes", name), str(name))
    found += _of(read((*path, "onFailure")), (*path, "onFailure"), "")
    return Graph(
        key,
        path,
        tuple(each for each in found if isinstance(each, Node)),
        tuple(each for each in found if isinstance(each, Use)),
        tuple(each for each in found if isinstance(each, Child)),
    )


def _of(spec: Any, path: Path, node: str) -> Iterator[Node | Use | Child]:
    if not isinstance(spec, dict):
        return
    name = node or str(spec.get("id", ""))
    if isinstance(task := spec.get("task"), str):
        yield Node(name, path, task, spec)
    workflow, array = spec.get("workflow"), spec.get("array")
    if isinstance(workflow, dict):
        if isinstance(key := workflow.get("subWorkflowRef"), str):
            yield Use(name, path, key)
        if isinstance(plan := workflow.get("launchPlanRefId"), dict):
            yield Child(name, plan)
    if isinstance(array, dict):
        yield from _of(array.get("SubNodeSpec"), (*path, "array", "SubNodeSpec"), name)
