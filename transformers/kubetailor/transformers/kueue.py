"""Kueue's queue, and what goes with it.

https://kueue.sigs.k8s.io/docs/tasks/run/. The names are in kubernetes-sigs/kueue,
pkg/controller/constants/constants.go and apis/kueue/v1beta2/topology_types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from kubetailor.registry import CannotChangeError, DeferError, Pod, Workload, transformer
from kubetailor.transformers._scheduling_types import TopologyRequest
from kubetailor.transformers.names import Name
from kubetailor.transformers.types import Duration
from kubetailor.workloads import dotted
from kubetailor.workloads.duration import parse_duration

__all__ = ["LABELS", "QUEUE", "kueue", "no_queue"]

QUEUE = "kueue.x-k8s.io/queue-name"
_PRIORITY = "kueue.x-k8s.io/priority-class"
_EXECUTION_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
LABELS = frozenset({QUEUE, _PRIORITY, _EXECUTION_TIME})
"""What Kueue reads among the labels of the object alone."""

_TOPOLOGY = "kueue.x-k8s.io/podset-{}-topology"
_REQUESTS = ("required", "preferred", "unconstrained")
_EVERY = "*"
_LONGEST = 2**31 - 1


def _whole_seconds(duration: str) -> str:
    """pkg/controller/jobframework/validation.go, `validateCreateForMaxExecTime`."""
    seconds = parse_duration(duration)
    if not seconds or seconds % 1 or seconds > _LONGEST:
        raise ValueError(f"{duration} must be a whole number of seconds, from 1 to {_LONGEST}")
    return str(int(seconds))


@transformer(atomic=True, queue=True)
def kueue(
    workload: Workload,
    *,
    queue: Name,
    priority_class: Name | None = None,
    topology: dict[str, TopologyRequest] | None = None,
    max_execution_time: Annotated[Duration, AfterValidator(_whole_seconds)] | None = None,
    suspend: bool = False,
) -> None:
    """Send the workload through a queue of Kueue.

    The labels go on the object that Kueue manages, never on its pods: there, Kueue would take
    each of them for a workload of its own. As an annotation they would do nothing. Where they are
    in one of these places, they are taken off it.

    Args:
        workload: the workload.
        queue: the LocalQueue.
        priority_class: the WorkloadPriorityClass.
        topology: role -> `{required: LEVEL}`, `{preferred: LEVEL}` or `{unconstrained: true}`,
            what the pods of the role ask of topology-aware scheduling; LEVEL is a node label of the
            Topology, and the role `*` is every other. Of a workload without any of the roles, a
            warning says so.
        max_execution_time: how long it may run once it is admitted; Kueue then deactivates it.
            `90s`, `1h30m`, or a number of seconds.
        suspend: create it suspended, where its kind can be, as Kueue's own webhook does; Kueue
            starts it when it is admitted.
    """
    owner = workload.queue_owner
    if owner is None:
        raise CannotChangeError(no_queue(workload), field="metadata.labels")
    if suspend and workload.is_task_template and workload.kind_name != "Pod":
        raise DeferError("the object itself")
    wanted = {QUEUE: queue, _PRIORITY: priority_class, _EXECUTION_TIME: max_execution_time}
    for key, value in wanted.items():
        if value is not None:
            owner.set("labels", key, value)
            _take_off(workload, key)
    if topology is not None:
        _ask_for(workload, topology)
    if suspend and (path := workload.kind.suspend) and workload.get(*path) is not True:
        workload.edit(*path[:-1])[path[-1]] = True
    if suspend and workload.kind_name.endswith("SparkApplication"):
        workload.warn(
            "the CRD of Spark's operator has `suspend` from 2.4 on; with an older one the API "
            "server drops it, and the application is submitted at once",
            dotted(workload.kind.suspend or ()),
        )
    if workload.kind_name == "SparkApplication":
        workload.warn(
            "the Spark operator may copy owner labels to pods, which Kueue then takes for its own "
            "(kubeflow/spark-operator#2669)",
            "metadata.labels",
        )


def no_queue(workload: Workload) -> str:
    """What a message says of a workload without a `queue_owner`, and why it has none."""
    group = f" of {workload.api_group}" if workload.api_group else ""
    why = "its owner carries the queue" if workload.is_child else "Kueue does not manage it"
    return f"a {workload.kind_name}{group} takes no queue label: {why}"


def _take_off(workload: Workload, key: str) -> None:
    """Take a label off the places where Kueue reads it wrongly, or not at all."""
    for pod in workload.pods():
        if not pod.is_object and key in pod.labels:
            pod.unlabel(key)
            workload.warn(f"the label {key} is taken off the {pod.role} pods", pod.where())
    places: list[Workload | Pod] = [workload, *workload.pods()]
    for place in places:
        if key in place.annotations:
            place.unannotate(key)
            workload.warn(
                f"the annotation {key} is taken off: Kueue reads the label alone",
                "metadata.annotations",
            )


def _ask_for(workload: Workload, topology: Mapping[str, TopologyRequest]) -> None:
    """Write the topology requests where Kueue makes pod sets from: on the pod templates."""
    asked = False
    for pod in workload.pods():
        if pod.is_replica:
            continue
        found = [_request(topology, role) for role in pod.roles]
        if any(request != found[0] for request in found):
            raise DeferError("role")
        if found and found[0] is not None:
            asked = True
            _annotate(pod, found[0])
    if not asked:
        roles = sorted({role for pod in workload.pods() for role in pod.roles})
        workload.warn(
            f"no pod has a role of `topology`, {', '.join(topology) or 'which names none'}, so it "
            f"gets the queue alone; roles present: {', '.join(roles) or 'none'}; `*` is all"
        )


def _request(topology: Mapping[str, TopologyRequest], role: str) -> TopologyRequest | None:
    group = role.partition(":")[0]
    return topology.get(role, topology.get(group, topology.get(_EVERY)))


def _annotate(pod: Pod, request: TopologyRequest) -> None:
    """One request; Kueue refuses a pod set that has another beside it."""
    for name in _REQUESTS:
        value = request.get(name)
        if value is None:
            pod.unannotate(_TOPOLOGY.format(name))
        else:
            pod.annotate(_TOPOLOGY.format(name), "true" if value is True else str(value))
