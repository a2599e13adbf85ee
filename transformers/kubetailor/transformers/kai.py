"""The KAI Scheduler and its queue.

kai-scheduler/KAI-Scheduler, pkg/common/constants/constants.go (`DefaultQueueLabel`) and
pkg/podgrouper/podgrouper/plugins/defaultgrouper/default_grouper.go (`CalcPodGroupQueue`): the label
of the top owner, else the pod's.
"""

from __future__ import annotations

from kubetailor.registry import Workload, transformer
from kubetailor.transformers._queues import place_by, require_root
from kubetailor.transformers.labels import targets
from kubetailor.transformers.names import Name

__all__ = ["kai"]

_SCHEDULER = "kai-scheduler"
_QUEUE = "kai.scheduler/queue"
_PRIORITY = "priorityClassName"


@transformer(atomic=True, queue=True)
def kai(workload: Workload, *, queue: Name, priority_class: Name | None = None) -> None:
    """Let the KAI Scheduler schedule the pods, through one of its queues.

    Args:
        workload: the workload.
        queue: the Queue.
        priority_class: the PriorityClass of the whole workload, such as `train` or `inference`,
            which the scheduler reads from a label.
    """
    require_root(workload)
    wanted = {_QUEUE: queue, **({_PRIORITY: priority_class} if priority_class else {})}
    place_by(workload, _SCHEDULER)
    for target in targets(workload, None):
        for key, value in wanted.items():
            target.label(key, value)
    if workload.kind_name == "RayJob" and workload.get("spec", "submissionMode") in (
        None,
        "K8sJobMode",
    ):
        # ray-project/kuberay, ray-operator/controllers/ray/batchscheduler/kai-scheduler.
        workload.warn(
            "KubeRay refuses a RayJob for KAI whose submitter is a pod of its own; set "
            "`submissionMode`",
            "spec.submissionMode",
        )
