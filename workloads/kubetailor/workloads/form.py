"""The form of an object, as far as it is read here: what is an object, a list, a string.

Objects are read as if they had it, since the API server has seen to that for nearly all. Where
reading one fails, this says which field is to blame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from kubetailor.workloads.draft import Json, JsonMap, Path, dotted
from kubetailor.workloads.errors import InvalidObjectError, KubetailorError
from kubetailor.workloads.kinds import Kind, PodPath
from kubetailor.workloads.kinds.app_wrapper import AppWrapperKind

__all__ = ["check_form", "form_fault"]

Form: TypeAlias = Any
"""A dict is an object with these fields (``*`` is every one), a list a list of that, `str` a text.

Null is as good as nothing, except in a list.
"""

_EACH = "*"
_TEXTS: Form = {_EACH: str}
_METADATA: Form = {"name": str, "labels": {}, "annotations": {}, "ownerReferences": [{}]}
_RESOURCES: Form = {"limits": {}, "requests": {}, "claims": [{}]}
_NAMED: Form = {"name": str}
_VOLUMES: Form = [{"name": str, "emptyDir": {}}]
_SECURITY: Form = {"capabilities": {"add": [str], "drop": [str]}, "seccompProfile": {}}
_CONTAINER: Form = {
    "name": str,
    "image": str,
    "command": [str],
    "args": [str],
    "env": [{"name": str, "value": str, "valueFrom": {}}],
    "envFrom": [{"prefix": str, "configMapRef": _NAMED, "secretRef": _NAMED}],
    "securityContext": _SECURITY,
    "ports": [{}],
    "resources": _RESOURCES,
    "volumeMounts": [{"name": str, "mountPath": str}],
}
_EXPRESSIONS: Form = [{"key": str, "operator": str, "values": [str]}]
_POD_SPEC: Form = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "volumes": _VOLUMES,
    "imagePullSecrets": [{"name": str}],
    "schedulingGates": [{"name": str}],
    "nodeSelector": _TEXTS,
    "priorityClassName": str,
    "runtimeClassName": str,
    "schedulerName": str,
    "serviceAccountName": str,
    "securityContext": _SECURITY,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str}],
    "topologySpreadConstraints": [{"topologyKey": str, "whenUnsatisfiable": str}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}
                ]
            }
        }
    },
}
_SPARK_POD: Form = {
    **_CONTAINER,
    **_POD_SPEC,
    "labels": {},
    "annotations": {},
    "gpu": {"name": str},
    "sidecars": [_CONTAINER],
}
_SPARK_APP: Form = {
    "driver": _SPARK_POD,
    "executor": _SPARK_POD,
    "volumes": _VOLUMES,
    "imagePullSecrets": [str],
    "batchSchedulerOptions": {},
}
_LABELS: Form = {"labels": {}, "annotations": {}}
_POD_TEMPLATE: Form = {"metadata": _LABELS, "spec": _POD_SPEC}
_CALL: Form = {"name": str, "template": str, "inline": {}}
_ARGO_TEMPLATE: Form = {
    **{name: form for name, form in _POD_SPEC.items() if name != "containers"},
    "name": str,
    "metadata": _LABELS,
    "container": _CONTAINER,
    "script": _CONTAINER,
    "containerSet": {"containers": [_CONTAINER]},
    "sidecars": [_CONTAINER],
    "hostAliases": [{"ip": str}],
    "steps": [[_CALL]],
    "dag": {"tasks": [_CALL]},
}
_WORKFLOW: Form = {
    **_ARGO_TEMPLATE,
    "templates": [_ARGO_TEMPLATE],
    "templateDefaults": _ARGO_TEMPLATE,
    "podMetadata": _LABELS,
    "entrypoint": str,
    "onExit": str,
    "hooks": {_EACH: {"template": str}},
}
_COMPONENT: Form = {
    **_POD_SPEC,
    **_LABELS,
    "name": str,
    "model": _CONTAINER,
    "workerSpec": _POD_SPEC,
}
_POD_PATCH: Form = {"metadata": {_EACH: {}}, "spec": _POD_SPEC}
_JOB_PATCH: Form = {"name": str, "template": {"spec": {"template": _POD_PATCH}}}
_RUNTIME_PATCH: Form = {
    "manager": str,
    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [_JOB_PATCH]}}},
}
_K8S_POD: Form = {"metadata": {"labels": {}, "annotations": {}}, "podSpec": _POD_SPEC}
_ENTRIES: Form = [{"name": str, "value": str}]
_REPLICA: Form = {"image": str, "resources": {"limits": _ENTRIES, "requests": _ENTRIES}}
_OWN: Mapping[tuple[str, str], Form] = {
    ("sparkoperator.k8s.io", "SparkApplication"): {
        "metadata": _METADATA,
        "spec": _SPARK_APP,
    },
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): {
        "metadata": _METADATA,
        "spec": {"template": _SPARK_APP},
    },
    ("argoproj.io", "Workflow"): {"metadata": _METADATA, "spec": _WORKFLOW},
    ("argoproj.io", "WorkflowTemplate"): {"metadata": _METADATA, "spec": _WORKFLOW},
    ("argoproj.io", "CronWorkflow"): {
        "metadata": _METADATA,
        "spec": {"workflowSpec": _WORKFLOW},
    },
    ("serving.kserve.io", "InferenceService"): {
        "metadata": _METADATA,
        "spec": {
            **dict.fromkeys(("predictor", "transformer", "explainer"), _COMPONENT),
            "canary": [{"predictor": _COMPONENT}],
        },
    },
    ("trainer.kubeflow.org", "TrainJob"): {
        "metadata": _METADATA,
        "spec": {
            "trainer": {**_CONTAINER, "resourcesPerNode": _RESOURCES},
            "initializer": {_EACH: {"env": _CONTAINER["env"]}},
            "runtimePatches": [_RUNTIME_PATCH],
        },
    },
    ("workload.codeflare.dev", "AppWrapper"): {
        "metadata": _METADATA,
        "spec": {"components": [{"template": {}, "podSets": [{"path": str}]}]},
    },
    ("flyte", "TaskTemplate"): {
        "id": {"project": str, "domain": str, "name": str, "version": str},
        "metadata": {"metadata": _LABELS, "retries": {}},
        "config": {"primary_container_name": str},
        "container": {**_REPLICA, "command": [str], "args": [str], "env": [{"key": str}]},
        "k8sPod": _K8S_POD,
        "extendedResources": {"gpuAccelerator": {"device": str}, "sharedMemory": {}},
        "custom": {
            **dict.fromkeys(
                (
                    *("masterReplicas", "workerReplicas", "launcherReplicas", "chiefReplicas"),
                    *("psReplicas", "evaluatorReplicas", "scheduler", "workers"),
                ),
                _REPLICA,
            ),
            "rayCluster": {
                "headGroupSpec": {"k8sPod": _K8S_POD},
                "workerGroupSpec": [{"k8sPod": _K8S_POD}],
            },
            "driverPod": _K8S_POD,
            "executorPod": _K8S_POD,
        },
    },
}
"""Kinds that keep no pod templates."""


def form_fault(error: Exception, obj: JsonMap, kind: Kind) -> KubetailorError | None:
    """What in the form of an object may be why reading it failed.

    Nothing checks the form of an object before it is read.

    Args:
        error: what was raised while it was read.
        obj: the object.
        kind: its row.

    Returns:
        The fault; None if its form is good, or the error says itself what is wrong.
    """
    if isinstance(error.__cause__ or error, KubetailorError):
        return None
    try:
        check_form(obj, kind)
    except KubetailorError as fault:
        return fault
    return None


def check_form(obj: JsonMap, kind: Kind) -> None:
    """Check that an object has the form of its kind.

    Args:
        obj: the object.
        kind: its row.

    Raises:
        InvalidObjectError: the first field that has not, with what it should be.
    """
    for form in _forms(kind):
        _check(obj, form, ())
    if isinstance(kind, AppWrapperKind):
        for path, inner, row in kind.components(obj):
            for form in _forms(row) if row is not None else ():
                _check(inner, form, path)


def _forms(kind: Kind) -> Iterator[Form]:
    own = _OWN.get((kind.group, kind.name))
    if own is not None:
        yield own
    else:
        yield {"metadata": _METADATA, "spec": {"runPolicy": {"schedulingPolicy": {}}}}
        yield from map(_form, kind.pods)


def _form(row: PodPath) -> Form:
    """The form that a row of the table of kinds demands of the whole object."""
    found = _within(row.spec, _POD_SPEC)
    if row.metadata is not None:
        found = {**found, **_within(row.metadata, _METADATA)}
    return _within(row.path, found)


def _within(path: str, form: Form) -> Form:
    for key in reversed(path.split(".") if path else ()):
        form = {key[:-2]: [form]} if key.endswith("[]") else {key: form}
    return form


def _check(value: Json, form: Form, path: Path) -> None:
    if isinstance(form, dict):
        if not isinstance(value, dict):
            raise _fault("an object", value, path)
        for key, item in value.items():
            part = form.get(key, form.get(_EACH))
            if part is not None and item is not None:
                _check(item, part, (*path, key))
    elif isinstance(form, list):
        if not isinstance(value, list):
            raise _fault("a list", value, path)
        for index, item in enumerate(value):
            _check(item, form[0], (*path, index))
    elif not isinstance(value, str):
        raise _fault("a string", value, path)


def _fault(wanted: str, value: Json, path: Path) -> InvalidObjectError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
    return InvalidObjectError(f"expected {wanted}, found {shown}", field=dotted(path))
