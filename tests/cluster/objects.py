"""The objects that tests create: plain dicts, as a person would write them in YAML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from .stack.client import Client

__all__ = [
    "BUILDERS",
    "TAILORED",
    "condition",
    "job",
    "jobset",
    "pod",
    "pod_spec",
    "pods_of",
    "pytorchjob",
    "raycluster",
    "rayjob",
]

TAILORED: Final = {"kubetailor.dev/tailor": "true"}
"""The label by which what is not Flyte's asks for the webhook."""

_IMAGE: Final = "python:3.12"
_RAY: Final = "rayproject/ray:2.46.0"


def pod_spec(
    container: str = "main", *, gpus: int = 0, cpu: str = "1", image: str = _IMAGE, **more: Any
) -> dict[str, Any]:
    """A pod spec of one container; `more` are other fields of it, `nodeSelector` say."""
    asked = {"cpu": cpu, "memory": "1Gi"}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    resources = {"requests": {**asked, **limits}, "limits": limits}
    return {
        "containers": [{"name": container, "image": image, "resources": resources}],
        **more,
    }


def pod(
    namespace: str,
    name: str = "one",
    *,
    labels: Mapping[str, str] = TAILORED,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Any:
    """A pod; a name that ends with `-` is a `generateName`, `spec` is as in `pod_spec`."""
    found = _object("v1", "Pod", namespace, name, labels)
    metadata = found["metadata"]
    if name.endswith("-"):
        metadata["generateName"] = metadata.pop("name")
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {**found, "spec": pod_spec(**spec)}


def job(
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str] = TAILORED,
    pods: Mapping[str, str] = TAILORED,
    **spec: Any,
) -> Any:
    """A Job of one pod, which kwok ends at once; `pods` are the labels of its pods."""
    template = _template(pods, restartPolicy="Never", **spec)
    found = _object("batch/v1", "Job", namespace, name, labels)
    return {**found, "spec": {"backoffLimit": 0, "template": template}}


def pytorchjob(
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str] = TAILORED,
    pods: Mapping[str, str] = TAILORED,
    workers: int = 1,
    **spec: Any,
) -> Any:
    """A PyTorchJob of a master and workers."""
    replicas = {
        role: {
            "replicas": count,
            "restartPolicy": "Never",
            "template": _template(pods, container="pytorch", **spec),
        }
        for role, count in (("Master", 1), ("Worker", workers))
    }
    found = _object("kubeflow.org/v1", "PyTorchJob", namespace, name, labels)
    return {**found, "spec": {"pytorchReplicaSpecs": replicas}}


def raycluster(
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str] = TAILORED,
    pods: Mapping[str, str] = TAILORED,
    **spec: Any,
) -> Any:
    """A RayCluster of a head without GPUs and one worker."""
    found = _object("ray.io/v1", "RayCluster", namespace, name, labels)
    return {**found, "spec": _ray(pods, **spec)}


def rayjob(
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str] = TAILORED,
    pods: Mapping[str, str] = TAILORED,
    **spec: Any,
) -> Any:
    """A RayJob with such a cluster, and a submitter of its own."""
    found = _object("ray.io/v1", "RayJob", namespace, name, labels)
    submitter = {**spec, "gpus": 0, "image": _RAY, "restartPolicy": "Never"}
    return {
        **found,
        "spec": {
            "entrypoint": "python train.py",
            # Kueue insists on it.
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": _ray(pods, **spec),
            "submitterPodTemplate": _template(pods, container="ray-job-submitter", **submitter),
        },
    }


def jobset(
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str] = TAILORED,
    pods: Mapping[str, str] = TAILORED,
    **spec: Any,
) -> Any:
    """A JobSet of one Job."""
    found = _object("jobset.x-k8s.io/v1alpha2", "JobSet", namespace, name, labels)
    template = _template(pods, restartPolicy="Never", **spec)
    replicated = {
        "name": "worker",
        "replicas": 1,
        "template": {"spec": {"parallelism": 1, "completions": 1, "template": template}},
    }
    return {**found, "spec": {"replicatedJobs": [replicated]}}


BUILDERS: Final[Mapping[str, Callable[..., Any]]] = {
    "Pod": pod,
    "Job": job,
    "PyTorchJob": pytorchjob,
    "RayCluster": raycluster,
    "RayJob": rayjob,
    "JobSet": jobset,
}
"""By kind."""


def pods_of(client: Client, obj: Any) -> list[Any]:
    """The pods of an object: itself, or what its controllers made, down to the last."""
    namespace = obj["metadata"]["namespace"]
    pods = client.list("v1", "Pod", namespace)
    parents = {pod["metadata"]["uid"]: _controller(pod) for pod in pods}
    for api, kind in _BETWEEN.get(obj["kind"], ()):
        for found in client.list(api, kind, namespace):
            parents[found["metadata"]["uid"]] = _controller(found)

    def belongs(uid: str | None) -> bool:
        while uid is not None and uid != obj["metadata"]["uid"]:
            uid = parents.get(uid)
        return uid is not None

    return [pod for pod in pods if belongs(pod["metadata"]["uid"])]


def condition(obj: Any, kind: str) -> dict[str, Any]:
    """A condition of an object; empty if it has none of this type."""
    conditions = obj.get("status", {}).get("conditions") or ()
    return next((dict(found) for found in conditions if found["type"] == kind), {})


_BETWEEN: Final = {
    "RayJob": (("ray.io/v1", "RayCluster"), ("batch/v1", "Job")),
    "JobSet": (("batch/v1", "Job"),),
}
"""What stands between an object and its pods."""


def _controller(obj: Any) -> str | None:
    owners = obj["metadata"].get("ownerReferences", ())
    return next((owner["uid"] for owner in owners if owner.get("controller")), None)


def _object(
    api: str, kind: str, namespace: str, name: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "labels": dict(labels)}
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def _template(labels: Mapping[str, str], **spec: Any) -> dict[str, Any]:
    # A copy, so that no two pods of an object share a part.
    return {"metadata": {"labels": dict(labels)}, "spec": json.loads(json.dumps(pod_spec(**spec)))}


def _ray(labels: Mapping[str, str], **spec: Any) -> dict[str, Any]:
    spec = {**spec, "image": _RAY}
    return {
        "rayVersion": "2.46.0",
        "headGroupSpec": {
            "rayStartParams": {},
            "template": _template(labels, container="ray-head", **{**spec, "gpus": 0}),
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": 1,
                "minReplicas": 1,
                "maxReplicas": 1,
                "rayStartParams": {},
                "template": _template(labels, container="ray-worker", **spec),
            }
        ],
    }
