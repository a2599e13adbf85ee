"""The pods of the webhook.

https://kubernetes.io/docs/concepts/security/pod-security-standards/ (restricted)
"""

from __future__ import annotations

from typing import Final

from kubetailor.plugins.webhook.limits import TIMEOUT
from kubetailor.plugins.webhook.objects import (
    CONFIG_KEY,
    NAME,
    SELECTED,
    Installation,
    namespaced_object,
)
from kubetailor.workloads import JsonMap

__all__ = ["deployment"]

_PORT: Final = 8443
_UID: Final = 65532


def deployment(of: Installation) -> JsonMap:
    """The Deployment: two pods, apart from each other, that may do nothing they need not."""
    by_itself = of.certificates == "self-signed"
    secret: JsonMap = (
        {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
        if by_itself
        else {"secret": {"secretName": NAME}}
    )
    spec = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": by_itself,
        # Its variables would be named KUBETAILOR_*, as those that kubetailor reads.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _UID,
            "runAsGroup": _UID,
            "fsGroup": _UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": dict(SELECTED)},
                # Else new pods keep apart from the old ones that a rollout takes away.
                "matchLabelKeys": ["pod-template-hash"],
            }
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
        "containers": [_container(of, by_itself)],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME}},
            {"name": "certificates", **secret},
        ],
    }
    return namespaced_object(
        of,
        "Deployment",
        "apps/v1",
        spec={
            "replicas": 2,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "selector": {"matchLabels": dict(SELECTED)},
            "template": {
                "metadata": {
                    "labels": dict(SELECTED),
                    "annotations": {
                        "prometheus.io/scrape": "true",
                        "prometheus.io/scheme": "https",
                        "prometheus.io/port": str(_PORT),
                    },
                },
                "spec": spec,
            },
        },
    )


def _container(of: Installation, by_itself: bool) -> JsonMap:
    arguments = [
        "webhook",
        "serve",
        f"--config=/config/{CONFIG_KEY}",
        "--certificates=/certificates",
        f"--port={_PORT}",
    ]
    environment: JsonMap = {}
    if by_itself:
        arguments.append(f"--self-signed=$(NAMESPACE)/{NAME}")
        own = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
        environment["env"] = [{"name": "NAMESPACE", "valueFrom": own}]

    def probe(path: str, **rest: int) -> JsonMap:
        return {"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}, **rest}

    return {
        "name": "webhook",
        "image": of.image,
        "command": ["kubetailor"],
        "args": arguments,
        **environment,
        "ports": [{"name": "https", "containerPort": _PORT}],
        "startupProbe": probe("/healthz", periodSeconds=1, failureThreshold=60),
        "livenessProbe": probe("/healthz", periodSeconds=10, timeoutSeconds=TIMEOUT),
        "readinessProbe": probe("/readyz", periodSeconds=5, timeoutSeconds=5),
        # Endpoints are told of the end at the same time as the process, so it waits for them.
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": "/config", "readOnly": True},
            {
                "name": "certificates",
                "mountPath": "/certificates",
                **({} if by_itself else {"readOnly": True}),
            },
        ],
    }
