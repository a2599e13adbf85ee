"""The fields of a pod by which it reaches into the node that it runs on.

https://kubernetes.io/docs/concepts/security/pod-security-standards/: what the profile `baseline`
forbids, and the volumes for which the kubelet runs something of the node's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

__all__ = ["NODE_FIELDS", "node_fields"]


def _given(value: Any) -> bool:
    """No text: a label or a variable may be called as a field is."""
    return bool(value) and not isinstance(value, str)


def _unconfined(value: Any) -> bool:
    confined = (None, "RuntimeDefault", "Localhost")
    return isinstance(value, Mapping) and value.get("type") not in confined


def _adds(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value.get("add"))


NODE_FIELDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC", "hostPort", "hostProcess"), _given),
    **dict.fromkeys(("hostPath", "gitRepo", "flexVolume"), _given),
    **dict.fromkeys(("privileged", "seLinuxOptions", "sysctls"), _given),
    **dict.fromkeys(("seccompProfile", "appArmorProfile"), _unconfined),
    "capabilities": _adds,
    "procMount": lambda value: value == "Unmasked",
    "mountPropagation": lambda value: value == "Bidirectional",
}
"""A field, at any depth -> whether a value of it reaches the node."""


def node_fields(value: Any) -> Iterator[str]:
    """The fields in a part of a pod spec that reach the node."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in NODE_FIELDS and NODE_FIELDS[key](item):
                yield key
            yield from node_fields(item)
    elif isinstance(value, list):
        for item in value:
            yield from node_fields(item)
