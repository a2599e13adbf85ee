"""The timeout of a Flyte task.

flyteidl/core/tasks.proto, `TaskMetadata.timeout`.
"""

from __future__ import annotations

from kubetailor.registry import Workload, transformer
from kubetailor.transformers._task_fields import put
from kubetailor.transformers.types import Duration
from kubetailor.workloads.duration import parse_duration

__all__ = ["timeout"]

_PATH = ("metadata", "timeout")


@transformer(task_templates=True)
def timeout(workload: Workload, *, timeout: Duration | None) -> None:
    """Limit how long one attempt of a Flyte task may take.

    FlytePropeller allows all attempts together, and the time in queues, twice as much.

    Args:
        workload: the task.
        timeout: `90s`, `1h30m`, or a number of seconds, as in `@task(timeout=…)`; null or 0 for no
            limit.
    """
    wanted = parse_duration(timeout) or None
    if (parse_duration(workload.get(*_PATH)) or None) != wanted:
        put(workload, _PATH, timeout if wanted else None)
