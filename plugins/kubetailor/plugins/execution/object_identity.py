"""What a Kubernetes object says of the Flyte task behind it.

Exact are the variables that FlytePropeller puts into every container (flyteplugins,
flytek8s/k8s_resource_adds.go) and the owner reference to the FlyteWorkflow, whose kind is written
in lower case there. Labels are cut at 63 characters, and in a child execution they are the
parent's: they fill in only for `project` and `domain`,
and the last id of the node is checked by them (`lineage`).

Anybody may give variables to a task or to an execution, and FlytePropeller's own stand between the
two (`DecorateEnvVars`): one that is there twice and does not say the same is a lie, by which
another chain would be selected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kubetailor.plugins.execution.identity import FLYTE_GROUP
from kubetailor.plugins.execution.lineage import map_node_of, node_of
from kubetailor.registry.context import FIELDS
from kubetailor.workloads import InvalidObjectError, JsonMap, Kind, Workload

__all__ = ["controller_of", "known_of"]

_EXECUTION = "FLYTE_INTERNAL_EXECUTION_ID"
_ENV: Mapping[str, str] = {
    "project": "FLYTE_INTERNAL_EXECUTION_PROJECT",
    "domain": "FLYTE_INTERNAL_EXECUTION_DOMAIN",
    "execution": _EXECUTION,
    "task": "FLYTE_INTERNAL_TASK_NAME",
    "version": "FLYTE_INTERNAL_TASK_VERSION",
}
_WORKFLOW = "FLYTE_INTERNAL_EXECUTION_WORKFLOW"  # project:domain:name
_EXACT = frozenset({*_ENV.values(), _WORKFLOW})
_ATTEMPT = "FLYTE_ATTEMPT_NUMBER"
_NUMBER = re.compile(r"[0-9]{1,9}")
_ARRAY_INDEX = "FLYTE_K8S_ARRAY_INDEX"

_LABELS: Mapping[str, str] = {"project": "project", "domain": "domain"}
_TRACES = ("execution-id", "node-id")

_TASK_TYPES: Mapping[tuple[str, str], str] = {
    ("kubeflow.org", "PyTorchJob"): "pytorch",
    ("kubeflow.org", "TFJob"): "tensorflow",
    ("kubeflow.org", "MPIJob"): "mpi",
    ("ray.io", "RayJob"): "ray",
    ("ray.io", "RayCluster"): "ray",
    ("sparkoperator.k8s.io", "SparkApplication"): "spark",
    ("kubernetes.dask.org", "DaskJob"): "dask",
    ("kubernetes.dask.org", "DaskCluster"): "dask",
}
"""(API group, kind) -> the task type that makes it; many types make a Pod."""

_ABSENT = dict.fromkeys(FIELDS)


def controller_of(obj: JsonMap) -> JsonMap | None:
    """The owner reference of an object's controller, or None."""
    metadata = obj.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            return owner
    return None


def known_of(workload: Workload, namespace: str | None) -> dict[str, Any]:
    """What is known of the task behind an object, as fields of `TaskContext`.

    Args:
        workload: the object.
        namespace: the namespace of the request.

    Returns:
        None for what is known to be absent: everything, if the object has no trace of Flyte. What
        cannot be known is left out: of a task of Flyte's, that is its launch plan, its inputs, the
        type of a task that makes a plain pod, and a node that the object's name does not say.

    Raises:
        InvalidObjectError: a variable of FlytePropeller's is there with two values.
    """
    obj = workload.draft.root
    env = _env(workload)
    owner = controller_of(obj)
    labels = _labels(obj)
    if not (env or _is_flyte(owner) or all(label in labels for label in _TRACES)):
        return {**_ABSENT, "namespace": namespace}
    known: dict[str, Any] = {"namespace": namespace}
    for field, label in _LABELS.items():
        if isinstance(labels.get(label), str):
            known[field] = labels[label]
    for field, name in _ENV.items():
        if name in env:
            known[field] = env[name]
    if env.get(_WORKFLOW, "").count(":") >= 2:
        known["workflow"] = env[_WORKFLOW].split(":", 2)[2]
    if _NUMBER.fullmatch(env.get(_ATTEMPT, "")):
        known["attempt"] = int(env[_ATTEMPT])
    if owner is not None and _is_flyte(owner) and isinstance(owner.get("name"), str):
        known["execution"] = owner["name"]  # nobody but Propeller writes it
    if node := _node(obj, known, labels.get("node-id"), of_map=_ARRAY_INDEX in env):
        known["node"] = node
    if task_type := _task_type(workload.kind, owner):
        known["task_type"] = task_type
    return known


def _is_flyte(owner: JsonMap | None) -> bool:
    return owner is not None and _group(owner) == FLYTE_GROUP


def _group(owner: JsonMap) -> str:
    return str(owner.get("apiVersion", "")).rpartition("/")[0]


def _labels(obj: JsonMap) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def _env(workload: Workload) -> dict[str, str]:
    """The variables of the first container of the first pod that has Flyte's."""
    for pod in workload.pods():
        containers = pod.peek("containers")
        for container in containers if isinstance(containers, list) else ():
            found = _variables(container)
            if _EXECUTION in found:
                return found
    return {}


def _variables(container: Any) -> dict[str, str]:
    entries = container.get("env") if isinstance(container, dict) else None
    found: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        name, value = entry.get("name"), entry.get("value")
        if not (isinstance(name, str) and isinstance(value, str)):
            continue
        if name in _EXACT and found.get(name, value) != value:
            raise InvalidObjectError(
                f"the variable {name} is there twice, with different values: FlytePropeller sets "
                "it, by which the chain is selected; take it off the task or the execution"
            )
        found[name] = value
    return found


def _node(obj: JsonMap, known: Mapping[str, Any], label: Any, *, of_map: bool) -> str | None:
    """The nested id of the node; None if it cannot be known."""
    metadata, owner = obj.get("metadata"), controller_of(obj)
    names = owner if owner is not None and not _is_flyte(owner) else metadata
    name = names.get("name") if isinstance(names, dict) else None
    execution = known.get("execution")
    if not (isinstance(name, str) and isinstance(execution, str)):
        return None
    if of_map:
        return map_node_of(name, execution)
    if not isinstance(label, str):
        return None
    return node_of(name, execution, label, known.get("attempt"))


def _task_type(kind: Kind, owner: JsonMap | None) -> str | None:
    if found := _TASK_TYPES.get((kind.group, kind.name)):
        return found
    return _TASK_TYPES.get((_group(owner), str(owner.get("kind")))) if owner else None
