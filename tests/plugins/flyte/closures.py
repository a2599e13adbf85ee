"""What FlyteAdmin's compiler makes of a registered workflow, as far as a client looks at it.

flytepropeller, pkg/compiler: validators/branch.go names what a branch runs after the branch, and
each graph gets a node that it starts and one that it ends with. tests/cluster/ has the compiler
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flyteidl.core import compiler_pb2, workflow_pb2

__all__ = ["closure_of"]


def closure_of(spec: Any, tasks: Mapping[tuple[str, str], Any]) -> Any:
    """The CompiledWorkflowClosure of a WorkflowSpec.

    Args:
        spec: the WorkflowSpec.
        tasks: CreateTask requests by (name, version).
    """
    graphs = [_compiled(each) for each in (spec.template, *spec.sub_workflows)]
    used = {
        (id_.name, id_.version): None
        for graph in graphs
        for node in _tasks([*graph.template.nodes, graph.template.failure_node])
        for id_ in [node.task_node.reference_id]
    }
    return compiler_pb2.CompiledWorkflowClosure(
        primary=graphs[0],
        sub_workflows=graphs[1:],
        tasks=[
            compiler_pb2.CompiledTask(template=tasks[key].spec.template)
            for key in used
            if key in tasks
        ],
    )


def _compiled(template: Any) -> Any:
    found = workflow_pb2.WorkflowTemplate()
    found.CopyFrom(template)
    del found.nodes[:]
    found.nodes.add(id="start-node")
    found.nodes.add(id="end-node", inputs=template.outputs)
    found.nodes.extend(_named(template.nodes))
    return compiler_pb2.CompiledWorkflow(template=found)


def _named(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        found = workflow_pb2.Node()
        found.CopyFrom(node)
        _name_branch(found)
        _bind(found)
        yield found


def _bind(node: Any) -> None:
    """Inputs of the workflow are outputs of the node that it starts with."""
    for binding in node.inputs:
        promise = binding.binding.promise
        if binding.binding.HasField("promise") and not promise.node_id:
            promise.node_id = "start-node"
    if node.WhichOneof("target") == "array_node":
        _bind(node.array_node.node)
    for inner in _branches(node):
        _bind(inner)


def _name_branch(node: Any) -> None:
    for inner in _branches(node):
        inner.id = f"{node.id}-{inner.id}"
        _name_branch(inner)


def _branches(node: Any) -> list[Any]:
    if node.WhichOneof("target") != "branch_node":
        return []
    if_else = node.branch_node.if_else
    found = [block.then_node for block in (if_else.case, *if_else.other)]
    return [*found, if_else.else_node] if if_else.HasField("else_node") else found


def _tasks(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        kind = node.WhichOneof("target")
        if kind == "task_node":
            yield node
        elif kind == "array_node":
            yield from _tasks([node.array_node.node])
        else:
            yield from _tasks(_branches(node))
