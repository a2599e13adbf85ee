"""Plain pods that Kueue admits together.

https://kueue.sigs.k8s.io/docs/tasks/run/plain_pods/; the names are in kubernetes-sigs/kueue,
pkg/controller/jobs/pod/constants/constants.go.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kubetailor.registry import CannotChangeError, TaskContext, Workload, transformer
from kubetailor.transformers._queues import node_name
from kubetailor.transformers.names import ObjectLabel
from kubetailor.workloads.names import check_object_name

__all__ = ["pod_group"]

_GROUP = "kueue.x-k8s.io/pod-group-name"
_TOTAL = "kueue.x-k8s.io/pod-group-total-count"


@transformer(atomic=True, queue=True)
def pod_group(
    workload: Workload,
    task: TaskContext,
    *,
    count: Annotated[int, Field(ge=1, le=2**31 - 1)],
    name: ObjectLabel | None = None,
) -> None:
    """Let Kueue admit plain pods as one group, all of them or none.

    It is about pods that no other workload makes, such as those of a map task. They need the
    same queue too, which `kueue` gives them.

    Args:
        workload: the pod.
        task: what is known of its task.
        count: how many pods the group has; it waits until all are there.
        name: the group; by default the execution and its node.
    """
    if workload.kind_name != "Pod" or workload.api_group or workload.is_child:
        raise CannotChangeError(
            f"a {workload.title} is in no pod group: Kueue groups pods that are their own owners",
            field="metadata.labels",
        )
    group = name or node_name(workload, task)
    if group is None:
        raise CannotChangeError(
            "it is of no node of Flyte's that could name its group; give the group's `name`",
            field="metadata.labels",
        )
    workload.label(_GROUP, check_object_name(group))
    workload.annotate(_TOTAL, str(count))
