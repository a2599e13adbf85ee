"""The container runtime.

https://kubernetes.io/docs/concepts/containers/runtime-class/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.names import ObjectName

__all__ = ["runtime_class"]

_DERIVED = ("overhead",)
"""What the admission plugin `RuntimeClass` takes from the class, and refuses where it differs."""


@transformer
def runtime_class(pod: Pod, *, name: ObjectName | None) -> None:
    """Set the runtime class of the pods.

    Args:
        pod: the pod.
        name: the RuntimeClass, which must be there; null leaves it to the node's own runtime.
    """
    if pod.peek("runtimeClassName") == name:
        return
    pod.set_field("runtimeClassName", name)
    for field in _DERIVED:
        pod.set_field(field, None)
