"""What a node's own `with_overrides` says against the chain of its task.

FlytePropeller lays it over the task, so that it beats every step (flytepropeller,
pkg/compiler/transformers/k8s/node.go; flyteplugins, flytek8s/pod_helper.go and
container_helper.go).
"""

from __future__ import annotations

from collections.abc import Mapping

from kubetailor.plugins.flyte.node_metadata import FIELDS, words
from kubetailor.registry import Result
from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.step import Step
from kubetailor.workloads import CannotChangeError, Json, JsonMap, Workload, same_quantity
from kubetailor.workloads.task_template import GPU_ALIAS, TASK_TEMPLATE

__all__ = ["contradictions"]

_RESOURCES: Mapping[str, str] = {
    "CPU": "cpu",
    "EPHEMERAL_STORAGE": "ephemeral-storage",
    "GPU": "nvidia.com/gpu",
    "MEMORY": "memory",
}
_ACCELERATOR = "accelerator"
_IMAGE = "container_image"


def contradictions(
    overrides: JsonMap, own: Mapping[str, str], result: Result, catalogue: Catalogue
) -> list[str]:
    """A warning for each override of a node that stands against what a step wrote.

    Args:
        overrides: flyteidl.core.TaskNodeOverrides in JSON form.
        own: what the node's metadata says otherwise than the task's.
        result: the run over the node's task.
        catalogue: the accelerators.
    """
    said = {**_of_node(overrides), **own}
    if not said or not result.roots:
        return []
    last = _of_task(result.before, said)
    chosen: str | None = None
    writers: dict[str, Step] = {}
    for _, step, after in result.versions():
        now = _of_task(after, said)
        writers.update((name, step) for name in said if not _agree(name, last[name], now[name]))
        if step.transformer.options.accelerator:  # whether Flyte is told of its choice or not
            chosen, writers[_ACCELERATOR] = _choice(step, catalogue), step
        last = now
    made = {**last, _ACCELERATOR: last[_ACCELERATOR] or chosen}
    return [
        _warning(name, value, writers[name], made[name])
        for name, value in said.items()
        if name in writers and not _agree(name, value, made[name])
    ]


def _warning(name: str, value: str, step: Step, made: Json) -> str:
    place = f" ({step.mark})" if step.mark else ""
    did = "took it off" if made is None else f"wrote {made}"
    return (
        f"its with_overrides beats the chain: {name} is {value}, where step {step.name!r}{place} "
        f"{did}; only the phase launch can tailor one node"
    )


def _choice(step: Step, catalogue: Catalogue) -> str:
    """The device that a step chose, else the accelerator's own name, or what is known of it."""
    entry = catalogue.get(step.arguments.get("type", ""))
    if entry is None:  # a team's, which need not ask the catalogue
        return f"what {step.transformer.name} chooses"
    return " ".join(filter(None, (entry.device, entry.partition))) or entry.name


def _of_node(overrides: JsonMap) -> dict[str, str]:
    """Each thing that a node says, by its name."""
    found = {}
    if device := _device(overrides):
        found[_ACCELERATOR] = device
    for part, entries in (overrides.get("resources") or {}).items():
        for entry in entries:
            if (name := _RESOURCES.get(entry.get("name", ""))) is not None:
                found[f"{part} {name}"] = entry.get("value", "")
    if image := overrides.get("containerImage"):
        found[_IMAGE] = image
    return found


def _of_task(template: JsonMap, names: Mapping[str, str]) -> dict[str, Json]:
    """The same things of a task; None for what it does not say."""
    found: dict[str, Json] = dict.fromkeys(names)
    found[_ACCELERATOR] = _device(template)
    of_metadata = words(template.get("metadata") or {})
    found.update((name, of_metadata.get(name)) for name in FIELDS.intersection(names))
    pods = Workload(template, TASK_TEMPLATE).pods()
    try:
        container = pods[0].primary if pods else None
    except CannotChangeError:  # no step could tell it either
        container = None
    if container is not None:
        found[_IMAGE] = container.image
        for name in names:
            part, _, resource = name.partition(" ")
            there = (container.resources or {}).get(part) or {}
            if resource:
                found[name] = there.get(resource, there.get(GPU_ALIAS.get(resource)))
    return found


def _device(obj: JsonMap) -> str | None:
    entry = (obj.get("extendedResources") or {}).get("gpuAccelerator") or {}
    parts = [entry[key] for key in ("device", "partitionSize") if entry.get(key)]
    return " ".join(parts) or None


def _agree(name: str, one: Json, other: Json) -> bool:
    if one is None or other is None or " " not in name:
        return bool(one == other)
    return same_quantity(one, other)
