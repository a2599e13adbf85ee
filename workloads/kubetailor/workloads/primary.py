"""Which container of a pod runs the task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

__all__ = ["PRIMARY_ANNOTATIONS", "SIDECAR_NAMES", "primary_of"]

SIDECAR_NAMES = frozenset(
    {
        "cloud-sql-proxy",
        "daprd",
        "gke-gcsfuse-sidecar",
        "istio-proxy",
        "linkerd-proxy",
        "vault-agent",
    }
)
"""Containers that other admission webhooks add: never the primary one."""

PRIMARY_ANNOTATIONS = ("primary_container_name", "kubectl.kubernetes.io/default-container")
"""What Flyte (flyteplugins, `flytek8s.PrimaryContainerKey`) and kubectl call the primary one."""

_USUAL_NAMES = ("primary", "main", "default")


def primary_of(
    containers: Sequence[tuple[str, int]], candidates: Callable[[], Iterable[str | None]]
) -> tuple[str, int] | None:
    """The primary one of a pod's containers, or None if it cannot be told.

    Args:
        containers: (name, index) of each.
        candidates: gives the names that the task, the object or its kind has for it, the surest
            first; None and empty ones are none.
    """
    if len(containers) == 1:
        return containers[0]
    by_name = dict(containers)
    for name in (*candidates(), *_USUAL_NAMES):
        if name and name in by_name:
            return name, by_name[name]
    own = [found for found in containers if found[0] not in SIDECAR_NAMES]
    return own[0] if len(own) == 1 else None
