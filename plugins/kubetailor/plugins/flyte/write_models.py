"""JSON data into flytekit's models, part by part.

Only parts that changed are written, into models of their own: flytekit may share what it has made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from flyteidl.core import security_pb2, tasks_pb2
from flytekit.models import security, task

from kubetailor.plugins.flyte.messages import as_json, parse
from kubetailor.workloads import CannotChangeError, JsonMap, same

__all__ = ["write_model", "write_pod_template"]

_RESOURCE_NUMBERS: Mapping[str, int] = dict(tasks_pb2.Resources.ResourceName.items())


def write_model(template: task.TaskTemplate, before: JsonMap, after: JsonMap) -> None:
    """Write the parts that changed into a task template.

    Args:
        template: the template.
        before: what `read_model` gave for it.
        after: what it is to say.

    Raises:
        CannotChangeError: flytekit has no place for a change.
    """
    for part in {**before, **after}:
        old, new = before.get(part), after.get(part)
        if old is new or same(old, new):
            continue
        write = _WRITERS.get(part)
        if write is None:
            raise CannotChangeError(
                "the phase serialize cannot change it; it changes " + ", ".join(_WRITERS),
                field=part,
            )
        write(template, old, new)


def _write_container(template: Any, old: JsonMap | None, new: JsonMap | None) -> None:
    if new is None:
        template._container = None
        return
    _check_fields("container", new, _CONTAINER)
    was, before = template.container, old or {}
    resources = new.get("resources") or {}
    template._container = task.Container(
        image=new.get("image", ""),
        command=new.get("command", []),
        args=new.get("args", []),
        resources=was.resources
        if was and before.get("resources") is resources
        else task.Resources(
            requests=_write_resources(resources.get("requests")),
            limits=_write_resources(resources.get("limits")),
        ),
        env=_write_pairs("env", new),
        config=_write_pairs("config", new),
        data_loading_config=_write_data_config(new),
    )


_CONTAINER = ("image", "command", "args", "resources", "env", "config", "dataConfig")
_POD = ("metadata", "podSpec", "dataConfig", "primaryContainerName")


def _check_fields(part: str, value: JsonMap, known: tuple[str, ...]) -> None:
    for name in value:
        if name not in known:
            raise CannotChangeError("flytekit has no such field", field=f"{part}.{name}")


def _write_resources(entries: list[JsonMap] | None) -> list[Any]:
    return [
        task.Resources.ResourceEntry(
            _RESOURCE_NUMBERS[entry.get("name", "UNKNOWN")], entry.get("value", "")
        )
        for entry in entries or ()
    ]


def _write_pairs(name: str, container: JsonMap) -> dict[str, str]:
    pairs = container.get(name) or []
    found = {pair["key"]: pair.get("value", "") for pair in pairs}
    if len(found) != len(pairs):
        raise CannotChangeError("flytekit takes each name once", field=f"container.{name}")
    return found


def _write_data_config(target: JsonMap) -> task.DataLoadingConfig | None:
    if "dataConfig" not in target:
        return None
    message = parse(tasks_pb2.DataLoadingConfig(), target["dataConfig"], "dataConfig")
    return task.DataLoadingConfig.from_flyte_idl(message)


def _write_pod(template: Any, old: JsonMap | None, new: JsonMap | None) -> None:
    if new is None:
        template._k8s_pod = None
        return
    _check_fields("k8sPod", new, _POD)
    template._k8s_pod = task.K8sPod(
        metadata=_write_object_metadata(new.get("metadata")),
        pod_spec=new.get("podSpec") or {},
        data_config=_write_data_config(new),
        primary_container_name=new.get("primaryContainerName"),
    )


def _write_object_metadata(metadata: JsonMap | None) -> Any:
    if metadata is None:
        return None
    _check_fields("metadata", metadata, ("labels", "annotations"))
    return task.K8sObjectMetadata(
        labels=metadata.get("labels") or {}, annotations=metadata.get("annotations") or {}
    )


def _write_metadata(template: Any, old: JsonMap | None, new: JsonMap | None) -> None:
    before, after = old or {}, new or {}
    changed = [key for key in {**before, **after} if before.get(key) is not after.get(key)]
    if changed == ["metadata"]:
        metadata = copy.copy(template.metadata)
        metadata._k8s_object_metadata = _write_object_metadata(after.get("metadata"))
    else:
        message = parse(tasks_pb2.TaskMetadata(), after, "metadata")
        metadata = task.TaskMetadata.from_flyte_idl(message)
        _check_kept("metadata", metadata.to_flyte_idl(), message)
    template._metadata = metadata


def _write_custom(template: Any, old: JsonMap | None, new: JsonMap | None) -> None:
    template._custom = new


def _write_config(template: Any, old: JsonMap | None, new: JsonMap | None) -> None:
    template._config = new or {}


def _write_extended_resources(template: Any, old: JsonMap | None, new: JsonMap | None) -> None:
    template._extended_resources = (
        None if new is None else parse(tasks_pb2.ExtendedResources(), new, "extendedResources")
    )


def _write_security_context(template: Any, old: JsonMap | None, new: JsonMap | None) -> None:
    found = None
    if new is not None:
        message = parse(security_pb2.SecurityContext(), new, "securityContext")
        found = security.SecurityContext.from_flyte_idl(message)
        _check_kept("securityContext", found.to_flyte_idl(), message)
    template._security_context = found


def _check_kept(part: str, made: Any, wanted: Any) -> None:
    """Flytekit's models know less than the messages."""
    if made != wanted:
        kept, asked = as_json(made), as_json(wanted)
        lost = next(key for key in {**asked, **kept} if not same(kept.get(key), asked.get(key)))
        raise CannotChangeError("flytekit cannot hold this", field=f"{part}.{lost}")


_WRITERS: Mapping[str, Callable[[Any, Any, Any], None]] = {
    "config": _write_config,
    "container": _write_container,
    "custom": _write_custom,
    "extendedResources": _write_extended_resources,
    "k8sPod": _write_pod,
    "metadata": _write_metadata,
    "securityContext": _write_security_context,
}


def write_pod_template(overrides: Any, pod: JsonMap) -> None:
    """Give a node's overrides another pod template."""
    from flytekit import PodTemplate

    metadata = pod.get("metadata") or {}
    spec: Any = pod.get("podSpec") or {}  # in overrides flytekit keeps it as data
    overrides._pod_template = PodTemplate(
        pod_spec=spec,
        primary_container_name=pod.get("primaryContainerName", ""),
        labels=metadata.get("labels"),
        annotations=metadata.get("annotations"),
    )
