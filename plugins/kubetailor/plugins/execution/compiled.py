"""The FlyteWorkflow that FlyteAdmin creates of what is registered, as far as a chain reads it.

Sources, v1.16: flytepropeller, pkg/compiler/transformers/k8s/workflow.go, node.go and utils.go, and
for a task alone, flyteadmin, pkg/manager/impl/util/single_task_execution.go. What FlyteAdmin's own
config adds is not there: default resources of tasks, and their limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubetailor.plugins.execution.identity import FLYTE_GROUP
from kubetailor.plugins.execution.literals import literal_of
from kubetailor.workloads import JsonMap
from kubetailor.workloads.duration import go_duration_text, parse_duration
from kubetailor.workloads.quantity import is_positive

__all__ = ["GENERATED", "closure_of_task", "flyte_workflow"]

GENERATED: Final = ".flytegen."
"""What the name of the workflow begins with that FlyteAdmin makes of a task alone."""

_LONGEST_ID: Final = 63
_DEFAULT_RETRIES: Final = 3
_START, _END = "start-node", "end-node"
_RESOURCES: Final[Mapping[str, str]] = {
    "CPU": "cpu",
    "MEMORY": "memory",
    "GPU": "nvidia.com/gpu",
    "EPHEMERAL_STORAGE": "ephemeral-storage",
}
_POD_FIELDS: Final[Mapping[str, str]] = {
    "metadata": "metadata",
    "podSpec": "pod_spec",
    "dataConfig": "data_config",
    "primaryContainerName": "primary_container_name",
}
"""A node's pod template is written by encoding/json, all else by protobuf."""


