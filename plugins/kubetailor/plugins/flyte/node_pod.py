"""The pod template that a node gives its task, in the place of the task's own."""

from __future__ import annotations

from typing import Final

from kubetailor.plugins.flyte.undo import UNDO
from kubetailor.workloads import JsonMap, Path

__all__ = ["POD_PLACE", "with_pod"]

POD_PLACE: Final[Path] = ("metadata", "annotations", UNDO)
"""Where a node's pod template keeps its way back: it has no `config`."""


def with_pod(task: JsonMap, pod: JsonMap) -> JsonMap:
    """A task template with a node's pod in the place of its own target.

    Args:
        task: the template.
        pod: flyteidl.core.K8sPod in JSON form.
    """
    own: JsonMap = task.get("k8sPod") or {}
    target = task.get("container") or own
    metadata: JsonMap = {**(own.get("metadata") or {})}
    for name, values in (pod.get("metadata") or {}).items():
        metadata[name] = {**(metadata.get(name) or {}), **values}
    found = {key: value for key, value in task.items() if key != "container"}
    found["k8sPod"] = {"metadata": metadata, "podSpec": pod.get("podSpec") or {}}
    if "dataConfig" in target:
        found["k8sPod"]["dataConfig"] = target["dataConfig"]
    if primary := pod.get("primaryContainerName"):
        found["config"] = {**(task.get("config") or {}), "primary_container_name": primary}
    return found
