"""Any other field, as Kubernetes writes it."""

from __future__ import annotations

from typing import Any

from kubetailor.registry import Workload, transformer
from kubetailor.registry.selection import Selection

__all__ = ["patch"]


@transformer
def patch(
    workload: Workload,
    selection: Selection,
    *,
    pod: dict[str, Any] | None = None,
    object: dict[str, Any] | None = None,
    replace: bool = False,
) -> None:
    """Lay a patch over pod specs, or over the whole object.

    Maps merge by key; lists whose entries have an identity (tolerations, env, containers, volumes,
    mounts, ports …) by that; other lists are replaced. Null deletes.

    Args:
        workload: the workload.
        selection: the pods that `when` picked.
        pod: laid over the pod spec of each pod.
        object: laid over the object.
        replace: replace a volume or mount of the same name and other content; otherwise that is
            an error.
    """
    for target in selection.pods if pod is not None else ():
        target.merge(pod or {}, replace=replace)
    if object is not None:
        workload.merge(object, replace=replace)
