"""The scheduler.

https://kubernetes.io/docs/tasks/extend-kubernetes/configure-multiple-schedulers/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.names import Name

__all__ = ["scheduler"]


@transformer
def scheduler(pod: Pod, *, name: Name | None) -> None:
    """Say which scheduler places the pods.

    Args:
        pod: the pod.
        name: the scheduler; null leaves it to the cluster's own.
    """
    pod.set_field("schedulerName", name)
