"""What the transformers of queues have in common."""

from __future__ import annotations

from kubetailor.registry import CannotChangeError, TaskContext, Workload
from kubetailor.workloads import Pod

__all__ = ["node_name", "place_by", "require_root"]


def require_root(workload: Workload) -> None:
    """A queue is chosen for the root, and what the root makes follows it.

    Raises:
        CannotChangeError: the object's controller is a workload too.
    """
    if workload.is_child:
        raise CannotChangeError(
            f"a {workload.kind_name} takes no queue: its owner carries it", field="metadata"
        )


def place_by(workload: Workload, scheduler: str) -> tuple[Pod, ...]:
    """Let a scheduler place all pods of a workload.

    Raises:
        CannotChangeError: there is no pod.
    """
    pods = tuple(pod for pod in workload.pods() if not pod.is_replica)
    if not pods:
        raise CannotChangeError(f"a {workload.kind_name} without pods takes no queue")
    for pod in pods:
        pod.set_field("schedulerName", scheduler)
    return pods


def node_name(workload: Workload, task: TaskContext) -> str | None:
    """A name for what a node of an execution runs, the same in every phase that knows the node.

    Args:
        workload: the workload.
        task: what is known of its task; a task template waits for the phase that knows the node.

    Returns:
        The name, or None for what is of no node, or of one that cannot be told.
    """
    if workload.is_task_template:
        execution, node = task.execution, task.node
    else:
        execution, node = task.peek("execution"), task.peek("node")
    if isinstance(execution, str) and isinstance(node, str):
        return f"{execution}-{node}"
    return None
