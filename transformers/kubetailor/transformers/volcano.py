"""Volcano's scheduler and queue.

volcano-sh/volcano, staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/labels.go
(`QueueNameAnnotationKey`), and pkg/controllers/podgroup/pg_controller_handler.go
(`buildPodGroupFromPod`), which makes the pod group of pods that no operator made one for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubetailor.registry import DeferError, Workload, transformer
from kubetailor.transformers._queues import place_by, require_root
from kubetailor.transformers.labels import targets
from kubetailor.transformers.names import Name
from kubetailor.workloads import Path

__all__ = ["volcano"]

_SCHEDULER = "volcano"
_QUEUE = "scheduling.volcano.sh/queue-name"
_RAY_QUEUE = "volcano.sh/queue-name"
"""ray-project/kuberay, ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go:
a label of the object, unlike all others."""

_RUN_POLICY = ("spec", "runPolicy")
_SPARK: Mapping[tuple[str, str], Path] = {
    ("sparkoperator.k8s.io", "SparkApplication"): ("spec",),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): ("spec", "template"),
}


@transformer(atomic=True, queue=True)
def volcano(workload: Workload, *, queue: Name) -> None:
    """Let Volcano schedule the pods, through one of its queues.

    The queue is written where the kind's operator reads it when it makes the pod group, and as
    an annotation, for pods that Volcano itself makes one for. Kubeflow's and Spark's jobs have
    fields for it that no task of Flyte can set, so for these it waits for admission.

    Args:
        workload: the workload.
        queue: the Queue.
    """
    require_root(workload)
    fields = dict(_fields(workload, queue))
    if fields and workload.is_task_template:
        raise DeferError("the object itself")
    place_by(workload, _SCHEDULER)
    for target in targets(workload, None):
        target.annotate(_QUEUE, queue)
    if workload.api_group == "ray.io":
        workload.label(_RAY_QUEUE, queue)
    for path, value in fields.items():
        if workload.get(*path) != value:
            workload.edit(*path[:-1])[path[-1]] = value


def _fields(workload: Workload, queue: str) -> Iterator[tuple[Path, str]]:
    """The fields of an object by which its operator sends it to Volcano."""
    kind = (workload.api_group, workload.kind_name)
    if kind == ("batch.volcano.sh", "Job"):
        yield ("spec", "schedulerName"), _SCHEDULER
        yield ("spec", "queue"), queue
    elif workload.api_group == "kubeflow.org" and _has_run_policy(workload):
        # kubeflow/trainer v1.9, pkg/controller.v1/common/job.go, `ReconcileJobs`
        yield (*_RUN_POLICY, "schedulingPolicy", "queue"), queue
    elif (spec := _SPARK.get(kind)) is not None:
        # kubeflow/spark-operator, internal/scheduler/volcano/scheduler.go
        yield (*spec, "batchScheduler"), _SCHEDULER
        yield (*spec, "batchSchedulerOptions", "queue"), queue


def _has_run_policy(workload: Workload) -> bool:
    """Whether it is a job of the training operator, whose kinds are all suspended by it."""
    return workload.is_task_template or (workload.kind.suspend or ())[:2] == _RUN_POLICY
