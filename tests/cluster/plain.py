"""Objects of Kubernetes' own kinds, whose pods no scheduler looks at unless a test says so."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from . import objects
from .objects import TAILORED

__all__ = ["pod", "with_pods"]

_NOBODY: Final = "nobody"

pod = functools.partial(objects.pod, schedulerName=_NOBODY)
"""As `objects.pod`."""


def with_pods(
    kind: str,
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str] = TAILORED,
    pods: Mapping[str, str] = TAILORED,
) -> dict[str, Any]:
    """A workload that makes pods: a kind of `_CONTROLLERS` or of `objects.BUILDERS`."""
    # The pods of a Job outlive it, and another would take them for its own.
    pods = {**pods, "app": name}
    if kind not in _CONTROLLERS:
        found: dict[str, Any] = objects.BUILDERS[kind](
            namespace, name, labels=labels, pods=pods, schedulerName=_NOBODY
        )
        return found
    job = objects.job(namespace, name, labels=labels, pods=pods, schedulerName=_NOBODY)
    api, spec = _CONTROLLERS[kind]
    return {**job, "apiVersion": api, "kind": kind, "spec": spec(job["spec"], name)}


def _replicas(job: Any, name: str) -> dict[str, Any]:
    template = job["template"]
    del template["spec"]["restartPolicy"]
    return {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}


def _stateful(job: Any, name: str) -> dict[str, Any]:
    return {"serviceName": "none", **_replicas(job, name)}


def _cron_job(job: Any, name: str) -> dict[str, Any]:
    """One that does not come round while a test runs."""
    return {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job}}


_CONTROLLERS: Final[Mapping[str, tuple[str, Callable[[Any, str], dict[str, Any]]]]] = {
    "ReplicaSet": ("apps/v1", _replicas),
    "Deployment": ("apps/v1", _replicas),
    "StatefulSet": ("apps/v1", _stateful),
    "CronJob": ("batch/v1", _cron_job),
}
"""What is spelled out of a Job's spec: its template, or all of it."""
