"""One node of an execution, after the chain ran over its task there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from kubetailor.plugins.execution.node_fields import follow
from kubetailor.plugins.execution.nodes import Node
from kubetailor.plugins.execution.pairs import Pair
from kubetailor.workloads import Draft, JsonMap

__all__ = ["Made", "NodeError", "TailoredNode", "write_node"]


class NodeError(Exception):
    """A task at a node cannot be tailored.

    Attributes:
        what: which task at which node, for messages.
        template: the task template.
        error: what was raised.
    """

    def __init__(self, what: str, template: JsonMap, error: Exception) -> None:
        super().__init__(f"{what}{error}")
        self.what: str = what
        self.template: JsonMap = template
        self.error: Exception = error


@dataclass(frozen=True)
class TailoredNode:
    """A node that runs a task, in one use of its graph.

    Attributes:
        id: its nested id, such as ``n1.n0``.
        node: the node.
        template: the task template that came in.
        pair: what became of the two.
        deferred: what waits for which phase, and why; None if nothing does.
        warnings: what there is to say of it.
    """

    id: str
    node: Node
    template: JsonMap
    pair: Pair
    deferred: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def spec(self) -> JsonMap:
        """What the FlyteWorkflow will say of the node, but for the key of its task."""
        draft = Draft({"node": self.node.spec})
        write_node(draft, self.node._replace(path=("node",)), self, self.pair.template)
        found: JsonMap = draft.root["node"]
        return found


class Made(NamedTuple):
    """What is written of a node.

    Attributes:
        key: the key of its task's template.
        after: that template.
        tailored: what became of the node.
    """

    key: str
    after: JsonMap
    tailored: TailoredNode

    @property
    def said(self) -> tuple[str, str]:
        """What is written of it, to be compared."""
        spec = self.tailored.pair.spec
        return self.key, json.dumps(spec, sort_keys=True) if spec else ""


def write_node(draft: Draft, node: Node, tailored: TailoredNode, after: JsonMap) -> None:
    """Write what a node says of itself, but for the key of its task.

    Args:
        draft: the FlyteWorkflow.
        node: the node, at its place there.
        tailored: what became of it.
        after: the template of its task, as it is written.
    """
    for name, value in tailored.pair.spec.items():
        if value is None:
            draft.drop((*node.path, name))
        else:
            draft.put((*node.path, name), value)
    follow(draft, node, tailored.template, after)
