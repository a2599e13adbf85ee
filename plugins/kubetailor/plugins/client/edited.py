"""From what somebody changed in a document of nodes to the override that says the same.

The documents are those of `editable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubetailor.registry import Override, OverrideError
from kubetailor.registry.source import Source, read_core
from kubetailor.registry.source import text as text_of
from kubetailor.workloads import Json, JsonMap, same

__all__ = ["override_of_edit"]

With = Mapping[str, Any]
"""The parameters of a step."""


@dataclass(frozen=True)
class _Place:
    """What a change is for.

    Attributes:
        where: the node, for messages.
        when: what picks it in an override.
        node: its node, as `when` names it.
    """

    where: str
    when: JsonMap
    node: str

    def fault(self, message: str) -> OverrideError:
        return OverrideError(f"node {self.where}: {message}")


def read_edited(text: str, file: str) -> JsonMap:
    """The document that was saved, read by the rules of a config.

    Where Kubernetes has strings, a plain scalar is the text that was written: `no` and `0755` too.

    Args:
        text: what was saved.
        file: what to call it, for messages.

    Raises:
        ConfigError: it is no YAML, or no document of nodes.
    """
    data = Source(text.encode(errors="replace"), file).data
    nodes = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(nodes, dict):
        raise OverrideError("expected a map `nodes`, and a map of each node")
    return {**_typed(data), "nodes": {title: _typed(node) for title, node in nodes.items()}}


def _typed(value: Any, word: str = "") -> Any:
    if isinstance(value, dict):
        return {
            key: text_of(item)
            if isinstance(item, str) and (word in _STRINGS or key in _STRING)
            else _typed(item, key)
            for key, item in value.items()
        }
    return [_typed(item, word) for item in value] if isinstance(value, list) else read_core(value)


_STRINGS: Final = frozenset({"labels", "annotations", "env", "node_selector", "spark_conf"})
"""Words that are maps of strings."""

_STRING: Final = frozenset({"key", "value"})
"""What is a string in tolerations."""


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
    for word in _changed(before, after):
        if word != "nodes":
            raise OverrideError(f"`{word}` cannot be changed; what can be is in `nodes`")
    old, new = _nodes(before), _nodes(after)
    if old.keys() != new.keys():
        odd = ", ".join(sorted(old.keys() ^ new.keys()))
        raise OverrideError(f"{odd}: nodes cannot be added or taken away")
    found: list[tuple[str, With, JsonMap, list[str]]] = []
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


def _nodes(document: JsonMap) -> JsonMap:
    nodes = document.get("nodes")
    if not isinstance(nodes, dict) or not all(isinstance(node, dict) for node in nodes.values()):
        raise OverrideError("expected a map `nodes`, and a map of each node")
    return nodes


def _place(title: str, workflows: Mapping[str, str]) -> _Place:
    when: JsonMap = {"workflow": workflows[title]} if title in workflows else {}
    return _Place(title, when, title.rpartition("/")[2])


def _steps(
    place: _Place, old: JsonMap, new: JsonMap
) -> Iterator[tuple[str, With, list[str] | None]]:
    """(transformer, its parameters, roles) for each word that says something else."""
    for word in _changed(old, new):
        if word == "pods":
            yield from _of_pods(place, *(_map(place, word, node.get(word)) for node in (old, new)))
        elif word in _OF_TASK:
            for use, parameters in _OF_TASK[word](place, word, old.get(word), new.get(word)):
                yield use, parameters, None
        else:
            raise place.fault(f"`{word}` cannot be changed; what can be: {_words(_OF_TASK)}, pods")


def _of_pods(
    place: _Place, old: JsonMap, new: JsonMap
) -> Iterator[tuple[str, With, list[str] | None]]:
    if old.keys() != new.keys():
        raise place.fault("pods cannot be added or taken away")
    for roles, before in old.items():
        picked = roles.split(", ") if len(old) > 1 else None
        after = _map(place, roles, new[roles])
        for word in _changed(before, after):
            if word not in _OF_POD:
                raise place.fault(
                    f"`{word}` of pod {roles!r} cannot be changed; what can be: {_words(_OF_POD)}"
                )
            for use, parameters in _OF_POD[word](place, word, before.get(word), after.get(word)):
                yield use, parameters, picked


def _changed(old: JsonMap, new: JsonMap) -> list[str]:
    return [word for word in {**old, **new} if not same(old.get(word), new.get(word))]


def _map(place: _Place, word: str, value: Json) -> JsonMap:
    if value is not None and not isinstance(value, dict):
        raise place.fault(f"`{word}`: expected a map, found {value!r}")
    return value or {}


def _maps(place: _Place, word: str, old: Json, new: Json) -> tuple[JsonMap, JsonMap, list[str]]:
    """A word that is a map, before and after, and the keys that say something else."""
    before, after = _map(place, word, old), _map(place, word, new)
    return before, after, _changed(before, after)


def _words(table: Mapping[str, object]) -> str:
    return ", ".join(table)


# what each word says -----------------------------------------------------------------------------

Say = Callable[[_Place, str, Json, Json], Iterator[tuple[str, With]]]


def _value(parameter: str, *, may_go: bool = False) -> Say:
    """A word that is one parameter of the transformer of its name."""

    def say(place: _Place, word: str, _: Json, new: Json) -> Iterator[tuple[str, With]]:
        if new is None and not may_go:
            raise place.fault(f"`{word}` cannot be taken away")
        yield word, {parameter: new}

    return say


def _parameters(place: _Place, word: str, old: Json, new: Json) -> Iterator[tuple[str, With]]:
    """A word that is all parameters of its transformer; what is left out is null."""
    _, after, changed = _maps(place, word, old, new)
    yield word, {key: after.get(key) for key in changed}


def _entries(place: _Place, word: str, old: Json, new: Json) -> Iterator[tuple[str, With]]:
    """A map, of which a transformer sets and removes entries."""
    _, after, changed = _maps(place, word, old, new)
    said = {
        "set": {key: after[key] for key in changed if key in after},
        "remove": [key for key in changed if key not in after],
    }
    yield word, {name: value for name, value in said.items() if value}


def _resources(place: _Place, word: str, old: Json, new: Json) -> Iterator[tuple[str, With]]:
    before, after, parts = _maps(place, word, old, new)
    said: JsonMap = {}
    for part in parts:
        _, wanted, changed = _maps(place, part, before.get(part), after.get(part))
        said[part] = {name: wanted.get(name) for name in changed}
    yield word, said


def _tolerations(place: _Place, word: str, old: Json, new: Json) -> Iterator[tuple[str, With]]:
    before, after = old or [], new or []
    if not isinstance(before, list) or not isinstance(after, list):
        raise place.fault(f"`{word}`: expected a list, found {after!r}")
    said = {
        "add": [entry for entry in after if entry not in before],
        "remove": [
            {key: value for key, value in entry.items() if key != "tolerationSeconds"}
            for entry in before
            if entry not in after
        ],
    }
    yield word, {name: value for name, value in said.items() if value}


def _gpu(place: _Place, word: str, old: Json, new: Json) -> Iterator[tuple[str, With]]:
    _, after, changed = _maps(place, word, old, new)
    if odd := [key for key in changed if key not in ("type", "count")]:
        raise place.fault(f"`gpu`: {', '.join(odd)} is for reading: change `type` and `count`")
    if not after.get("type"):
        raise place.fault("`gpu` needs a `type`: see `kubetailor accelerators`")
    yield word, {"type": after["type"], **{key: after.get(key) for key in changed}}


def _replicas(place: _Place, word: str, old: Json, new: Json) -> Iterator[tuple[str, With]]:
    before, after, changed = _maps(place, word, old, new)
    for role in changed:
        if role not in before or role not in after:
            raise place.fault(f"`replicas`: role {role!r} cannot be added or taken away")
        yield "task_config", {"replicas": after[role], "role": role}


def _task_config(place: _Place, word: str, old: Json, new: Json) -> Iterator[tuple[str, With]]:
    before, after, _ = _maps(place, word, old, new)
    yield word, {"set": _merge_patch(before, after)}


def _merge_patch(old: JsonMap, new: JsonMap) -> JsonMap:
    """RFC 7386: what changed; null for what goes."""
    found: JsonMap = {}
    for key in _changed(old, new):
        one, other = old.get(key), new.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            other = _merge_patch(one, other)
        found[key] = other
    return found


_OF_TASK: Final[Mapping[str, Say]] = {
    "cache": _parameters,
    "retries": _value("retries"),
    "timeout": _value("timeout", may_go=True),
    "interruptible": _value("interruptible", may_go=True),
    "labels": _entries,
    "annotations": _entries,
    "replicas": _replicas,
    "spark_conf": _entries,
    "task_config": _task_config,
}
_OF_POD: Final[Mapping[str, Say]] = {
    "gpu": _gpu,
    "resources": _resources,
    "image": _value("image"),
    "env": _entries,
    "node_selector": _entries,
    "tolerations": _tolerations,
    "priority_class": _value("name"),
}
