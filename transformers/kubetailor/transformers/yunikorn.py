"""YuniKorn's scheduler and queue.

apache/yunikorn-k8shim, pkg/common/constants/constants.go (`CanonicalLabelQueueName`) and
pkg/common/utils/utils.go (`GetQueueNameFromPod`): these labels beat annotations and the older
`queue` and `applicationId`, which YuniKorn's own admission controller adds for older versions.
"""

from __future__ import annotations

from kubetailor.registry import TaskContext, Workload, transformer
from kubetailor.transformers._queues import node_name, place_by, require_root
from kubetailor.transformers.labels import targets
from kubetailor.transformers.names import Name

__all__ = ["yunikorn"]

_SCHEDULER = "yunikorn"
_QUEUE = "yunikorn.apache.org/queue"
_APPLICATION = "yunikorn.apache.org/app-id"


@transformer(atomic=True, queue=True)
def yunikorn(
    workload: Workload, task: TaskContext, *, queue: Name, application_id: Name | None = None
) -> None:
    """Let YuniKorn schedule the pods, through one of its queues.

    The queue is the application's, and pods without an application are all of one, so each workload
    is made one of its own. For a task of Flyte that waits for the execution to be known, unless
    `application_id` is given. Spark's applications have an id of their own.

    Args:
        workload: the workload.
        task: what is known of its task.
        queue: the queue, such as `root.speech`.
        application_id: the application; by default the execution and its node, else the object's
            name.
    """
    require_root(workload)
    wanted = {_QUEUE: queue}
    if application_id is not None:
        wanted[_APPLICATION] = application_id
    elif workload.api_group != "sparkoperator.k8s.io":
        name = node_name(workload, task) or workload.get("metadata", "name")
        if isinstance(name, str):
            wanted[_APPLICATION] = name
        else:
            workload.warn(
                "it has no name yet, so that YuniKorn makes it a part of its namespace's own "
                "application, in whichever queue that is; give `application_id`",
                "metadata.labels",
            )
    place_by(workload, _SCHEDULER)
    for target in targets(workload, None):
        for key, value in wanted.items():
            target.label(key, value)
