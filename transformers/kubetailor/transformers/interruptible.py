"""Whether a Flyte task may be interrupted.

flyteidl/core/tasks.proto, `TaskMetadata.interruptible`.
"""

from __future__ import annotations

from kubetailor.registry import Workload, transformer
from kubetailor.transformers._task_fields import put

__all__ = ["interruptible"]


@transformer(task_templates=True)
def interruptible(workload: Workload, *, interruptible: bool | None) -> None:
    """Say whether a Flyte task may run where it can be interrupted, such as on spot nodes.

    Args:
        workload: the task.
        interruptible: as in `@task(interruptible=…)`; null leaves it to the workflow and the
            execution.
    """
    put(workload, ("metadata", "interruptible"), interruptible)
