"""Kueue's queue.

https://kueue.sigs.k8s.io/docs/tasks/run/
"""

from __future__ import annotations

from kubetailor.registry import CannotChangeError, Workload, transformer
from kubetailor.transformers.names import Name

__all__ = ["kueue"]

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"


@transformer(atomic=True)
def kueue(workload: Workload, *, queue: Name, priority_class: Name | None = None) -> None:
    """Send the workload through a queue of Kueue.

    The label goes on the object that Kueue manages, never on its pods: there, Kueue would take
    each of them for a workload of its own.

    Args:
        workload: the workload.
        queue: the LocalQueue.
        priority_class: the WorkloadPriorityClass.
    """
    owner = workload.queue_owner
    if owner is None:
        why = "its owner carries the queue" if workload.is_child else "Kueue does not manage it"
        raise CannotChangeError(
            f"a {workload.kind_name} takes no queue label: {why}", field="metadata.labels"
        )
    wanted = {QUEUE: queue, **({PRIORITY: priority_class} if priority_class else {})}
    for key, value in wanted.items():
        owner.label(key, value)
        for pod in workload.pods():
            if not pod.is_object and key in pod.labels:
                pod.unlabel(key)
                workload.warn(f"the label {key} is taken off the {pod.role} pods", pod.where())
    if workload.kind_name == "SparkApplication":
        workload.warn(
            "the Spark operator may copy owner labels to pods, which Kueue then takes for its own "
            "(kubeflow/spark-operator#2669)",
            "metadata.labels",
        )
