"""Containers that run beside the one that does the work.

https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
"""

from __future__ import annotations

from kubetailor.registry import CannotChangeError, ConflictError, Pod, transformer
from kubetailor.transformers._pod_types import Container
from kubetailor.transformers.types import names_to_remove
from kubetailor.workloads.primary import PRIMARY_ANNOTATIONS

__all__ = ["sidecars"]

_FLYTE_PRIMARY, _DEFAULT_CONTAINER = PRIMARY_ANNOTATIONS
_RAW, _POD_TASK = "raw-container", "sidecar"
"""Flyte's types of a ContainerTask, and of a Pod task, for which it always tells itself."""
_JOBS = "kubeflow.org"
"""Kubeflow's replicas have their restart policy beside the pod template, and run to an end."""


@transformer
def sidecars(
    pod: Pod,
    *,
    add: list[Container] | None = None,
    remove: list[str] | None = None,
    replace: bool = False,
) -> None:
    """Add and remove containers that run beside the primary one.

    One with ``restartPolicy: Always`` is a native sidecar: Kubernetes starts it before the others,
    in the order of the init containers, and ends it after them. Any other keeps its pod from
    ending until it ends itself, of which a warning tells. On a Flyte task of one container the
    annotation `primary_container_name` is set beside it, so that the task ends with that one.

    Args:
        pod: the pod.
        add: containers as Kubernetes writes them.
        remove: names of sidecars that go, native ones too, save what is added.
        replace: put one in place of another container of the same name; otherwise that is an
            error.
    """
    primary, alone = _primary_name(pod), len(pod.containers) == 1
    removed = False
    for name in names_to_remove(remove, {container["name"] for container in add or ()}):
        if name == primary:
            raise CannotChangeError(
                f"{name!r} is the primary container, which runs the task", field=pod.where()
            )
        if name in _sidecars(pod):
            pod.remove_container(name)
            removed = True
    for container in add or ():
        if container["name"] == primary:
            raise ConflictError(
                f"{primary!r} is the primary container, which runs the task", field=pod.where()
            )
        native = container.get("restartPolicy") == "Always"
        pod.add_container(container, init=native, replace=replace)
        if not native:
            _let_end(pod, container["name"], primary, alone=alone)
    if removed and primary is not None and len(pod.containers) == 1 and pod.has_metadata:
        _say_no_more(pod, primary)


def _say_no_more(pod: Pod, primary: str) -> None:
    """Take off what said which of several containers is the primary one."""
    task = pod.workload.is_task_template
    for key in PRIMARY_ANNOTATIONS if task else (_DEFAULT_CONTAINER,):
        if pod.annotations.get(key) == primary:
            pod.unannotate(key)
            if _primary_name(pod) != primary:
                pod.annotate(key, primary)


def _primary_name(pod: Pod) -> str | None:
    try:
        return pod.primary.name
    except CannotChangeError:
        return None


def _sidecars(pod: Pod) -> set[str]:
    """The containers, and the init containers that run beside them."""
    native = [e for e in pod.get("initContainers") or () if e.get("restartPolicy") == "Always"]
    return {str(entry.get("name")) for entry in [*(pod.get("containers") or ()), *native]}


def _let_end(pod: Pod, name: str, primary: str | None, *, alone: bool) -> None:
    """See to it that the pod is done when the primary container is, or say that it is not."""
    workload = pod.workload
    if (
        workload.kind_name == "Pod"
        and not workload.is_child
        and _ends_with_primary(pod, alone, primary)
    ):
        return
    ends = workload.is_task_template or workload.api_group == _JOBS
    if pod.base is None and (ends or pod.peek("restartPolicy") in ("Never", "OnFailure")):
        workload.warn(
            f"the pod ends only when {name!r} does; with `restartPolicy: Always` it is a native "
            "sidecar, which Kubernetes ends",
            pod.where("containers"),
        )
    if primary is not None and _primary_name(pod) != primary and pod.has_metadata:
        pod.annotate(_DEFAULT_CONTAINER, primary)  # or later steps could not tell which it is


def _ends_with_primary(pod: Pod, alone: bool, primary: str | None) -> bool:
    """Whether Flyte ends the task with its primary container; it is told to, where it may be.

    FlytePropeller tells itself by an annotation for pods of one container, and otherwise waits for
    all (flyteplugins, plugins/k8s/pod/plugin.go, `BuildResource` and `DemystifyPodStatus`). Where
    there are several, what they do after the primary one may be wanted, and where data is loaded
    by copilot it is: that uploads the outputs.
    """
    workload = pod.workload
    if _FLYTE_PRIMARY in pod.annotations:
        return True
    if not workload.is_task_template:
        return False
    task_type = workload.get("type")
    target = workload.get("container") or workload.get("k8sPod") or {}
    if alone and primary and task_type != _RAW and not (target.get("dataConfig") or {}):
        pod.annotate(_FLYTE_PRIMARY, primary)
        return True
    return bool(task_type == _POD_TASK)
