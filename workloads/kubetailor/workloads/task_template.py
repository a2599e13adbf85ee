"""A Flyte TaskTemplate in protobuf's JSON form (flyteidl/core/tasks.proto).

Its target is a container or a pod. A container is shown as the pod that flytekit would make of it
for an empty `pod_template` (flytekit/core/utils.py, `_serialize_pod_spec`), with the
`terminationMessagePolicy` that FlytePropeller gives to containers of its own alone, and becomes
that pod once a step changes what only a pod can say. Ray and Spark keep further pod specs in
`custom`, which their plugins lay over the task's own; Kubeflow's and Dask's keep image and
resources of their replicas there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubetailor.workloads.draft import Draft, JsonMap, Path, same, value_at
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.kinds import Kind
from kubetailor.workloads.metadata import MapName, Metadata
from kubetailor.workloads.pod import Pod
from kubetailor.workloads.task_overlay import check_containers, check_terms, without_base
from kubetailor.workloads.task_pods import REPLICAS, overlay_places, own_roles
from kubetailor.workloads.task_target import (
    PRIMARY,
    ContainerTarget,
    ReplicaTarget,
    container_as_pod,
)

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["GPU_ALIAS", "TASK_TEMPLATE", "TaskTemplateKind", "object_is_pod"]

GPU_ALIAS = {"nvidia.com/gpu": "gpu"}
"""flytekit writes `gpu` for what FlytePropeller makes `nvidia.com/gpu`
(flyteplugins, flytek8s/container_helper.go, `ResourceNvidiaGPU`)."""

_KINDS = {
    "pytorch": ("PyTorchJob", "kubeflow.org"),
    "tensorflow": ("TFJob", "kubeflow.org"),
    "mpi": ("MPIJob", "kubeflow.org"),
    "ray": ("RayJob", "ray.io"),
    "spark": ("SparkApplication", "sparkoperator.k8s.io"),
    "dask": ("DaskJob", "kubernetes.dask.org"),
}
_SPARK_READS = frozenset(
    {
        "affinity",
        "containers",
        "dnsConfig",
        "hostNetwork",
        "nodeSelector",
        "priorityClassName",
        "schedulerName",
        "securityContext",
        "tolerations",
    }
)
_SPARK_CONTAINER = frozenset({"env", "image", "name", "securityContext"})


class OverlayMetadata(Metadata):
    """Labels of a Ray or Spark group, which beat the execution's own.

    They reach the pods from the task's own pod too, so an entry here is only taken off.
    """

    __slots__ = ()

    def set(self, name: MapName, key: str, value: str) -> None:
        """Take off the group's own entry of the key."""
        self.remove(name, key)


