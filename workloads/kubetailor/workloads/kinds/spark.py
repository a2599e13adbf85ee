"""SparkApplication and ScheduledSparkApplication: driver and executor are not pod templates.

https://github.com/kubeflow/spark-operator/blob/master/docs/api-docs.md (SparkPodSpec)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, value_at
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.kinds.laid_out import LaidOut, move, put_shared
from kubetailor.workloads.kinds.row import Kind
from kubetailor.workloads.pod import Pod
from kubetailor.workloads.quantity import parse_quantity

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["SCHEDULED_SPARK_APPLICATION", "SPARK_APPLICATION", "SparkKind"]

# Fields of SparkPodSpec that are a pod spec's own, by the pod spec's name.
_POD = {
    "affinity": "affinity",
    "dnsConfig": "dnsConfig",
    "hostAliases": "hostAliases",
    "hostNetwork": "hostNetwork",
    "initContainers": "initContainers",
    "nodeSelector": "nodeSelector",
    "priorityClassName": "priorityClassName",
    "schedulerName": "schedulerName",
    "securityContext": "podSecurityContext",
    "serviceAccountName": "serviceAccount",
    "shareProcessNamespace": "shareProcessNamespace",
    "terminationGracePeriodSeconds": "terminationGracePeriodSeconds",
    "tolerations": "tolerations",
}
_CONTAINER = {
    "env": "env",
    "envFrom": "envFrom",
    "image": "image",
    "lifecycle": "lifecycle",
    "ports": "ports",
    "securityContext": "securityContext",
    "volumeMounts": "volumeMounts",
}
_SHARED = ("volumes", "imagePullSecrets")
"""What driver and executor have of the application's; of the secrets it holds the names alone."""

_NAMES = {"driver": "spark-kubernetes-driver", "executor": "spark-kubernetes-executor"}


def _read(part: JsonMap, app: JsonMap, role: str) -> JsonMap:
    spec: JsonMap = {name: part[own] for name, own in _POD.items() if own in part}
    container: JsonMap = {"name": _NAMES[role]}
    container.update({name: part[own] for name, own in _CONTAINER.items() if own in part})
    gpu = part.get("gpu")
    if isinstance(gpu, dict) and gpu.get("name"):
        container["resources"] = {"limits": {gpu["name"]: str(gpu.get("quantity", 0))}}
    spec["containers"] = [container, *(part.get("sidecars") or [])]
    if "volumes" in app:
        spec["volumes"] = app["volumes"]
    if app.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": name} for name in app["imagePullSecrets"]]
    return {"spec": spec}


class SparkTarget(LaidOut):
    """The pod that stands for a driver or an executor."""

    reader = "the Spark operator"
    reads: ClassVar[Iterable[str]] = (*_POD, *_SHARED)

    def __init__(self, app: JsonMap, role: str, place: Path) -> None:
        super().__init__(role, place, _read(app[role], app, role), _NAMES[role])

    def put(self, draft: Draft, name: str, old: Json, new: Json) -> None:
        """Driver and executor share the volumes and the secrets."""
        above = (*self.place[:-1], name)
        if name == "volumes":
            put_shared(draft, above, old or [], new or [])
        elif name == "imagePullSecrets":
            was, now = ([entry["name"] for entry in part or []] for part in (old, new))
            kept = [name for name in draft.get(above) or [] if name in now or name not in was]
            draft.keep(above, [*kept, *(name for name in now if name not in kept)])
        elif name not in _POD:
            raise self.refused(name)
        else:
            move(draft, (*self.place, _POD[name]), new)

    def put_main(self, draft: Draft, name: str, new: Json) -> None:
        """Of the resources, the GPUs have a place."""
        if name == "resources":
            self._put_gpu(draft, new)
        elif name not in _CONTAINER:
            raise self.refused(name, _CONTAINER)
        else:
            move(draft, (*self.place, _CONTAINER[name]), new)

    def put_others(self, draft: Draft, old: list[Json], new: list[Json]) -> None:
        """The sidecars."""
        move(draft, (*self.place, "sidecars"), new)

    def _put_gpu(self, draft: Draft, new: Json) -> None:
        asked = {**((new or {}).get("requests") or {}), **((new or {}).get("limits") or {})}
        gpus = {name: value for name, value in asked.items() if "/" in name}
        if len(gpus) > 1 or gpus.keys() != asked.keys():
            raise CannotChangeError(
                f"resources of the {self.role}: the Spark operator reads one GPU resource here; "
                "cores and memory are Spark's own fields",
                field=f"spec.{self.role}",
            )
        if not gpus:
            draft.drop((*self.place, "gpu"))
        for name, value in gpus.items():
            gpu = draft.edit((*self.place, "gpu"))
            gpu["name"], gpu["quantity"] = name, int(parse_quantity(value))


@dataclass(frozen=True)
class SparkKind(Kind):
    """The row of a SparkApplication, or of what makes them.

    Attributes:
        app: where its SparkApplicationSpec is.
    """

    app: Path = ("spec",)

    @property
    def roles(self) -> tuple[str, ...]:
        """Driver and executor."""
        return tuple(_NAMES)

    @property
    def primary(self) -> tuple[str, ...]:
        """The containers that Spark makes."""
        return tuple(_NAMES.values())

    @property
    def reads(self) -> tuple[str, ...]:
        """What SparkPodSpec has."""
        return tuple(sorted({*_POD, *(f"containers.{name}" for name in _CONTAINER), *_SHARED}))

    def find_pods(self, workload: Workload, at: Path = ()) -> list[Pod]:
        """Driver and executor, each as the pod that the operator makes of it."""
        found = []
        app = value_at(workload.draft.root, (*at, *self.app))
        for role, name in _NAMES.items():
            if isinstance(value_at(app, (role,)), dict):
                target = SparkTarget(app, role, (*at, *self.app, role))
                metadata = workload.metadata_at(workload.draft, target.place)
                found.append(target.pod_of(workload, metadata, (name,)))
        return found


SPARK_APPLICATION = SparkKind(
    "SparkApplication",
    "sparkoperator.k8s.io",
    queue=True,
    suspend=("spec", "suspend"),
)
SCHEDULED_SPARK_APPLICATION = SparkKind(
    "ScheduledSparkApplication",
    "sparkoperator.k8s.io",
    app=("spec", "template"),
    # Its labels are copied to each SparkApplication (kubeflow/spark-operator,
    # internal/controller/scheduledsparkapplication/controller.go), and those Kueue manages.
    queue=True,
    suspend=("spec", "template", "suspend"),
)