def flyte_workflow(
    closure: JsonMap,
    *,
    project: str,
    domain: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> JsonMap:
    """The FlyteWorkflow of an execution that has no name yet.

    Args:
        closure: flyteidl.core.CompiledWorkflowClosure in JSON form.
        project: the execution's project.
        domain: its domain.
        labels: its labels.
        annotations: its annotations.
        inputs: its inputs that are plain values.
    """
    tasks = {_text(_id(task)): task["template"] for task in closure.get("tasks", ())}
    subworkflows = {
        _text(_id(workflow)): _graph(workflow["template"], tasks)
        for workflow in closure.get("subWorkflows", ())
    }
    maps = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    primary = closure["primary"]["template"]
    return {
        "apiVersion": f"{FLYTE_GROUP}/v1alpha1",
        "kind": "FlyteWorkflow",
        "metadata": {
            "namespace": f"{project}-{domain}",
            **{name: values for name, values in maps.items() if values},
        },
        "executionId": {"project": project, "domain": domain},
        "inputs": {"literals": {name: literal_of(value) for name, value in (inputs or {}).items()}},
        "node-defaults": {
            name: value for name, value in primary.get("metadataDefaults", {}).items() if value
        },
        "spec": _graph(primary, tasks),
        **({"subWorkflows": subworkflows} if subworkflows else {}),
        "tasks": tasks,
    }


def closure_of_task(template: JsonMap) -> JsonMap:
    """The closure of the workflow that FlyteAdmin makes of a task alone.

    Args:
        template: flyteidl.core.TaskTemplate in JSON form.
    """
    id_ = template["id"]
    name = "".join(
        letter for letter in id_["name"][-_LONGEST_ID:] if letter == "-" or letter.isalnum()
    )
    retries = template.get("metadata", {}).get("retries", {"retries": _DEFAULT_RETRIES})
    node = {
        "id": name,
        "metadata": {"name": name, "retries": retries},
        "taskNode": {"referenceId": id_},
    }
    workflow = {**id_, "resourceType": "WORKFLOW", "name": f"{GENERATED}{id_['name']}"}
    nodes = [{"id": _START}, node, {"id": _END}]
    return {
        "primary": {"template": {"id": workflow, "nodes": nodes}},
        "tasks": [{"template": template}],
    }


def _id(compiled: JsonMap) -> JsonMap:
    found: JsonMap = compiled["template"]["id"]
    return found


def _text(id_: JsonMap) -> str:
    """An identifier as a key; how FlyteAdmin spells it is not stable, and nobody reads it."""
    fields = {"resource_type": id_.get("resourceType", "UNSPECIFIED")}
    quoted = {
        name: f'"{id_[name]}"' for name in ("project", "domain", "name", "version") if id_.get(name)
    }
    if org := id_.get("org"):
        quoted["org"] = f'"{org}"'
    return " ".join(f"{name}:{value}" for name, value in {**fields, **quoted}.items())


def _graph(template: JsonMap, tasks: Mapping[str, JsonMap]) -> JsonMap:
    id_ = template["id"]
    found: JsonMap = {
        "id": ":".join(id_.get(name, "") for name in ("project", "domain", "name")),
        "nodes": {
            spec["id"]: spec for node in template.get("nodes", ()) for spec in _nodes(node, tasks)
        },
    }
    if "failureNode" in template:
        found["onFailure"] = next(_nodes(template["failureNode"], tasks))
    return found


def _nodes(node: JsonMap, tasks: Mapping[str, JsonMap]) -> Iterator[JsonMap]:
    """A node, then what it may branch to, which is in the same graph."""
    metadata: JsonMap = node.get("metadata", {})
    task = node.get("taskNode", {})
    overrides: JsonMap = task.get("overrides", {})
    key = _text(task["referenceId"]) if task else None
    spec: JsonMap = {"id": node["id"], "resources": _requirements(overrides.get("resources", {}))}
    for target, (kind, compiled) in _TARGETS.items():
        if target in node:
            spec.update({"kind": kind, **compiled(node[target], tasks)})
    if "kind" not in spec:
        spec["kind"] = {_START: "start", _END: "end"}.get(node["id"], "")
    timeout = parse_duration(metadata.get("timeout"))
    said = {
        "name": metadata.get("name"),
        "inputBindings": node.get("inputs"),
        "retry": _retry(metadata, tasks.get(key or "", {})),
        "executionDeadline": None if timeout is None else go_duration_text(timeout),
        "activeDeadline": None if timeout is None else go_duration_text(2 * timeout),
        "interruptible": metadata.get("interruptible"),
        "extendedResources": overrides.get("extendedResources"),
        "containerImage": overrides.get("containerImage") or None,
        "podTemplate": _pod(overrides.get("podTemplate")),
    }
    yield {**spec, **{name: value for name, value in said.items() if value is not None}}
    branch = node.get("branchNode", {}).get("ifElse")
    if branch is not None:
        for block in (branch.get("case", {}), *branch.get("other", ())):
            yield from _nodes(block["thenNode"], tasks)
        if "elseNode" in branch:
            yield from _nodes(branch["elseNode"], tasks)


def _task(node: JsonMap, _: Mapping[str, JsonMap]) -> JsonMap:
    return {"task": _text(node["referenceId"])}


def _workflow(node: JsonMap, _: Mapping[str, JsonMap]) -> JsonMap:
    if "launchplanRef" in node:
        return {"workflow": {"launchPlanRefId": node["launchplanRef"]}}
    return {"workflow": {"subWorkflowRef": _text(node["subWorkflowRef"])}}


def _array(node: JsonMap, tasks: Mapping[str, JsonMap]) -> JsonMap:
    return {
        "array": {
            "SubNodeSpec": next(_nodes(node["node"], tasks)),
            "Parallelism": node.get("parallelism"),
            "MinSuccesses": node.get("minSuccesses"),
            "MinSuccessRatio": node.get("minSuccessRatio"),
            "BoundInputs": node.get("boundInputs"),
        }
    }


def _nothing_more(_: JsonMap, __: Mapping[str, JsonMap]) -> JsonMap:
    return {}


_TARGETS: Final[Mapping[str, tuple[str, Callable[[JsonMap, Mapping[str, JsonMap]], JsonMap]]]] = {
    "taskNode": ("task", _task),
    "workflowNode": ("workflow", _workflow),
    "arrayNode": ("array", _array),
    "branchNode": ("branch", _nothing_more),
    "gateNode": ("gate", _nothing_more),
}
"""What a node runs -> the kind of the node, and what else it says of that."""


def _retry(metadata: JsonMap, template: JsonMap) -> JsonMap | None:
    """The node's retries, else the task's."""
    for said in (metadata, template.get("metadata", {})):
        if retries := said.get("retries", {}).get("retries"):
            return {"minAttempts": retries + 1}
    return None


def _requirements(resources: JsonMap) -> JsonMap:
    found = {part: _quantities(resources.get(part, ())) for part in ("limits", "requests")}
    return {part: values for part, values in found.items() if values}


def _quantities(entries: Any) -> JsonMap:
    return {
        _RESOURCES[entry["name"]]: entry["value"]
        for entry in entries
        if entry.get("name") in _RESOURCES and is_positive(entry.get("value", "0"))
    }


def _pod(pod: JsonMap | None) -> JsonMap | None:
    if pod is None:
        return None
    return {written: pod[name] for name, written in _POD_FIELDS.items() if name in pod}
