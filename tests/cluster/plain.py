"""Objects of Kubernetes' own kinds, whose pods no scheduler looks at unless a test says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from . import objects
from .objects import TAILORED, pod_spec

__all__ = ["pod", "template", "with_pods"]

_UNSCHEDULED: Final[Mapping[str, Any]] = {"schedulerName": "nobody"}


def pod(
    namespace: str,
    name: str = "one",
    *,
    labels: Mapping[str, str] = TAILORED,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of one container.

    Args:
        namespace: its namespace.
        name: its name; one that ends with `-` is a `generateName`.
        labels: its labels.
        annotations: its annotations.
        spec: what else its spec says.
    """
    made: dict[str, Any] = objects.pod(namespace, name, labels=labels, **{**_UNSCHEDULED, **spec})
    metadata = made["metadata"]
    if name.endswith("-"):
        metadata["generateName"] = metadata.pop("name")
    if annotations:
        metadata["annotations"] = dict(annotations)
    return made


def template(*, labels: Mapping[str, str] = TAILORED, **spec: Any) -> dict[str, Any]:
    """A pod template, for `with_pods`."""
    return {
        "metadata": {"labels": dict(labels)},
        "spec": pod_spec(**{**_UNSCHEDULED, **spec}),
    }


def with_pods(
    kind: str,
    namespace: str,
    name: str,
    pods: dict[str, Any],
    *,
    labels: Mapping[str, str] = TAILORED,
) -> dict[str, Any]:
    """A workload that makes pods: a kind of `_SPECS`."""
    api, spec = _SPECS[kind]
    app = {"app": name}  # the pods of a Job outlive it, and another would take them for its own
    pods["metadata"]["labels"] |= app
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": spec(pods),
    }


def _replicas(pods: dict[str, Any]) -> dict[str, Any]:
    app = {"app": pods["metadata"]["labels"]["app"]}
    return {"replicas": 1, "selector": {"matchLabels": app}, "template": pods}


def _job(pods: dict[str, Any]) -> dict[str, Any]:
    return {"template": {**pods, "spec": {**pods["spec"], "restartPolicy": "Never"}}}


def _cron_job(pods: dict[str, Any]) -> dict[str, Any]:
    """One that does not come round while a test runs."""
    return {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": _job(pods)}}


def _pytorch_job(pods: dict[str, Any]) -> dict[str, Any]:
    [container] = pods["spec"]["containers"]
    spec = {**pods["spec"], "containers": [{**container, "name": "pytorch"}]}
    replica = {"replicas": 1, "restartPolicy": "Never", "template": {**pods, "spec": spec}}
    return {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}}


_SPECS: Final = {
    "ReplicaSet": ("apps/v1", _replicas),
    "Deployment": ("apps/v1", _replicas),
    "StatefulSet": ("apps/v1", lambda pods: {"serviceName": "none", **_replicas(pods)}),
    "Job": ("batch/v1", _job),
    "CronJob": ("batch/v1", _cron_job),
    "PyTorchJob": ("kubeflow.org/v1", _pytorch_job),
}
