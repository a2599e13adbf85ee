"""The cache of a Flyte task.

flyteidl/core/tasks.proto, `TaskMetadata.discoverable` and what goes with it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from kubetailor.registry import CannotChangeError, Workload, transformer
from kubetailor.transformers._task_fields import put
from kubetailor.transformers.types import String

__all__ = ["cache"]


def _not_empty(version: str) -> str:
    if not version:
        raise ValueError("a version must not be empty")
    return version


Version = Annotated[String, AfterValidator(_not_empty)]


@transformer(atomic=True, task_templates=True)
def cache(
    workload: Workload,
    *,
    cache: bool | None = None,
    version: Version | None = None,
    serialize: bool | None = None,
    ignored_inputs: list[str] | None = None,
) -> None:
    """Turn the cache of a Flyte task on or off, or give it another version.

    The parameters are those of flytekit's `@task(cache=…)` and `Cache(…)`; what is not given stays.
    Off means that the task runs again, and that what it returns is not kept; its version stays, for
    a later step that turns the cache on again.

    Args:
        workload: the task.
        cache: whether it is on; by default as the task has it.
        version: another version is another cache. A task without one needs it where the cache is
            turned on.
        serialize: of executions with the same inputs, let one run and the others wait for it.
        ignored_inputs: inputs that do not count for what is the same.
    """
    there = workload.get("metadata") or {}
    on = bool(there.get("discoverable")) if cache is None else cache
    if cache is False and (serialize or ignored_inputs):
        raise CannotChangeError(
            "flytekit takes serialize and ignored_inputs only with a cache: leave them out",
            field="metadata.discoverable",
        )
    if on and not (version or there.get("discoveryVersion")):
        raise CannotChangeError(
            "a cache needs a version, and the task has none: give `version`",
            field="metadata.discoveryVersion",
        )
    if not (on or cache is False):
        return  # a version or more for a task that caches nothing
    wanted = {
        "discoverable": on or None,
        "discoveryVersion": version or there.get("discoveryVersion") or None,
        "cacheSerializable": there.get("cacheSerializable") if serialize is None else serialize,
        "cacheIgnoreInputVars": there.get("cacheIgnoreInputVars")
        if ignored_inputs is None
        else ignored_inputs,
    }
    for field, value in wanted.items():
        kept = value if on or field == "discoveryVersion" else None
        put(workload, ("metadata", field), kept or None)