@dataclass(frozen=True)
class TaskTemplateKind(Kind):
    """The row of the Flyte TaskTemplate."""

    @property
    def identity(self) -> tuple[Path, ...]:
        """Its id and its type."""
        return ("id",), ("type",)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of all types of task."""
        types = ("container", *_KINDS)
        found = [
            role for name in types for role in (*own_roles({"type": name}), *REPLICAS.get(name, ()))
        ]
        return tuple(dict.fromkeys(found))

    def object_kind(self, root: JsonMap) -> str:
        """The kind of the object that FlytePropeller makes of it; ``Pod`` where not known."""
        return _KINDS.get(str(root.get("type")), ("Pod", ""))[0]

    def object_group(self, root: JsonMap) -> str:
        """The API group of that object."""
        return _KINDS.get(str(root.get("type")), ("Pod", ""))[1]

    def controls_kueue(self, root: JsonMap) -> bool:
        """All but Dask's, which Kueue does not know."""
        return root.get("type") != "dask" and ("container" in root or "k8sPod" in root)

    def object_metadata(self, workload: Workload) -> Metadata:
        """``metadata.metadata``, which reaches the object alone (`@task(labels=…)`)."""
        below: tuple[Path, ...] = ()
        if object_is_pod(workload.draft.root.get("type")):
            below = (("k8sPod", "metadata"),)
        found = workload.metadata_at(workload.draft, ("metadata", "metadata"), below=below)
        assert found is not None
        return found

    def check_change(self, before: JsonMap, after: JsonMap) -> None:
        """Spark's plugin takes only some fields of the task's pod, and Ray's sets one itself.

        Sources: flyteplugins/go/tasks/plugins/k8s/spark/spark.go, `createSparkPodSpec`, and
        ray/ray.go, `BuildResource`.
        """
        if after.get("type") == "ray":
            _check_ray(_pod_spec(before), _pod_spec(after))
        if after.get("type") != "spark":
            return
        old, new = _pod_spec(before), _pod_spec(after)
        primary = str((after.get("config") or {}).get("primary_container_name") or PRIMARY)
        was, now = _by_name(old), _by_name(new)
        for name in {**was, **now}:
            if name != primary and not same(was.get(name), now.get(name)):
                raise CannotChangeError(
                    f"the container {name!r} is not read by Flyte's Spark plugin; it reads the "
                    f"primary one, {primary!r}",
                    field="podSpec.containers",
                )
        pairs = (
            (old, new, _SPARK_READS, "podSpec"),
            (was.get(primary, {}), now.get(primary, {}), _SPARK_CONTAINER, "container"),
        )
        for had, has, reads, where in pairs:
            for name in {**had, **has}:
                if name not in reads and not same(had.get(name), has.get(name)):
                    raise CannotChangeError(
                        f"{name} of a Spark task's {where} is not read by Flyte's Spark plugin; "
                        f"it reads {', '.join(sorted(reads))}",
                        field=where,
                    )

    def settle(self, workload: Workload, at: Path = ()) -> None:
        """What a step wrote into the task's own pod is not laid over it once more."""
        root, before = workload.draft.root, workload.committed
        for path, role, (over,) in overlay_places(root):
            place = (*path, "podSpec")
            was, now = value_at(before, place), value_at(root, place)
            if not isinstance(now, dict):
                continue
            if now is not was:
                primary = (root.get("config") or {}).get("primary_container_name") or PRIMARY
                kept = without_base(now, was, _pod_spec(root), str(primary), over=over)
                if kept is not now:
                    workload.draft.put(place, kept)
                    now = kept
            check_terms(now, _pod_spec(before), _pod_spec(root), role)
            check_containers(now, was if isinstance(was, dict) else {}, _pod_spec(root), role, over)

    def find_pods(self, workload: Workload, at: Path = ()) -> list[Pod]:
        """The task's own pod first, then those laid over it."""
        root = workload.draft.root
        container, pod = root.get("container"), root.get("k8sPod")

        def becomes_pod(moved_to: Draft) -> None:
            workload.converted.remove(target)
            workload.forget_pods()
            metadata = _pod_metadata(workload, moved_to, ("k8sPod",))
            base.move(moved_to, ("k8sPod", "podSpec"), metadata)

        place: Path = ()
        if isinstance(container, dict):
            target = ContainerTarget(root, becomes_pod)
            workload.converted.append(target)
            draft = target.draft
        elif isinstance(pod, dict) and isinstance(pod.get("podSpec"), dict):
            draft, place = workload.draft, ("k8sPod",)
        else:
            return []
        base = Pod(
            workload,
            draft,
            (*place, "podSpec"),
            roles=tuple(own_roles(root)),
            metadata=_pod_metadata(workload, draft, place),
        )
        return [base, *self._overlays(workload, base), *self._replicas(workload, base)]

    @staticmethod
    def _overlays(workload: Workload, base: Pod) -> Iterator[Pod]:
        for path, role, containers in overlay_places(workload.draft.root):
            if isinstance(workload.draft.get((*path, "podSpec")), dict):
                yield Pod(
                    workload,
                    workload.draft,
                    (*path, "podSpec"),
                    roles=(role,),
                    metadata=OverlayMetadata(
                        workload.draft, (*path, "metadata"), workload.note_write
                    ),
                    primary_names=containers,
                    base=base,
                )

    @staticmethod
    def _replicas(workload: Workload, base: Pod) -> Iterator[Pod]:
        for role, fields in REPLICAS.get(str(workload.draft.root.get("type")), {}).items():
            path = ("custom", *fields)
            replica = workload.draft.get(path)
            if isinstance(replica, dict) and (replica.get("resources") or replica.get("image")):
                target = ReplicaTarget(path, replica, lambda: _resources_of(base))
                workload.converted.append(target)
                yield Pod(
                    workload,
                    target.draft,
                    ("podSpec",),
                    roles=(role,),
                    metadata=None,
                    base=base,
                    is_replica=True,
                )


def object_is_pod(task_type: Any) -> bool:
    """Whether the object that a type of task makes is its pod, and gets the object's metadata."""
    # The legacy array plugin leaves `metadata.metadata` out (flyteplugins, plugins/array/k8s).
    return task_type not in _KINDS and task_type != "container_array"


def _pod_metadata(workload: Workload, draft: Draft, place: Path) -> Metadata | None:
    """The labels of the task's own pod: the object's, where the object is the pod."""
    if object_is_pod(workload.draft.root.get("type")):
        return workload.metadata
    return workload.metadata_at(draft, (*place, "metadata"))


def _pod_spec(root: JsonMap) -> JsonMap:
    container = root.get("container")
    pod = container_as_pod(root) if isinstance(container, dict) else root.get("k8sPod")
    return (pod or {}).get("podSpec") or {}


def _check_ray(before: JsonMap, after: JsonMap) -> None:
    field = "serviceAccountName"
    if not same(before.get(field), after.get(field)):
        raise CannotChangeError(
            f"{field} of a Ray task's own pod is not read: Flyte's Ray plugin puts the service "
            "account of the execution there; set it at admission (`when: {phase: admit}`)",
            field=f"podSpec.{field}",
        )


def _resources_of(pod: Pod) -> JsonMap:
    try:
        return pod.primary.resources
    except CannotChangeError:
        return {}


def _by_name(spec: JsonMap) -> dict[str, JsonMap]:
    return {str(c.get("name")): c for c in spec.get("containers") or [] if isinstance(c, dict)}


TASK_TEMPLATE = TaskTemplateKind(
    "TaskTemplate", "flyte", metadata=("metadata", "metadata"), queue=True
)
