"""What a Flyte task's own command says of its workers, and has to say with its task config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kubetailor.registry import Pod, Workload
from kubetailor.workloads import Path

__all__ = ["Workers", "follow_workers", "workers_of"]

_WORKERS: Final[Path] = ("custom", "workerReplicas")
_ELASTIC: Final[Path] = ("custom", "elasticConfig")


class Workers(NamedTuple):
    """How many workers there are, and how many processes each has."""

    replicas: int
    slots: int


_MPI_FLAGS: Final[Mapping[str, Callable[[Workers], int]]] = {
    "-np": lambda workers: workers.replicas * workers.slots,
    "--min-np": lambda workers: workers.replicas * workers.slots,
    "--max-np": lambda workers: workers.replicas * workers.slots,
    "--slots-per-host": lambda workers: workers.slots,
}
"""What flytekit writes into the command (flytekitplugins-kfmpi, `get_command`)."""


def workers_of(workload: Workload) -> Workers | None:
    """The workers of a task whose command or code says how many there are; None for others."""
    kind = workload.get("type")
    if kind == "mpi":
        spec = workload.get(*_WORKERS) or {}
        return Workers(_whole((spec.get("common") or spec).get("replicas")), _slots(workload))
    elastic = workload.get(*_ELASTIC) if kind == "pytorch" else None
    if elastic is None:
        return None
    return Workers(_whole(elastic.get("maxReplicas")), _whole(elastic.get("nprocPerNode")))


def follow_workers(workload: Workload, before: Workers | None) -> None:
    """Let the command of a task say what its task config says, or say that it will not.

    Args:
        workload: the task.
        before: what the task config said before.
    """
    after = workers_of(workload)
    if before is None or after is None or before == after:
        return
    if workload.get("type") == "mpi":
        _follow_mpi(workload, before, after)
        return
    workload.warn(
        "the task's code gives its own nnodes and nproc_per_node to torch (flytekitplugins-"
        "kfpytorch, Elastic): whatever the job has, it waits for that many nodes, unless its "
        "nnodes is a range that holds them",
        "custom.elasticConfig",
    )


def _follow_mpi(workload: Workload, before: Workers, after: Workers) -> None:
    for pod in workload.pods()[:1]:
        for container in pod.containers:
            args = _args(pod, container.name)
            followed = [_followed(args, index, before, after) for index in range(len(args))]
            if followed != args:
                container.edit("args", empty=list)[:] = followed
    if before.slots != after.slots:
        workload.warn(
            "FlytePropeller does not read slots of a task of this version: its MPIJob keeps one "
            "slot for each worker",
            "custom.slots",
        )


def _args(pod: Pod, container: str) -> list[Any]:
    entries = pod.get("containers") or []
    return next(entry.get("args") or [] for entry in entries if entry.get("name") == container)


def _followed(args: list[Any], index: int, before: Workers, after: Workers) -> Any:
    count = _MPI_FLAGS.get(args[index - 1]) if index else None
    if count is None or args[index] != str(count(before)):
        return args[index]
    return str(count(after))


def _slots(workload: Workload) -> int:
    return _whole(workload.get("custom", "slots")) or 1


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
