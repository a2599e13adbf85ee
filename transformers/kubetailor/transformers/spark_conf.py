"""Spark's configuration.

https://spark.apache.org/docs/latest/configuration.html
"""

from __future__ import annotations

from kubetailor.registry import CannotChangeError, Workload, transformer
from kubetailor.transformers._task_fields import put
from kubetailor.transformers.types import String, names_to_remove

__all__ = ["spark_conf"]

_PATH = ("custom", "sparkConf")


@transformer(task_templates=True)
def spark_conf(
    workload: Workload, *, set: dict[str, String] | None = None, remove: list[str] | None = None
) -> None:
    """Set and remove properties of a Flyte task's Spark conf.

    The number of executors is one of them, `spark.executor.instances`.

    Args:
        workload: the task.
        set: property -> value, as in `Spark(spark_conf={…})`.
        remove: properties that go.
    """
    if not (set or remove):
        return
    there = workload.get(*_PATH)
    if there is None and workload.get("type") != "spark":
        raise CannotChangeError(
            f"a task of type {workload.get('type')!r} has no Spark conf", field="custom.sparkConf"
        )
    for key in names_to_remove(remove, set):
        put(workload, (*_PATH, key), None)
    for key, value in (set or {}).items():
        put(workload, (*_PATH, key), value)
    if there and not workload.get(*_PATH):
        put(workload, _PATH, None)  # as protobuf writes an empty map
