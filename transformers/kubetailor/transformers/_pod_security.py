"""The Pod Security Standards: what a pod has that a profile forbids.

https://kubernetes.io/docs/concepts/security/pod-security-standards/, as the checks of
k8s.io/pod-security-admission/policy have them for Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from kubetailor.workloads import Json, JsonMap
from kubetailor.workloads.named import CONTAINERS

__all__ = ["CAPABILITIES", "Profile", "faults", "is_windows"]

Profile: TypeAlias = Literal["baseline", "restricted"]

CAPABILITIES: Final[Mapping[Profile, frozenset[str]]] = {
    "baseline": frozenset(
        {
            *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
            *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
        }
    ),
    "restricted": frozenset({"NET_BIND_SERVICE"}),
}
"""The capabilities that may be added."""

_HOST = ("hostNetwork", "hostPID", "hostIPC")
_PROFILES = (None, "RuntimeDefault", "Localhost")
_CONTEXT: Mapping[tuple[str, ...], tuple[Json, ...]] = {
    ("privileged",): (None, False),
    ("procMount",): (None, "", "Default"),
    ("seLinuxOptions", "type"): (
        *(None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"),
    ),
    ("seLinuxOptions", "user"): (None, ""),
    ("seLinuxOptions", "role"): (None, ""),
    ("seccompProfile", "type"): _PROFILES,
    ("appArmorProfile", "type"): _PROFILES,
    ("windowsOptions", "hostProcess"): (None, False),
}
"""Field of a security context, of a pod or of a container -> what it may be."""

_SYSCTLS = frozenset(
    {
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"),
        *("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time"),
        *("net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    }
)
_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
        *("persistentVolumeClaim", "projected", "secret"),
    }
)
"""What the restricted profile lets volumes be."""

_HANDLERS = (
    *(("livenessProbe",), ("readinessProbe",), ("startupProbe",)),
    *(("lifecycle", "postStart"), ("lifecycle", "preStop")),
)
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


def is_windows(spec: JsonMap) -> bool:
    """Whether a pod says that it runs on Windows, whose pods have no such fields."""
    return bool(_at(spec, "os", "name") == "windows")


def faults(spec: JsonMap, annotations: Mapping[str, str], profile: Profile) -> Iterator[str]:
    """What a pod has that a profile forbids, other than what it lacks.

    Args:
        spec: the pod spec.
        annotations: the pod's annotations.
        profile: the profile.
    """
    yield from (f"{field}: true" for field in _HOST if spec.get(field))
    for volume in _maps(spec.get("volumes")):
        for source in volume.keys() - {"name"}:
            allowed = source in _VOLUMES if profile == "restricted" else source != "hostPath"
            if volume[source] is not None and not allowed:
                yield f"the volume {volume.get('name')!r} is a {source}"
    for key, value in annotations.items():
        if key.startswith(_APP_ARMOR) and not (
            value in ("", "runtime/default") or value.startswith("localhost/")
        ):
            yield f"the annotation {key}: {value}"
    context = spec.get("securityContext") or {}
    for sysctl in _maps(context.get("sysctls")):
        if sysctl.get("name") not in _SYSCTLS:
            yield f"the pod's securityContext.sysctls: {sysctl.get('name')}"
    yield from _in_context(spec, context, "the pod's", profile)
    for field in CONTAINERS:
        for container in _maps(spec.get(field)):
            yield from _in_container(spec, container, profile)


def _in_container(spec: JsonMap, container: JsonMap, profile: Profile) -> Iterator[str]:
    whose = f"container {container.get('name')!r}'s"
    context = container.get("securityContext") or {}
    yield from _in_context(spec, context, whose, profile)
    if not (profile == "restricted" and is_windows(spec)):
        for added in _at(context, "capabilities", "add") or ():
            if added not in CAPABILITIES[profile]:
                yield f"{whose} securityContext.capabilities.add: {added}"
    for port in _maps(container.get("ports")):
        if port.get("hostPort"):
            yield f"{whose} hostPort: {port['hostPort']}"
    for handler in _HANDLERS:
        for action in ("httpGet", "tcpSocket"):
            if host := _at(container, *handler, action, "host"):
                yield f"{whose} {'.'.join((*handler, action))}.host: {host}"


def _in_context(spec: JsonMap, context: JsonMap, whose: str, profile: Profile) -> Iterator[str]:
    in_user_namespace = spec.get("hostUsers") is False
    for path, allowed in _CONTEXT.items():
        if path == ("procMount",) and in_user_namespace and profile == "baseline":
            continue
        found = _at(context, *path)
        if found not in allowed:
            yield f"{whose} securityContext.{'.'.join(path)}: {_shown(found)}"
    if profile == "restricted" and context.get("runAsUser") == 0 and not in_user_namespace:
        yield f"{whose} securityContext.runAsUser: 0"


def _at(value: Json, *path: str) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _maps(entries: Json) -> list[JsonMap]:
    found: list[Any] = entries if isinstance(entries, list) else []
    return [entry for entry in found if isinstance(entry, dict)]


def _shown(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
