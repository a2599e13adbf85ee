"""Each use of a graph: a subworkflow that two nodes run is there twice, with nodes of two ids.

A nested id is the path of ids that leads to a node: ``n1.n0`` is the node `n0` of the subworkflow
that the node `n1` runs. How many there are may grow as two to the depth, so that they are counted
before they are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kubetailor.plugins.execution.nodes import MAIN, Graph, Use, graphs_of
from kubetailor.workloads import JsonMap

__all__ = ["MOST", "Instances"]

MOST: Final = 10_000
"""As many uses of nodes are told apart; to tailor each takes about as long as a webhook has."""


class Instances:
    """The uses of each graph of an execution.

    Attributes:
        graphs: the graphs by their keys, the workflow's own first. One that would run itself,
            which Flyte's compiler refuses, does not.
    """

    def __init__(self, obj: JsonMap) -> None:
        found = graphs_of(obj)
        self._order: dict[str, Graph] = _users_first(found)
        self.graphs: dict[str, Graph] = {key: self._order[key] for key in found}
        self._users: dict[str, list[tuple[str, Use]]] = {key: [] for key in found}
        for key, graph in self.graphs.items():
            for use in graph.uses:
                self._users[use.graph].append((key, use))
        self._counts: dict[str, int] = {}
        self._prefixes: dict[str, tuple[str, ...]] = {}
        for key in self._order:
            self._counts[key] = sum(self._counts[user] for user, _ in self._users[key]) or 1

    @property
    def roots(self) -> list[str]:
        """The graphs that no node uses: the workflow itself, and what is there for nothing."""
        return [key for key, users in self._users.items() if not users]

    def count(self, graph: str) -> int:
        """How often a graph is used."""
        return self._counts[graph]

    def first(self, graph: str) -> str:
        """The prefix of the ids in the first use of a graph."""
        prefix = ""
        while users := self._users[graph]:
            graph, use = users[0]
            prefix = f"{use.id}.{prefix}"
        return prefix

    def all(self, graph: str) -> tuple[str, ...]:
        """The prefixes of the ids in each use of a graph, its first use first."""
        found = self._prefixes.get(graph)
        if found is None:
            users = self._users[graph]
            found = tuple(
                f"{prefix}{use.id}." for user, use in users for prefix in self.all(user)
            ) or ("",)
            self._prefixes[graph] = found
        return found

    def some(self, graph: str) -> tuple[str, ...]:
        """As `all`, but the first alone where there are more than can be told apart."""
        return self.all(graph) if self.count(graph) <= MOST else (self.first(graph),)

    def leading_to(self, graphs: Iterable[str]) -> set[str]:
        """Some graphs, and those that run them at any depth."""
        found = set(graphs)
        for key in reversed(self._order):
            if any(use.graph in found for use in self.graphs[key].uses):
                found.add(key)
        return found


def _users_first(graphs: Mapping[str, Graph]) -> dict[str, Graph]:
    """The graphs, each after all that use it; a use that leads back is left out."""
    done: dict[str, Graph] = {}
    open_: set[str] = set()

    def visit(key: str) -> None:
        open_.add(key)
        kept = []
        for use in graphs[key].uses:
            if use.graph not in graphs or use.graph in open_ or use.graph == MAIN:
                continue
            kept.append(use)
            if use.graph not in done:
                visit(use.graph)
        open_.discard(key)
        done[key] = replace(graphs[key], uses=tuple(kept))

    for key in graphs:
        if key not in done:
            visit(key)
    return dict(reversed(done.items()))
