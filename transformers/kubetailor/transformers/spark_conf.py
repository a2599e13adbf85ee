"""Spark's configuration.

https://spark.apache.org/docs/latest/configuration.html
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from kubetailor.registry import CannotChangeError, Workload, transformer
from kubetailor.transformers._task_fields import put
from kubetailor.transformers.types import String, names_to_remove

__all__ = ["spark_conf"]

_PATH = ("custom", "sparkConf")


def _one_property(name: str) -> str:
    """The Spark operator makes words of a command of them, `NAME=VALUE`."""
    if not re.fullmatch(r"[^\s=]+", name):
        raise ValueError("the name of a property has neither spaces nor `=`, and is not empty")
    return name


Property = Annotated[str, AfterValidator(_one_property)]


@transformer(task_templates=True)
def spark_conf(
    workload: Workload,
    *,
    set: dict[Property, String] | None = None,
    remove: list[str] | None = None,
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
