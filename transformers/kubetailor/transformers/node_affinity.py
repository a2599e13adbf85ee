"""Required node affinity, which ORs its terms and ANDs their expressions.

https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
"""

from __future__ import annotations

from typing import get_args

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.types import NodeOperator, Requirement

__all__ = ["node_affinity"]


@transformer
def node_affinity(
    pod: Pod, *, require: list[Requirement] | None = None, remove: list[str] | None = None
) -> None:
    """Require nodes by expressions, in every term of the required node affinity.

    Args:
        pod: the pod.
        require: expressions as Kubernetes writes them; of the same key and operator the values are
            replaced.
        remove: node labels whose expressions go, save those of `require`.
    """
    wanted = {(entry["key"], entry["operator"]) for entry in require or ()}
    for key in remove or ():
        for operator in get_args(NodeOperator):
            if (key, operator) not in wanted:
                pod.unrequire_node(key, operator)
    for entry in require or ():
        pod.require_node(entry["key"], entry["operator"], entry.get("values", ()))
