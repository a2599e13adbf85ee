"""Parameters that are parts of a pod spec, as Kubernetes writes them.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/. The fields are
listed, since the API server drops one that it does not know without a word; for a field that is
newer than this list there is `patch`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator
from typing_extensions import NotRequired, TypedDict

from kubetailor.transformers.names import ObjectName
from kubetailor.transformers.types import EnvVarSource, Quantity, String, strict
from kubetailor.workloads import InvalidObjectError
from kubetailor.workloads.names import check_env_name, check_name

__all__ = [
    "Container",
    "EnvFrom",
    "EnvFromMatch",
    "NamedVolume",
    "PodSecurityContext",
    "SecretName",
    "SecurityContext",
    "VolumeMount",
]

_Object = dict[str, Any]


def _part_name(name: str) -> str:
    try:
        return check_name(name, "the name")
    except InvalidObjectError as error:
        raise ValueError(str(error)) from None


def _env_name(name: str) -> str:
    try:
        return check_env_name(name)
    except InvalidObjectError as error:
        raise ValueError(str(error)) from None


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("it must not be empty")
    return text


_PartName = Annotated[str, AfterValidator(_part_name)]
_Text = Annotated[str, AfterValidator(_not_empty)]


@strict
class SecretName(TypedDict):
    """A LocalObjectReference, as Kubernetes writes it."""

    name: ObjectName


# env -------------------------------------------------------------------------------------------


@strict
class SourceReference(TypedDict):
    """A reference to a ConfigMap or Secret, as Kubernetes writes it."""

    name: ObjectName
    optional: NotRequired[bool]


@strict
class EnvFromSource(TypedDict):
    """An EnvFromSource, as Kubernetes writes it."""

    prefix: NotRequired[str]
    configMapRef: NotRequired[SourceReference]
    secretRef: NotRequired[SourceReference]


def _one_source(source: EnvFromSource) -> EnvFromSource:
    if ("configMapRef" in source) is ("secretRef" in source):
        raise ValueError("it takes one of configMapRef and secretRef")
    return source


EnvFrom = Annotated[EnvFromSource, AfterValidator(_one_source)]
"""An EnvFromSource with the one source that it must have."""


@strict
class Reference(TypedDict):
    """The name of a ConfigMap or Secret."""

    name: str


@strict
class EnvFromMatch(TypedDict):
    """What is given of it must agree."""

    prefix: NotRequired[str]
    configMapRef: NotRequired[Reference]
    secretRef: NotRequired[Reference]


@strict
class EnvVar(TypedDict):
    """An EnvVar, as Kubernetes writes it."""

    name: Annotated[str, AfterValidator(_env_name)]
    value: NotRequired[String]
    valueFrom: NotRequired[EnvVarSource]


# volumes ---------------------------------------------------------------------------------------


@strict
class Volume(TypedDict):
    """A Volume, as Kubernetes writes it: a name and one source."""

    name: _PartName
    awsElasticBlockStore: NotRequired[_Object]
    azureDisk: NotRequired[_Object]
    azureFile: NotRequired[_Object]
    cephfs: NotRequired[_Object]
    cinder: NotRequired[_Object]
    configMap: NotRequired[_Object]
    csi: NotRequired[_Object]
    downwardAPI: NotRequired[_Object]
    emptyDir: NotRequired[_Object]
    ephemeral: NotRequired[_Object]
    fc: NotRequired[_Object]
    flexVolume: NotRequired[_Object]
    flocker: NotRequired[_Object]
    gcePersistentDisk: NotRequired[_Object]
    gitRepo: NotRequired[_Object]
    glusterfs: NotRequired[_Object]
    hostPath: NotRequired[_Object]
    image: NotRequired[_Object]
    iscsi: NotRequired[_Object]
    nfs: NotRequired[_Object]
    persistentVolumeClaim: NotRequired[_Object]
    photonPersistentDisk: NotRequired[_Object]
    portworxVolume: NotRequired[_Object]
    projected: NotRequired[_Object]
    quobyte: NotRequired[_Object]
    rbd: NotRequired[_Object]
    scaleIO: NotRequired[_Object]
    secret: NotRequired[_Object]
    storageos: NotRequired[_Object]
    vsphereVolume: NotRequired[_Object]


def _one_volume_source(volume: Volume) -> Volume:
    sources = [key for key in volume if key != "name"]
    if len(sources) != 1:
        raise ValueError(f"a volume has one source, found {', '.join(sources) or 'none'}")
    return volume


NamedVolume = Annotated[Volume, AfterValidator(_one_volume_source)]
"""A Volume with the one source that it must have."""


@strict
class VolumeMount(TypedDict):
    """A VolumeMount, as Kubernetes writes it."""

    name: _PartName
    mountPath: _Text
    mountPropagation: NotRequired[Literal["None", "HostToContainer", "Bidirectional"]]
    readOnly: NotRequired[bool]
    recursiveReadOnly: NotRequired[Literal["Disabled", "IfPossible", "Enabled"]]
    subPath: NotRequired[str]
    subPathExpr: NotRequired[str]


# security contexts -----------------------------------------------------------------------------


@strict
class Capabilities(TypedDict):
    """Capabilities, as Kubernetes writes them."""

    add: NotRequired[list[str] | None]
    drop: NotRequired[list[str] | None]


@strict
class SecurityContext(TypedDict):
    """The SecurityContext of a container, as Kubernetes writes it; null removes a field."""

    allowPrivilegeEscalation: NotRequired[bool | None]
    appArmorProfile: NotRequired[_Object | None]
    capabilities: NotRequired[Capabilities | None]
    privileged: NotRequired[bool | None]
    procMount: NotRequired[Literal["Default", "Unmasked"] | None]
    readOnlyRootFilesystem: NotRequired[bool | None]
    runAsGroup: NotRequired[int | None]
    runAsNonRoot: NotRequired[bool | None]
    runAsUser: NotRequired[int | None]
    seLinuxOptions: NotRequired[_Object | None]
    seccompProfile: NotRequired[_Object | None]
    windowsOptions: NotRequired[_Object | None]


@strict
class PodSecurityContext(TypedDict):
    """The PodSecurityContext, as Kubernetes writes it; null removes a field."""

    appArmorProfile: NotRequired[_Object | None]
    fsGroup: NotRequired[int | None]
    fsGroupChangePolicy: NotRequired[Literal["Always", "OnRootMismatch"] | None]
    runAsGroup: NotRequired[int | None]
    runAsNonRoot: NotRequired[bool | None]
    runAsUser: NotRequired[int | None]
    seLinuxChangePolicy: NotRequired[Literal["Recursive", "MountOption"] | None]
    seLinuxOptions: NotRequired[_Object | None]
    seccompProfile: NotRequired[_Object | None]
    supplementalGroups: NotRequired[list[int] | None]
    supplementalGroupsPolicy: NotRequired[Literal["Merge", "Strict"] | None]
    sysctls: NotRequired[list[dict[str, String]] | None]
    windowsOptions: NotRequired[_Object | None]


# containers ------------------------------------------------------------------------------------


@strict
class Resources(TypedDict):
    """ResourceRequirements, as Kubernetes writes them."""

    claims: NotRequired[list[_Object]]
    limits: NotRequired[dict[str, Quantity]]
    requests: NotRequired[dict[str, Quantity]]


@strict
class Container(TypedDict):
    """A Container, as Kubernetes writes it."""

    name: _PartName
    image: _Text
    args: NotRequired[list[String]]
    command: NotRequired[list[String]]
    env: NotRequired[list[EnvVar]]
    envFrom: NotRequired[list[EnvFrom]]
    imagePullPolicy: NotRequired[Literal["Always", "IfNotPresent", "Never"]]
    lifecycle: NotRequired[_Object]
    livenessProbe: NotRequired[_Object]
    ports: NotRequired[list[_Object]]
    readinessProbe: NotRequired[_Object]
    resizePolicy: NotRequired[list[_Object]]
    resources: NotRequired[Resources]
    restartPolicy: NotRequired[Literal["Always", "Never", "OnFailure"]]
    restartPolicyRules: NotRequired[list[_Object]]
    securityContext: NotRequired[SecurityContext]
    startupProbe: NotRequired[_Object]
    stdin: NotRequired[bool]
    stdinOnce: NotRequired[bool]
    terminationMessagePath: NotRequired[str]
    terminationMessagePolicy: NotRequired[Literal["File", "FallbackToLogsOnError"]]
    tty: NotRequired[bool]
    volumeDevices: NotRequired[list[_Object]]
    volumeMounts: NotRequired[list[VolumeMount]]
    workingDir: NotRequired[str]
