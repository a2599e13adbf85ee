"""What each step changed: old value, new value, step, plugin, and its place in the config."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kubetailor.registry.step import Step
from kubetailor.workloads import Json, JsonMap, Path, diff
from kubetailor.workloads.draft import segment
from kubetailor.workloads.task_target import as_pod_task

__all__ = ["Change", "changes", "readable"]


class Change(NamedTuple):
    """One changed field.

    Attributes:
        field: its path, list entries by name where they have one.
        op: ``add``, ``remove`` or ``replace``.
        old: the value before, None for an addition.
        new: the value after, None for a removal.
        step: the step's name.
        layer: ``defaults``, ``steps``, ``override`` or ``enforce``.
        transformer: the transformer's name.
        plugin: its plugin.
        place: ``file:line:column`` of the step, or ``""``.
    """

    field: str
    op: str
    old: Json
    new: Json
    step: str
    layer: str
    transformer: str
    plugin: str
    place: str

    def as_json(self) -> JsonMap:
        """The change as JSON data."""
        return self._asdict()


def changes(versions: Iterable[tuple[JsonMap, Step, JsonMap]]) -> Iterator[Change]:
    """Every changed field of some steps, in their order.

    Args:
        versions: (before, step, after) of each step.
    """
    for before, step, after in versions:
        old = as_pod_task(before, after)
        place = str(step.mark) if step.mark else ""
        for op, path, was, now in diff(old, after):
            yield Change(
                field=readable(path, after, was if op == "remove" else now),
                op=op,
                old=was,
                new=now,
                step=step.name,
                layer=step.layer,
                transformer=step.transformer.name,
                plugin=step.transformer.plugin,
                place=place,
            )


def readable(path: Path, root: Json, entry: Json) -> str:
    """A path with the names of list entries: ``spec.containers[main].env[DEBUG]``.

    Args:
        path: the path of an operation of a diff.
        root: the version after it.
        entry: what the operation adds, removes or writes.
    """
    parts: list[str] = []
    node = root
    for depth, key in enumerate(path, start=1):
        child: Any = None
        if depth == len(path):
            child = entry
        elif isinstance(node, dict):
            child = node.get(str(key))
        elif isinstance(node, list) and isinstance(key, int) and key < len(node):
            child = node[key]
        name = child.get("name") if isinstance(key, int) and isinstance(child, dict) else None
        parts.append(f"[{name}]" if isinstance(name, str) else segment(key))
        node = child
    return "".join(parts).removeprefix(".")
