"""Fields that say how many processes a pod runs: often one for each of its GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubetailor.registry import Workload
from kubetailor.workloads import Path
from kubetailor.workloads.draft import dotted

__all__ = ["Count", "say_processes"]

_Fields = tuple[tuple[str, Path], ...]

_OF_KINDS: Final[dict[str, _Fields]] = {
    # kubeflow/trainer, pkg/apis/trainer/v1alpha1/trainjob_types.go, `Trainer`
    "TrainJob": (("node", ("spec", "trainer", "numProcPerNode")),),
    # kubeflow/trainer v1 and kubeflow/mpi-operator, `MPIJobSpec`
    "MPIJob": (("worker", ("spec", "slotsPerWorker")),),
    # kubeflow/trainer v1, pkg/apis/kubeflow.org/v1/pytorch_types.go
    "PyTorchJob": (
        ("worker", ("spec", "elasticPolicy", "nProcPerNode")),
        ("worker", ("spec", "nprocPerNode")),
    ),
}
_OF_TASK_TYPES: Final[dict[str, _Fields]] = {
    # flyteidl/plugins/kubeflow/pytorch.proto and mpi.proto
    "pytorch": (("worker", ("custom", "elasticConfig", "nprocPerNode")),),
    "mpi": (("worker", ("custom", "slots")),),
}
"""Kind or task type -> the role whose pods run that many, and the field."""


class Count(NamedTuple):
    """What became of the GPUs of some pods.

    Attributes:
        roles: the roles of these.
        before: how many each asked for.
        after: how many it asks for now.
    """

    roles: tuple[str, ...]
    before: int
    after: int


def say_processes(workload: Workload, counts: Iterable[Count]) -> None:
    """Warn of each number of processes that was that of the GPUs, and is not any more.

    Whether one follows from the other is the author's to know: nothing is changed.

    Args:
        workload: the workload.
        counts: what became of the GPUs.
    """
    is_task = workload.is_task_template
    fields = _OF_TASK_TYPES if is_task else _OF_KINDS
    key = workload.get("type") if is_task else workload.kind_name
    of_roles = [each for each in counts if each.before != each.after]
    for role, path in fields.get(str(key), ()):
        number = workload.draft.get(path)
        for count in of_roles:
            if role in count.roles and str(number) == str(count.before):
                workload.warn(
                    f"{path[-1]} stays {number}, which was the number of GPUs; {role} has "
                    f"{count.after} now: if it is to follow, set it in a step before this one, "
                    f"with `{'task_config' if is_task else 'patch'}`",
                    dotted(path),
                )
                break
