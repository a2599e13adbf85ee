"""Tasks of an execution that its FlyteWorkflow does not hold, so that nobody sees them before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubetailor.plugins.execution.instances import Instances
from kubetailor.workloads import Draft, JsonMap

__all__ = ["elsewhere", "is_dynamic", "is_eager"]

_SERIALIZED_CONTEXT: Final = "_F_SS_C"
"""The variable that flytekit gives a task which makes others as it runs (tools/translator.py)."""


def is_eager(template: JsonMap) -> bool:
    """Whether a task launches executions of its own, which inherit no annotation of this one."""
    return Draft(template).get(("metadata", "isEager")) is True


def is_dynamic(template: JsonMap) -> bool:
    """Whether a task makes others as it runs, in the same execution."""
    return not is_eager(template) and _SERIALIZED_CONTEXT in _variables(template)


def _variables(template: JsonMap) -> Iterator[Any]:
    read = Draft(template).get
    containers = read(("k8sPod", "podSpec", "containers"))
    for container in [read(("container",)), *(containers if isinstance(containers, list) else ())]:
        env = container.get("env") if isinstance(container, dict) else None
        for entry in env if isinstance(env, list) else ():
            if isinstance(entry, dict):
                yield entry.get("key", entry.get("name"))


def elsewhere(instances: Instances, tasks: Any) -> list[str]:
    """Which nodes run tasks that are not known here, each with the reason.

    Args:
        instances: the nodes of the execution.
        tasks: its task templates by their keys.
    """
    found: list[str] = []
    for key, graph in instances.graphs.items():
        prefix = instances.first(key)
        for child in graph.children:
            name = child.launch_plan.get("name")
            found.append(f"node {prefix}{child.id} launches {name}")
        for node in graph.nodes:
            template = tasks.get(node.task) if isinstance(tasks, dict) else None
            if isinstance(template, dict) and is_dynamic(template):
                found.append(f"the task of node {prefix}{node.id} makes tasks as it runs")
    return found
