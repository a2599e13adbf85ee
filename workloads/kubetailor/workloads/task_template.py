"""A Flyte TaskTemplate in protobuf's JSON form (flyteidl/core/tasks.proto).

Its target is a container or a pod. A container is shown as the pod that flytekit would make of it
for an empty `pod_template` (flytekit/core/utils.py, `_serialize_pod_spec`), and becomes that pod
once a step changes what only a pod can say. Ray and Spark keep further pod specs in `custom`,
which their plugins lay over the task's own; Kubeflow's and Dask's keep image and resources of
their replicas there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, same
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.kinds import Kind
from kubetailor.workloads.metadata import MapName, Metadata
from kubetailor.workloads.pod import Pod

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["GPU_ALIAS", "TASK_TEMPLATE", "TaskTemplateKind", "as_pod_task", "container_as_pod"]

PRIMARY = "primary"
"""flytekit's name for the container of a `pod_template` that names none."""

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
_REPLICAS = {
    "pytorch": {"master": ("masterReplicas",), "worker": ("workerReplicas",)},
    "tensorflow": {
        "chief": ("chiefReplicas",),
        "worker": ("workerReplicas",),
        "ps": ("psReplicas",),
        "evaluator": ("evaluatorReplicas",),
    },
    "mpi": {"launcher": ("launcherReplicas",), "worker": ("workerReplicas",)},
    "dask": {"scheduler": ("scheduler",), "worker": ("workers",)},
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
_RESOURCE_NAMES = {
    "CPU": "cpu",
    "GPU": "gpu",
    "MEMORY": "memory",
    "EPHEMERAL_STORAGE": "ephemeral-storage",
}
_RESOURCE_ENUM = {**{v: k for k, v in _RESOURCE_NAMES.items()}, "nvidia.com/gpu": "GPU"}


def _resources_as_maps(resources: Any) -> JsonMap:
    """``{"requests": [{"name": "CPU", "value": "1"}]}`` as Kubernetes writes it."""
    found: JsonMap = {}
    for part in ("limits", "requests"):
        entries = (resources or {}).get(part) or []
        found[part] = {
            _RESOURCE_NAMES.get(entry.get("name"), str(entry.get("name"))): entry.get("value")
            for entry in entries
        }
    return found


def _resources_as_entries(resources: Any, like: Any) -> JsonMap:
    """The way back, in the order of `like`, new ones last."""
    found: JsonMap = {}
    for part in ("requests", "limits"):
        values = {_RESOURCE_ENUM[name]: value for name, value in resources.get(part, {}).items()}
        order = [entry.get("name") for entry in (like or {}).get(part) or []]
        names = [name for name in order if name in values]
        names += [name for name in values if name not in order]
        if names or part in (like or {}):
            found[part] = [{"name": name, "value": values[name]} for name in names]
    return found


def container_as_pod(container: JsonMap) -> JsonMap:
    """The K8sPod that flytekit makes of a task's container for an empty `pod_template`.

    Args:
        container: flyteidl.core.Container in JSON form.

    Returns:
        flyteidl.core.K8sPod in JSON form.
    """
    entry: JsonMap = {
        "env": [{"name": e["key"], "value": e.get("value", "")} for e in container.get("env") or []],
        "name": PRIMARY,
        "image": container.get("image"),
        "command": list(container.get("command") or []),
        "args": list(container.get("args") or []),
    }
    resources = _resources_as_maps(container.get("resources"))
    if resources["limits"] or resources["requests"]:
        entry["resources"] = resources
    pod: JsonMap = {"metadata": {}, "podSpec": {"containers": [entry]}}
    if "dataConfig" in container:
        pod["dataConfig"] = container["dataConfig"]
    return pod


def as_pod_task(template: JsonMap, later: JsonMap) -> JsonMap:
    """A version as a pod task, if a later version became one: so the two can be compared."""
    container = template.get("container")
    if not isinstance(container, dict) or "container" in later or "k8sPod" not in later:
        return template
    rest = {key: value for key, value in template.items() if key != "container"}
    config = {**(template.get("config") or {}), "primary_container_name": PRIMARY}
    return {**rest, "config": config, "k8sPod": container_as_pod(container)}


class ContainerTarget:
    """The pod that stands for a `container` target, and the way back into the template."""

    pod: Pod  # the view of it, set once that is made

    _FIELDS = frozenset({"env", "name", "image", "command", "args", "resources"})

    def __init__(self, container: JsonMap) -> None:
        self.before = container_as_pod(container)
        self.draft = Draft(self.before)

    def write_back(self, draft: Draft) -> None:
        """Put what changed into the template; the container becomes a pod if it must."""
        after = self.draft.checkpoint()
        if after is self.before or same(after, self.before):
            return
        container = draft.root["container"]
        if self._fits(after):
            self._put(draft, container, after["podSpec"]["containers"][0])
            self.before = after
            return
        lost = [key for key in ("config", "ports", "architecture") if container.get(key)]
        if lost:
            raise CannotChangeError(
                f"the task's container cannot become a pod: its {', '.join(lost)} would be lost",
                field="container",
            )
        template = draft.edit(())
        del template["container"]
        template["k8sPod"] = after
        draft.edit(("config",))["primary_container_name"] = PRIMARY
        workload = self.pod.workload
        workload.converted.remove(self)
        self.pod.move(draft, ("k8sPod", "podSpec"), _pod_metadata(workload, draft, ("k8sPod",)))
        self.draft.close()

    def _fits(self, pod: JsonMap) -> bool:
        """Whether a container can say it."""
        spec = pod["podSpec"]
        containers = spec.get("containers")
        if pod.get("metadata") or spec.keys() != {"containers"} or len(containers) != 1:
            return False
        entry = containers[0]
        env = entry.get("env") or []
        resources = entry.get("resources") or {}
        return (
            entry.keys() <= self._FIELDS
            and all(e.keys() == {"name", "value"} for e in env)
            and len({e["name"] for e in env}) == len(env)
            and resources.keys() <= {"limits", "requests"}
            and all(values.keys() <= _RESOURCE_ENUM.keys() for values in resources.values())
        )

    def _put(self, draft: Draft, container: JsonMap, entry: JsonMap) -> None:
        before = self.before["podSpec"]["containers"][0]
        new = draft.edit(("container",))
        for field in ("image", "command", "args"):
            if entry.get(field) is not before.get(field):
                new[field] = entry.get(field)
        if entry.get("env") is not before.get("env"):
            new["env"] = [{"key": e["name"], "value": e["value"]} for e in entry.get("env") or []]
        if entry.get("resources") is not before.get("resources"):
            new["resources"] = _resources_as_entries(
                entry.get("resources") or {}, container.get("resources")
            )


class ReplicaTarget:
    """Image and resources that `custom` holds for one role, shown as a pod."""

    def __init__(self, path: Path, replica: JsonMap) -> None:
        self.path = path
        entry: JsonMap = {"name": PRIMARY}
        if replica.get("image"):
            entry["image"] = replica["image"]
        resources = _resources_as_maps(replica.get("resources"))
        entry["resources"] = {part: values for part, values in resources.items() if values}
        self.before = {"podSpec": {"containers": [entry]}}
        self.draft = Draft(self.before)

    def write_back(self, draft: Draft) -> None:
        """Put image and resources back; anything else has no place here."""
        after = self.draft.checkpoint()
        if after is self.before:
            return
        spec = after["podSpec"]
        entry, old = spec["containers"][0], self.before["podSpec"]["containers"][0]
        if spec.keys() != {"containers"} or not entry.keys() <= {"name", "image", "resources"}:
            raise CannotChangeError(
                "a replica of a task template has an image and resources alone", field="custom"
            )
        if entry.get("image") != old.get("image"):
            draft.edit(self.path)["image"] = entry.get("image")
        if not same(entry.get("resources"), old.get("resources")):
            like = draft.get((*self.path, "resources"))
            unknown = [
                name
                for values in entry["resources"].values()
                for name in values
                if name not in _RESOURCE_ENUM
            ]
            if unknown:
                raise CannotChangeError(
                    f"a replica of a task template cannot ask for {', '.join(unknown)}; it knows "
                    f"{', '.join(_RESOURCE_ENUM)}",
                    field="custom",
                )
            draft.edit(self.path)["resources"] = _resources_as_entries(entry["resources"], like)
        self.before = after


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

    def object_kind(self, root: JsonMap) -> str:
        """The kind of the object that FlytePropeller makes of it (``Pod`` where it is not known)."""
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
        if _object_is_pod(workload.draft.root):
            below = (("k8sPod", "metadata"),)
        found = workload.metadata_at(workload.draft, ("metadata", "metadata"), below=below)
        assert found is not None
        return found

    def check_change(self, before: JsonMap, after: JsonMap) -> None:
        """Spark's plugin takes only some fields of the task's pod.

        Source: flyteplugins/go/tasks/plugins/k8s/spark/spark.go, `createSparkPodSpec`.
        """
        if after.get("type") != "spark":
            return
        old, new = _pod_spec(before), _pod_spec(after)
        pairs = [(old, new, _SPARK_READS, "podSpec")]
        if old.get("containers") and new.get("containers"):
            pairs.append((old["containers"][0], new["containers"][0], _SPARK_CONTAINER, "container"))
        for had, has, reads, where in pairs:
            for name in {**had, **has}:
                if name not in reads and not same(had.get(name), has.get(name)):
                    raise CannotChangeError(
                        f"{name} of a Spark task's {where} is not read by Flyte's Spark plugin; "
                        f"it reads {', '.join(sorted(reads))}",
                        field=where,
                    )

    def find_pods(self, workload: Workload) -> list[Pod]:
        """The task's own pod first, then those laid over it."""
        root = workload.draft.root
        container, pod = root.get("container"), root.get("k8sPod")
        target: ContainerTarget | None = None
        if isinstance(container, dict):
            target = ContainerTarget(container)
            workload.converted.append(target)
            draft, place = target.draft, ()
        elif isinstance(pod, dict) and isinstance(pod.get("podSpec"), dict):
            draft, place = workload.draft, ("k8sPod",)
        else:
            return []
        base = Pod(
            workload,
            draft,
            (*place, "podSpec"),
            roles=tuple(_roles(root)),
            metadata=_pod_metadata(workload, draft, place),
        )
        if target is not None:
            target.pod = base
        return [base, *self._overlays(workload, base), *self._replicas(workload, base)]

    @staticmethod
    def _overlays(workload: Workload, base: Pod) -> Iterator[Pod]:
        for path, role, containers in _overlay_places(workload.draft.root):
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
        for role, fields in _REPLICAS.get(str(workload.draft.root.get("type")), {}).items():
            path = ("custom", *fields)
            replica = workload.draft.get(path)
            if isinstance(replica, dict) and (replica.get("resources") or replica.get("image")):
                target = ReplicaTarget(path, replica)
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


def _object_is_pod(root: JsonMap) -> bool:
    # The legacy array plugin leaves `metadata.metadata` out (flyteplugins, plugins/array/k8s).
    return root.get("type") not in _KINDS and root.get("type") != "container_array"


def _pod_metadata(workload: Workload, draft: Draft, place: Path) -> Metadata | None:
    """The labels of the task's own pod: the object's, where the object is the pod."""
    if _object_is_pod(workload.draft.root):
        return workload.metadata
    return workload.metadata_at(draft, (*place, "metadata"))


def _pod_spec(root: JsonMap) -> JsonMap:
    container = root.get("container")
    pod = container_as_pod(container) if isinstance(container, dict) else root.get("k8sPod")
    return (pod or {}).get("podSpec") or {}


def _roles(root: JsonMap) -> Iterator[str]:
    """The roles that the task's own pod spec serves."""
    kind = str(root.get("type"))
    custom: Mapping[str, Any] = root.get("custom") or {}
    if kind == "pytorch":
        if not custom.get("elasticConfig"):
            yield "master"
        yield "worker"
    elif kind == "tensorflow":
        for role, (field,) in _REPLICAS[kind].items():
            if (custom.get(field) or {}).get("replicas"):
                yield role
    elif kind == "mpi":
        yield from ("launcher", "worker")
    elif kind == "ray":
        yield "head"
        for group in (custom.get("rayCluster") or {}).get("workerGroupSpec") or []:
            yield f"worker:{group.get('groupName')}"
        yield "submitter"
    elif kind == "spark":
        yield from ("driver", "executor")
    elif kind == "dask":
        yield from ("job-runner", "scheduler", "worker")
    else:
        yield "primary"


def _overlay_places(root: JsonMap) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    """The (path, role, container names) of the K8sPods that `custom` may hold."""
    custom: Json = root.get("custom")
    if not isinstance(custom, dict):
        return
    if root.get("type") == "ray":
        cluster = ("custom", "rayCluster")
        yield (*cluster, "headGroupSpec", "k8sPod"), "head", ("ray-head",)
        groups = (custom.get("rayCluster") or {}).get("workerGroupSpec") or []
        for index, group in enumerate(groups):
            path = (*cluster, "workerGroupSpec", index, "k8sPod")
            yield path, f"worker:{group.get('groupName')}", ("ray-worker",)
    elif root.get("type") == "spark":
        yield ("custom", "driverPod"), "driver", ("spark-kubernetes-driver",)
        yield ("custom", "executorPod"), "executor", ("spark-kubernetes-executor",)


TASK_TEMPLATE = TaskTemplateKind("TaskTemplate", "flyte", metadata=("metadata", "metadata"))
