"""Required node affinity, which ORs its terms and ANDs their expressions.

https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.types import NodeRequirement

__all__ = ["node_affinity"]


@transformer
def node_affinity(
    pod: Pod, *, require: list[NodeRequirement] | None = None, remove: list[str] | None = None
) -> None:
    """Require nodes by expressions, in every term of the required node affinity.

    Args:
        pod: the pod.
        require: expressions as Kubernetes writes them; of the same key and operator the values are
            replaced.
        remove: node labels whose expressions go.
    """
    for key in remove or ():
        pod.unrequire_node(key)
    for entry in require or ():
        pod.require_node(entry["key"], entry["operator"], entry.get("values", ()))
