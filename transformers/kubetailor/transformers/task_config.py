"""The task config of a Flyte task, which its plugin keeps in `custom`.

flyteidl/plugins/*.proto.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from kubetailor.registry import Workload, transformer
from kubetailor.transformers._replicas import Replicas, set_replicas
from kubetailor.transformers._task_command import follow_workers, workers_of
from kubetailor.transformers._task_config_fields import remove_field, set_fields

__all__ = ["task_config"]

Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


@transformer(task_templates=True)
def task_config(
    workload: Workload,
    *,
    set: dict[str, Any] | None = None,
    remove: list[str] | None = None,
    replicas: Count | None = None,
    min_replicas: Count | None = None,
    max_replicas: Count | None = None,
    role: str = "worker",
) -> None:
    """Change the task config of a Flyte task: how many workers it has, and what else is no pod's.

    Images, resources and pod specs in a task config are changed by the transformers of those.

    Args:
        workload: the task.
        set: fields as Flyte writes them: `{runPolicy: {backoffLimit: 3}}` (Kubeflow), `{slots: 2}`
            (MPI), `{elasticConfig: {nprocPerNode: 8}}` (Elastic), `{rayCluster: {enableAutoscaling:
            true}}` (Ray). Maps merge by key; null takes a field off.
        remove: fields that go: `runPolicy.backoffLimit`.
        replicas: how many there are of the role: workers of Kubeflow, MPI or Dask, nodes of
            Elastic, pods of Ray's groups.
        min_replicas: the least, of Elastic and of Ray with autoscaling.
        max_replicas: the most, of the same.
        role: the role; of Ray also `worker:<group>`, of TensorFlow also `ps`, `chief`, `evaluator`.
    """
    before = workers_of(workload)
    for name in remove or ():
        remove_field(workload, name)
    if set:
        set_fields(workload, set)
    wanted = Replicas(replicas, min_replicas, max_replicas)
    if wanted != Replicas(None, None, None):
        set_replicas(workload, role, wanted)
    follow_workers(workload, before)
