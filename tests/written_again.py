"""Steps whose work the API server writes in another way, and what it makes of that."""

from __future__ import annotations

import copy
from typing import Any, Final

__all__ = ["POD", "STEPS", "as_kept"]

POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train"},
    "spec": {"containers": [{"name": "main", "image": "registry.example.com/speech:1"}]},
}


def _volume(**source: Any) -> dict[str, Any]:
    return {"add": [{"name": "v", **source}]}


def _env(**entry: Any) -> dict[str, Any]:
    return {"set": {"A": entry}}


def _patch(**spec: Any) -> dict[str, Any]:
    return {"pod": spec}


_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_FIELD: Final = {"fieldPath": "metadata.name"}
_AMOUNT: Final = {"containerName": "main", "resource": "limits.cpu"}
_CEPH: Final = {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}
_DISK: Final = {"diskName": "a", "diskURI": "/subscriptions/a", "kind": "Managed"}
_DISK_FILLED: Final = {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False}
_SCALE_IO: Final = {"gateway": "g", "system": "s", "secretRef": {"name": "x"}, "volumeName": "v"}
_SCALE_IO_FILLED: Final = {"storageMode": "ThinProvisioned", "fsType": "xfs"}
_ISCSI: Final = {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2020-01.com.a:b", "lun": 0}
_PROBE: Final = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_SIDECAR: Final = {"name": "s", "image": "i:1", "restartPolicy": "Always"}
_MOUNTED: Final = {"name": "v", "mountPath": "/d"}
_TOLERATED: Final = {"key": "a", "operator": "Equal"}
_SECRET: Final = {"name": "v", "secret": {"secretName": "s"}}

STEPS: Final[dict[str, tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "a variable of a field": (
        "env",
        _env(valueFrom={"fieldRef": _FIELD}),
        {"containers.0.env.0.valueFrom.fieldRef.apiVersion": "v1"},
    ),
    "a variable of a resource": (
        "env",
        _env(valueFrom={"resourceFieldRef": {"resource": "limits.cpu"}}),
        {"containers.0.env.0.valueFrom.resourceFieldRef.divisor": "0"},
    ),
    "an empty variable": ("env", {"set": {"A": ""}}, {"containers.0.env.0.value": None}),
    "an empty prefix": (
        "env_from",
        {"add": [{"secretRef": {"name": "a", "optional": False}, "prefix": ""}]},
        {"containers.0.envFrom.0.prefix": None},
    ),
    "requests in small parts": (
        "resources",
        {"requests": {"cpu": "0.0001", "memory": "1.0001Ki"}},
        {
            "containers.0.resources.requests.cpu": "1m",
            "containers.0.resources.requests.memory": "1024103m",
        },
    ),
    "lists of a security context": (
        "security_context",
        {
            "pod_fields": {"supplementalGroups": [], "fsGroup": 1},
            "container_fields": {"capabilities": {"add": [], "drop": ["ALL"]}},
        },
        {
            "securityContext.supplementalGroups": None,
            "containers.0.securityContext.capabilities.add": None,
        },
    ),
    "a native sidecar": (
        "sidecars",
        {
            "add": [
                {
                    **_SIDECAR,
                    "ports": [{"containerPort": 80, "hostPort": 0}],
                    "readinessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 0},
                    "env": [{"name": "A", "valueFrom": {"fieldRef": _FIELD}}],
                }
            ]
        },
        {
            "initContainers.0.ports.0": {"containerPort": 80, "protocol": "TCP"},
            "initContainers.0.readinessProbe": {
                **_PROBE,
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
            },
            "initContainers.0.env.0.valueFrom.fieldRef.apiVersion": "v1",
        },
    ),
    "a volume of a patch": (
        "patch",
        _patch(volumes=[_SECRET]),
        {"volumes.0.secret.defaultMode": 420},
    ),
    "a mount of a patch": (
        "patch",
        _patch(
            volumes=[{"name": "v", "emptyDir": {}}],
            containers=[{"name": "main", "volumeMounts": [{**_MOUNTED, "readOnly": False}]}],
        ),
        {"containers.0.volumeMounts.0.readOnly": None},
    ),
    "a variable of a patch": (
        "patch",
        _patch(
            containers=[{"name": "main", "env": [{"name": "A", "valueFrom": {"fieldRef": _FIELD}}]}]
        ),
        {"containers.0.env.0.valueFrom.fieldRef.apiVersion": "v1"},
    ),
    "a toleration of a patch": (
        "patch",
        _patch(tolerations=[{**_TOLERATED, "value": ""}]),
        {"tolerations.0.value": None},
    ),
    "namespaces of a patch": (
        "patch",
        _patch(hostNetwork=False, hostPID=False, hostIPC=False),
        {"hostNetwork": None, "hostPID": None, "hostIPC": None},
    ),
    "downwardAPI": (
        "volumes",
        _volume(downwardAPI={"items": [{"path": "c", "resourceFieldRef": _AMOUNT}]}),
        {
            "volumes.0.downwardAPI.items.0.resourceFieldRef.divisor": "0",
            "volumes.0.downwardAPI.defaultMode": 420,
        },
    ),
    "ephemeral": (
        "volumes",
        _volume(ephemeral={"volumeClaimTemplate": {"spec": _CLAIM}}),
        {
            "volumes.0.ephemeral.volumeClaimTemplate.metadata": {},
            "volumes.0.ephemeral.volumeClaimTemplate.spec.volumeMode": "Filesystem",
        },
    ),
    "iscsi": (
        "volumes",
        _volume(iscsi=_ISCSI),
        {"volumes.0.iscsi.iscsiInterface": "default"},
    ),
    "azureDisk": (
        "volumes",
        _volume(azureDisk=_DISK),
        {"volumes.0.azureDisk": {**_DISK, **_DISK_FILLED}},
    ),
    "rbd": (
        "volumes",
        _volume(rbd={"monitors": ["m"], "image": "i"}),
        {"volumes.0.rbd": {"monitors": ["m"], "image": "i", **_CEPH}},
    ),
    "scaleIO": (
        "volumes",
        _volume(scaleIO=_SCALE_IO),
        {"volumes.0.scaleIO": {**_SCALE_IO, **_SCALE_IO_FILLED}},
    ),
}
"""What is written -> the built-in, its `with`, and what the API server has at places of the spec.

None is a field that it leaves out. `tests/cluster` asks it.
"""


def as_kept(pod: Any, kept: dict[str, Any]) -> Any:
    """A pod as the API server keeps it: field of its spec -> what is there then."""
    found = copy.deepcopy(pod)
    for place, value in kept.items():
        *path, last = [int(key) if key.isdigit() else key for key in place.split(".")]
        node = found["spec"]
        for key in path:
            node = node[key]
        if value is None:
            node.pop(last, None)
        else:
            node[last] = copy.deepcopy(value)
    return found
