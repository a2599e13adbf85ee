"""Retries of a Flyte task.

flyteidl/core/tasks.proto, `TaskMetadata.retries`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kubetailor.registry import Workload, transformer
from kubetailor.transformers._task_fields import put

__all__ = ["retries"]

_MOST = 2**31 - 2
"""FlytePropeller counts attempts, one more, in 32 bits."""


@transformer(task_templates=True)
def retries(workload: Workload, *, retries: Annotated[int, Field(ge=0, le=_MOST)]) -> None:
    """Set how often a Flyte task is tried again when it fails.

    Args:
        workload: the task.
        retries: how often, as in `@task(retries=…)`; 0 is what a task has that says nothing.
    """
    if (workload.get("metadata", "retries", "retries") or 0) != retries:
        put(workload, ("metadata", "retries", "retries"), retries or None)
