"""Tolerations.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.types import Toleration, TolerationMatch
from kubetailor.workloads.identity import toleration_key

__all__ = ["tolerations"]

_PARTS = ("key", "operator", "value", "effect")


@transformer
def tolerations(
    pod: Pod, *, add: list[Toleration] | None = None, remove: list[TolerationMatch] | None = None
) -> None:
    """Add and remove tolerations.

    One with the same key, operator, value and effect is kept as it is, with its
    `tolerationSeconds`; all others stay too.

    Args:
        pod: the pod.
        add: tolerations as Kubernetes writes them.
        remove: parts of tolerations; whatever agrees in all that is given goes, save what is added.
    """
    wanted = {toleration_key(toleration) for toleration in add or ()}
    for there in pod.tolerations if remove else ():
        identity = toleration_key(there)
        parts = dict(zip(_PARTS, identity, strict=True))
        if identity not in wanted and any(match.items() <= parts.items() for match in remove or ()):
            pod.untolerate(**parts)
    for toleration in add or ():
        pod.add_toleration(toleration)
