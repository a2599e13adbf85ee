"""The graphs of an execution as they come out: one for all uses of a subworkflow that are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubetailor.plugins.execution.instances import Instances
from kubetailor.plugins.execution.nodes import Graph, Node
from kubetailor.plugins.execution.tailored_node import Made, write_node
from kubetailor.plugins.execution.templates import free_key
from kubetailor.workloads import Draft, JsonMap, Path

__all__ = ["GraphWriter"]


class GraphWriter:
    """Writes what became of the nodes of an execution."""

    def __init__(
        self,
        draft: Draft,
        instances: Instances,
        made: Callable[[Node, str], Made | None],
        told_apart: Iterable[str],
    ) -> None:
        """Write nothing yet.

        Args:
            draft: the FlyteWorkflow.
            instances: its nodes.
            made: what became of a node in the use of this prefix.
            told_apart: the graphs with nodes of which the uses are told apart.
        """
        self._draft = draft
        self._instances = instances
        self._made = made
        self._varying = instances.leading_to(told_apart)
        self._there: JsonMap = draft.root.get("subWorkflows") or {}
        self._keys: dict[str, dict[object, str]] = {}  # graph -> what its uses say -> their keys

    def write(self) -> None:
        """Write every graph, and a copy of those of which uses come out different."""
        for key in self._instances.graphs:
            if key not in self._varying or key in self._instances.roots:
                self._write(key, self._instances.first(key))

    def _write(self, key: str, prefix: str) -> str:
        """Write what one use of a graph says; returns the key under which that is."""
        graph = self._instances.graphs[key]
        inner = tuple(
            self._write(use.graph, f"{prefix}{use.id}.")
            if use.graph in self._varying
            else use.graph
            for use in graph.uses
        )
        made = [(node, self._made(node, prefix)) for node in graph.nodes]
        said = (tuple(each and each.said for _, each in made), inner)
        keys = self._keys.setdefault(key, {})
        if said in keys:
            return keys[said]
        own = keys[said] = free_key(key, len(keys), self._there)
        base = graph.path
        if own != key:
            base = ("subWorkflows", own)
            self._draft.put(base, self._there[key])
        for node, each in made:
            if each is not None:
                self._write_node(node._replace(path=_moved(node.path, graph, base)), each)
        for use, ref in zip(graph.uses, inner, strict=True):
            if ref != use.graph:
                path = _moved(use.path, graph, base)
                self._draft.put((*path, "workflow", "subWorkflowRef"), ref)
        return own

    def _write_node(self, node: Node, made: Made) -> None:
        if made.key != node.task:
            self._draft.put((*node.path, "task"), made.key)
        write_node(self._draft, node, made.tailored, made.after)


def _moved(path: Path, graph: Graph, base: Path) -> Path:
    """A path of a graph in a copy of it."""
    return (*base, *path[len(graph.path) :])
