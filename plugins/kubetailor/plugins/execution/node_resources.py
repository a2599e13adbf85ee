"""The resources that a node states otherwise than its task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetailor.workloads import CannotChangeError, JsonMap, Workload, same
from kubetailor.workloads.container import Container
from kubetailor.workloads.draft import as_map
from kubetailor.workloads.task_template import GPU_ALIAS

__all__ = ["PARTS", "by_full_name", "primary_of", "resources_back"]

PARTS: Final = ("requests", "limits")


def resources_back(
    stated: Mapping[str, JsonMap],
    own: Container,
    was: Container,
    now: Container,
    mine: Container,
) -> dict[str, JsonMap]:
    """Give the author back what the chain left as it was: it stays on the node.

    Args:
        stated: the resources that the node states.
        own: the container as its author wrote it.
        was: the same with the node's resources.
        now: what the chain made of that.
        mine: where it is written.

    Returns:
        What the node states from now on.
    """
    found, changed = own.resources, set[tuple[str, str]]()
    for part in PARTS:
        old, new = by_full_name(was, part), by_full_name(now, part)
        for name in {**old, **new}:
            if same(old.get(name), new.get(name)):
                continue
            changed.add((part, name))
            values = found[part] = as_map(found.get(part))
            values.pop(GPU_ALIAS.get(name, ""), None)
            values.pop(name, None)
            if name in new:
                values[name] = new[name]
    for name, alias in GPU_ALIAS.items():  # one name in both parts, as the chain writes it
        if any((part, name) in changed for part in PARTS):
            for values in map(as_map, found.values()):
                if alias in values:
                    values[name] = values.pop(alias)
    for part in PARTS:
        if part in found and not found[part] and part not in own.resources:
            del found[part]
    if not same(found, now.resources):
        if not found and "resources" not in own.edit():
            mine.set_field("resources", None)
        else:
            entries = mine.edit("resources")
            entries.clear()
            entries.update(found)
    kept = {
        part: {name: value for name, value in values.items() if (part, name) not in changed}
        for part, values in stated.items()
    }
    return kept


def primary_of(workload: Workload) -> Container | None:
    """The container that resources and image are for."""
    pods = workload.pods()
    try:
        return pods[0].primary if pods else None
    except CannotChangeError:
        return None


def by_full_name(container: Container, part: str) -> JsonMap:
    """Requests or limits of a container by their full names."""
    full = {alias: name for name, alias in GPU_ALIAS.items()}
    return {full.get(n, n): value for n, value in as_map(container.resources.get(part)).items()}
