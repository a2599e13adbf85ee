"""SparkApplication: its driver and executor are not pod templates.

https://github.com/kubeflow/spark-operator/blob/master/docs/api-docs.md (SparkPodSpec)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubetailor.workloads.draft import Draft, JsonMap, Path, same
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.kinds import Kind
from kubetailor.workloads.pod import Pod
from kubetailor.workloads.quantity import parse_quantity

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["SPARK_APPLICATION", "SparkKind"]

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
    "ports": "ports",
    "securityContext": "securityContext",
    "volumeMounts": "volumeMounts",
}
_NAMES = {"driver": "spark-kubernetes-driver", "executor": "spark-kubernetes-executor"}


def _read(root: JsonMap, role: str) -> JsonMap:
    part = root["spec"][role]
    spec: JsonMap = {name: part[own] for name, own in _POD.items() if own in part}
    container: JsonMap = {"name": _NAMES[role]}
    container.update({name: part[own] for name, own in _CONTAINER.items() if own in part})
    gpu = part.get("gpu")
    if isinstance(gpu, dict) and gpu.get("name"):
        container["resources"] = {"limits": {gpu["name"]: str(gpu.get("quantity", 0))}}
    spec["containers"] = [container, *(part.get("sidecars") or [])]
    if "volumes" in root["spec"]:
        spec["volumes"] = root["spec"]["volumes"]
    metadata = {name: part[name] for name in ("labels", "annotations") if name in part}
    return {"metadata": metadata, "spec": spec}


class SparkTarget:
    """The pod that stands for a driver or an executor, and the way back."""

    def __init__(self, root: JsonMap, role: str) -> None:
        self.role: str = role
        self.before: JsonMap = _read(root, role)
        self.draft: Draft = Draft(self.before)

    def write_back(self, draft: Draft) -> None:
        """Put what changed where the operator reads it, or raise CannotChangeError."""
        after = self.draft.checkpoint()
        if after is self.before:
            return
        place: Path = ("spec", self.role)
        old, new = self.before["spec"], after["spec"]
        for name in {**old, **new}:
            if name not in ("containers", "volumes"):
                self._put(draft, place, _POD, name, old.get(name), new.get(name))
        self._put_volumes(draft, old.get("volumes") or [], new.get("volumes") or [])
        for name in ("labels", "annotations"):
            _move(
                draft, place, name, self.before["metadata"].get(name), after["metadata"].get(name)
            )
        self._put_containers(draft, place, old["containers"], new["containers"])
        self.before = after

    def _put(
        self, draft: Draft, place: Path, table: dict[str, str], name: str, old: Any, new: Any
    ) -> None:
        if same(old, new):
            return
        if name not in table:
            raise CannotChangeError(
                f"{name} of a {self.role} is not read by the Spark operator; it reads "
                f"{', '.join(sorted(table))}",
                field=f"spec.{self.role}",
            )
        _move(draft, place, table[name], old, new)

    @staticmethod
    def _put_volumes(draft: Draft, old: list[JsonMap], new: list[JsonMap]) -> None:
        """Driver and executor share one list, so only what this one changed is written."""
        if same(old, new):
            return
        wanted = {volume["name"]: volume for volume in new}
        gone = {volume["name"] for volume in old} - wanted.keys()
        written = {name: volume for name, volume in wanted.items() if volume not in old}
        there: list[JsonMap] = draft.get(("spec", "volumes")) or []
        kept = [written.pop(v["name"], v) for v in there if v["name"] not in gone]
        draft.keep(("spec", "volumes"), [*kept, *written.values()])

    def _put_containers(self, draft: Draft, place: Path, old: Any, new: Any) -> None:
        for name in {**old[0], **new[0]}:
            if name == "resources":
                self._put_gpu(draft, place, old[0].get(name), new[0].get(name))
            elif name != "name":
                self._put(draft, place, _CONTAINER, name, old[0].get(name), new[0].get(name))
        if not same(old[1:], new[1:]):
            _move(draft, place, "sidecars", old[1:], new[1:])

    def _put_gpu(self, draft: Draft, place: Path, old: Any, new: Any) -> None:
        if same(old, new):
            return
        asked = {**((new or {}).get("requests") or {}), **((new or {}).get("limits") or {})}
        gpus = {name: value for name, value in asked.items() if "/" in name}
        if len(gpus) > 1 or gpus.keys() != asked.keys():
            raise CannotChangeError(
                f"resources of a {self.role}: the Spark operator reads one GPU resource here; "
                "cores and memory are Spark's own fields",
                field=f"spec.{self.role}",
            )
        if not gpus:
            draft.drop((*place, "gpu"))
        for name, value in gpus.items():
            gpu = draft.edit((*place, "gpu"))
            gpu["name"], gpu["quantity"] = name, int(parse_quantity(value))


def _move(draft: Draft, place: Path, field: str, old: Any, new: Any) -> None:
    if old is new or same(old, new):
        return
    if new is None:
        draft.drop((*place, field))
    else:
        draft.edit(place)[field] = new


@dataclass(frozen=True)
class SparkKind(Kind):
    """The row of SparkApplication."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Driver and executor."""
        return tuple(_NAMES)

    def find_pods(self, workload: Workload) -> list[Pod]:
        """Driver and executor, each as the pod that the operator makes of it."""
        found = []
        for role in ("driver", "executor"):
            if isinstance(workload.draft.get(("spec", role)), dict):
                target = SparkTarget(workload.draft.root, role)
                workload.converted.append(target)
                found.append(
                    Pod(
                        workload,
                        target.draft,
                        ("spec",),
                        roles=(role,),
                        metadata=workload.metadata_at(target.draft, ("metadata",)),
                        primary_names=(_NAMES[role],),
                    )
                )
        return found


SPARK_APPLICATION = SparkKind(
    "SparkApplication",
    "sparkoperator.k8s.io",
    queue=True,
    suspend=("spec", "suspend"),
)
