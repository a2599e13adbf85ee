"""Security contexts, and the profiles of the Pod Security Standards.

https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubetailor.registry import CannotChangeError, Container, Pod, transformer
from kubetailor.transformers._lists import chosen
from kubetailor.transformers._pod_security import Profile, faults, is_windows
from kubetailor.transformers._pod_types import PodSecurityContext, SecurityContext

__all__ = ["security_context"]

_FIELD = "securityContext"
_SECCOMP = {"type": "RuntimeDefault"}


@transformer
def security_context(
    pod: Pod,
    *,
    profile: Profile | None = None,
    pod_fields: PodSecurityContext | None = None,
    container_fields: SecurityContext | None = None,
    containers: list[str] | None = None,
) -> None:
    """Make pods meet a profile of the Pod Security Standards, or set single fields.

    For `restricted` it sets `runAsNonRoot`, the seccomp profile `RuntimeDefault`, no privilege
    escalation, and `ALL` capabilities dropped, for every container; on a pod for Windows,
    `runAsNonRoot` alone. What a pod asks for and a profile forbids (host namespaces, `hostPath`,
    added capabilities, root …) is never taken from it: it is named, and the pod is not changed.
    It is about the containers that are there when it runs, so it comes after what adds some.

    Args:
        pod: the pod.
        profile: ``baseline``, which only forbids, or ``restricted``.
        pod_fields: fields of the pod's securityContext, as Kubernetes writes them; null removes
            one.
        container_fields: the same for containers. Lists, such as those of `capabilities`, are
            replaced whole.
        containers: globs of the names of the containers that `container_fields` is about, init
            containers too; by default every one.
    """
    _lay(pod, pod_fields or {})
    if container_fields:
        for target in pod.every_container if containers is None else chosen(pod, containers):
            _lay(target, container_fields)
    if profile == "restricted":
        _restrict(pod)
    if profile is not None:
        found = list(faults(pod.peek(), pod.annotations, profile))
        if found:
            raise CannotChangeError(
                f"the pod does not meet the profile {profile!r}: {'; '.join(found)}",
                field=pod.where(),
            )


def _lay(owner: Pod | Container, fields: Mapping[str, Any]) -> None:
    """Lay fields over a securityContext; one that is emptied goes."""
    there = owner.get(_FIELD) or {}
    wanted = {key: value for key, value in fields.items() if value is not None or key in there}
    if wanted:
        owner.merge({_FIELD: wanted})
        if not owner.get(_FIELD):
            owner.set_field(_FIELD, None)


def _restrict(pod: Pod) -> None:
    """What the restricted profile demands."""
    windows = is_windows(pod.peek())
    whole: dict[str, Any] = {} if windows else {"seccompProfile": _SECCOMP}
    if pod.peek("hostUsers") is not False:  # root of a user namespace is nobody on the node
        whole["runAsNonRoot"] = True
    context = pod.get(_FIELD) or {}
    if context.get("seccompProfile"):
        whole.pop("seccompProfile", None)
    _lay(pod, whole)
    for target in pod.every_container:
        context = target.get(_FIELD) or {}
        own: dict[str, Any] = {}
        if "runAsNonRoot" in whole and context.get("runAsNonRoot") is False:
            own["runAsNonRoot"] = True
        if not windows:
            own["allowPrivilegeEscalation"] = False
            drop = (context.get("capabilities") or {}).get("drop") or []
            if "ALL" not in drop:
                own["capabilities"] = {"drop": ["ALL"]}
        _lay(target, own)
