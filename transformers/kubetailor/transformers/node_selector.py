"""Node selectors.

https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.names import Key, LabelValue
from kubetailor.transformers.types import names_to_remove

__all__ = ["node_selector"]


@transformer
def node_selector(
    pod: Pod,
    *,
    set: dict[Key, LabelValue] | None = None,
    remove: list[str] | None = None,
    only_if_empty: bool = False,
) -> None:
    """Select nodes by their labels.

    Args:
        pod: the pod.
        set: node label -> value; another value for the label is replaced.
        remove: node labels that are no longer asked for.
        only_if_empty: do nothing for a pod that has a node selector.
    """
    if only_if_empty and pod.node_selector:
        return
    for key in names_to_remove(remove, set):
        pod.deselect_node(key)
    for key, value in (set or {}).items():
        pod.select_node(key, value)
