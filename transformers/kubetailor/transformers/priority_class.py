"""Priority.

https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.names import Name

__all__ = ["priority_class"]

_DERIVED = ("priority", "preemptionPolicy")
"""What the admission plugin `Priority` fills in from the class, and refuses where it differs."""


@transformer
def priority_class(pod: Pod, *, name: Name) -> None:
    """Set the priority class of the pods.

    Args:
        pod: the pod.
        name: the PriorityClass.
    """
    if pod.peek("priorityClassName") == name:
        return
    pod.set_field("priorityClassName", name)
    for field in _DERIVED:
        pod.set_field(field, None)
