"""What makes two entries of a Kubernetes list the same entry.

The keys are Kubernetes' own merge keys where it has them
(https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/, "patch merge key"); a
toleration's is its whole match, as the scheduler reads it, so `tolerationSeconds` is not in it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kubetailor.workloads.draft import Json, same

__all__ = [
    "IDENTITY",
    "env_position",
    "env_references",
    "find",
    "identity",
    "mount_path",
    "toleration_key",
]

_REFERENCE = re.compile(r"\$\$|\$\(([^)]+)\)")


def toleration_key(toleration: Mapping[str, Any]) -> tuple[Any, ...]:
    """Identity of a toleration: key, operator or `Equal`, value, effect; empty is absent."""
    return (
        toleration.get("key") or "",
        toleration.get("operator") or "Equal",
        toleration.get("value") or "",
        toleration.get("effect") or "",
    )


@lru_cache(maxsize=4096)
def mount_path(path: str) -> str:
    """A mount path in normal form: ``/dev/shm/`` is ``/dev/shm``."""
    return posixpath.normpath(path) if path else path


def _by(field: str, *more: str) -> Callable[[Mapping[str, Any]], Any]:
    if more:
        return lambda entry: (entry.get(field), *map(entry.get, more))
    return lambda entry: (entry.get(field),)


IDENTITY: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "tolerations": toleration_key,
    # An entry in the container of a Flyte task has a `key`.
    "env": lambda entry: (entry.get("name", entry.get("key")),),
    "containers": _by("name"),
    "initContainers": _by("name"),
    "ephemeralContainers": _by("name"),
    "volumes": _by("name"),
    "imagePullSecrets": _by("name"),
    "schedulingGates": _by("name"),
    "resourceClaims": _by("name"),
    "hostAliases": _by("ip"),
    "volumeMounts": lambda mount: mount_path(str(mount.get("mountPath", ""))),
    "volumeDevices": _by("devicePath"),
    "ports": lambda port: (port.get("containerPort"), port.get("protocol") or "TCP"),
    "topologySpreadConstraints": _by("topologyKey", "whenUnsatisfiable"),
    "matchExpressions": _by("key", "operator"),
    "envFrom": lambda source: (
        (source.get("configMapRef") or {}).get("name"),
        (source.get("secretRef") or {}).get("name"),
        source.get("prefix") or "",
    ),
}
"""Field name of a list -> the identity of one of its entries."""


def find(field: str, entries: Iterable[Json], wanted: Mapping[str, Any]) -> int | None:
    """The index of the entry of the list `field` that has the identity of `wanted`."""
    key = IDENTITY[field]
    target = key(wanted)
    for index, entry in enumerate(entries):
        if type(entry) is dict and (found := key(entry)) == target and same_key(found, target):
            return index
    return None


def identity(field: str, entry: Mapping[str, Any]) -> str:
    """What `find` compares, as a key of a dict: where many entries are looked for."""
    return repr(IDENTITY[field](entry))


def same_key(a: Any, b: Any) -> bool:
    """Whether two identities are equal, in type too."""
    return bool(a == b) and (not isinstance(a, tuple) or all(map(same, a, b)))


def env_references(value: Any) -> set[str]:
    """The names that an env value refers to as ``$(NAME)``; ``$$(NAME)`` is an escape.

    https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
    """
    if not isinstance(value, str) or "$(" not in value:
        return set()
    return {match[1] for match in _REFERENCE.finditer(value) if match[1]}


def env_position(env: Sequence[Json], entry: Mapping[str, Any]) -> int:
    """Where a new env entry goes: before the first that refers to it, else to the end."""
    name = entry.get("name")
    reference = f"$({name})"
    for index, item in enumerate(env):
        if type(item) is dict:
            value = item.get("value")
            if type(value) is str and reference in value and name in env_references(value):
                return index
    return len(env)
