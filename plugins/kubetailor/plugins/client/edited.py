"""From what somebody changed in a document of nodes to the override that says the same.

The documents are those of `editable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubetailor.plugins.client.pod_words import POD_WORDS
from kubetailor.plugins.client.task_words import TASK_WORDS
from kubetailor.plugins.client.words import Place, Used, Word, as_map, changed
from kubetailor.registry import Override, OverrideError
from kubetailor.registry.source import Source, read_core
from kubetailor.workloads import JsonMap, same

__all__ = ["override_of_edit", "read_edited"]


def read_edited(text: str, file: str) -> JsonMap:
    """The document that was saved, read by the rules of a config, each word as it is typed.

    Args:
        text: what was saved.
        file: what to call it, for messages.

    Raises:
        ConfigError: it is no YAML, or no document of nodes.
    """
    data = Source(text.encode(errors="replace"), file).data
    found: JsonMap = {}
    for title, node in _nodes(data).items():
        pods = node.get("pods")
        found[title] = _typed(node, TASK_WORDS)
        if isinstance(pods, dict):
            found[title]["pods"] = {
                roles: _typed(pod, POD_WORDS) if isinstance(pod, dict) else read_core(pod)
                for roles, pod in pods.items()
            }
    return {**read_core(data), "nodes": found}


def _typed(said: JsonMap, words: Mapping[str, Word[...]]) -> JsonMap:
    return {
        name: words[name].typed(value) if name in words else read_core(value)
        for name, value in said.items()
    }


def override_of_edit(before: JsonMap, after: JsonMap, workflows: Mapping[str, str]) -> Override:
    """The override that makes one document the other.

    What is said of several nodes alike is one step.

    Args:
        before: the document as it was given out.
        after: the same with changes.
        workflows: of a node of a child execution, by its title, the name of the child's workflow.

    Raises:
        OverrideError: what was changed cannot be overridden.
    """
    for word in changed(before, after):
        if word != "nodes":
            raise OverrideError(f"`{word}` cannot be changed; what can be is in `nodes`")
    old, new = _nodes(before), _nodes(after)
    if old.keys() != new.keys():
        odd = ", ".join(sorted(old.keys() ^ new.keys()))
        raise OverrideError(f"{odd}: nodes cannot be added or taken away")
    found: list[tuple[str, Mapping[str, Any], JsonMap, list[str]]] = []
    for title in old:
        place = _place(title, workflows)
        for use, parameters, role in _steps(place, old[title], new[title]):
            when = {**place.when, **({"role": role} if role else {})}
            for step in found:
                if same([step[0], dict(step[1]), step[2]], [use, dict(parameters), when]):
                    step[3].append(place.node)
                    break
            else:
                found.append((use, parameters, when, [place.node]))
    override = Override()
    for use, parameters, when, nodes in found:
        picked = nodes[0] if len(nodes) == 1 else nodes
        override = override.step(use, **parameters).when({"node": picked, **when})
    return override


def _nodes(document: Any) -> JsonMap:
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, dict) or not all(isinstance(node, dict) for node in nodes.values()):
        raise OverrideError("expected a map `nodes`, and a map of each node")
    return nodes


def _place(title: str, workflows: Mapping[str, str]) -> Place:
    when: JsonMap = {"workflow": workflows[title]} if title in workflows else {}
    return Place(title, when, title.rpartition("/")[2])


def _steps(
    place: Place, old: JsonMap, new: JsonMap
) -> Iterator[tuple[str, Mapping[str, Any], list[str] | None]]:
    """(transformer, its parameters, roles) for each word that says something else."""
    of_task = [{word: said for word, said in node.items() if word != "pods"} for node in (old, new)]
    for used in _used(place, TASK_WORDS, *of_task, also=("pods",)):
        yield *used, None
    before, after = (as_map(place, "pods", node.get("pods")) for node in (old, new))
    if before.keys() != after.keys():
        raise place.fault("pods cannot be added or taken away")
    for roles, pod in before.items():
        picked = roles.split(", ") if len(before) > 1 else None
        wanted = as_map(place, roles, after[roles])
        for used in _used(place, POD_WORDS, pod, wanted, of=f" of pod {roles!r}"):
            yield *used, picked


def _used(
    place: Place,
    words: Mapping[str, Word[...]],
    old: JsonMap,
    new: JsonMap,
    *,
    of: str = "",
    also: Iterable[str] = (),
) -> Iterator[Used]:
    for word in changed(old, new):
        if word not in words:
            known = ", ".join((*words, *also))
            raise place.fault(f"`{word}`{of} cannot be changed; what can be: {known}")
        yield from words[word].write(place, word, old.get(word), new.get(word))
