"""KubeRay's kinds: what their groups say besides the pod templates follows these.

Sources: ray-project/kuberay, ray-operator/controllers/ray, common/pod.go and utils/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, dotted, unshared, value_at
from kubetailor.workloads.errors import CannotChangeError, InvalidObjectError
from kubetailor.workloads.kinds.pod_path import PodPath
from kubetailor.workloads.kinds.row import Kind
from kubetailor.workloads.quantity import parse_quantity

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["RAY_KINDS", "RayKind"]

_NUM_GPUS = "num-gpus"
_GPU = re.compile(r".*gpu|.*nvidia\.com/mig-\d+g\.\d+gb")  # utils/resources.go, IsGPUResourceKey


@dataclass(frozen=True)
class RayKind(Kind):
    """The row of a kind that holds a Ray cluster.

    Attributes:
        cluster: where its RayClusterSpec is.
    """

    cluster: Path = ("spec",)

    def settle(self, workload: Workload, at: Path = ()) -> None:
        """Let Ray's own count of GPUs follow that of the container that runs Ray.

        KubeRay takes it from there only where `rayStartParams` and the group's `resources` say
        none. A count of 0 keeps Ray's tasks off a group, and stays.
        """
        for path, was, now in self._groups(workload.committed, workload.draft.root, at):
            count = _gpus(now)
            if count is None or count == _gpus(was):
                continue
            for field, known in (("rayStartParams", _is_num_gpus), ("resources", _is_gpu)):
                entries = now.get(field)
                for key, said in entries.items() if isinstance(entries, dict) else ():
                    if known(key) and str(said) not in ("0", str(count)):
                        _follow(workload.draft, (*path, field), key, count)

    def check_change(self, before: JsonMap, after: JsonMap) -> None:
        """A group's own `labels` beat those of its template (common/pod.go, `mergeLabels`)."""
        super().check_change(before, after)
        for path, was, now in self._groups(before, after):
            own, old, new = now.get("labels") or {}, _labels(was), _labels(now)
            for key in own:
                if key in new and new[key] != own[key] and new[key] != old.get(key):
                    raise CannotChangeError(
                        f"the label {key} of these pods is not read by KubeRay; it reads that of "
                        f"the group, {own[key]!r}",
                        field=dotted((*path, "labels")),
                    )

    def _groups(
        self, before: JsonMap, after: JsonMap, at: Path = ()
    ) -> Iterator[tuple[Path, JsonMap, JsonMap]]:
        """(path, what was there, what is) of each group that two versions do not share."""
        place = (*at, *self.cluster)
        old, new = value_at(before, place), value_at(after, place)
        if old is new or not isinstance(old, dict) or not isinstance(new, dict):
            return
        head = "headGroupSpec"
        pairs: list[tuple[Path, Json, Json]] = [((head,), old.get(head), new.get(head))]
        groups = "workerGroupSpecs"
        were, are = old.get(groups), new.get(groups)
        if isinstance(were, list) and isinstance(are, list):
            pairs += [
                ((groups, index), _named_as(group, were, index), group)
                for index, group in unshared(were, are)
            ]
        for path, was, now in pairs:
            if was is not now and isinstance(was, dict) and isinstance(now, dict):
                yield (*place, *path), was, now


def _named_as(group: Json, were: list[Json], index: int) -> Json:
    """The group of its name among those before, which is nearly always in its place."""
    name = value_at(group, ("groupName",))
    if index < len(were) and value_at(were[index], ("groupName",)) == name:
        return were[index]
    return next((was for was in were if value_at(was, ("groupName",)) == name), None)


def _is_num_gpus(key: str) -> bool:
    return key == _NUM_GPUS


def _is_gpu(key: str) -> bool:
    return _GPU.fullmatch(key.lower()) is not None


def _follow(draft: Draft, path: Path, key: str, count: int) -> None:
    if count:
        draft.edit(path)[key] = str(count)
    else:
        draft.drop((*path, key))


def _gpus(group: JsonMap) -> int | None:
    """How many GPUs KubeRay finds that Ray's container has; None if that cannot be read."""
    limits = value_at(group, ("template", "spec", "containers", 0, "resources", "limits"))
    for key in sorted(limits) if isinstance(limits, dict) else ():
        if _GPU.fullmatch(key):
            try:
                count = int(parse_quantity(limits[key]))
            except InvalidObjectError:
                return None
            if count:
                return count
    return 0


def _labels(group: JsonMap) -> JsonMap:
    return value_at(group, ("template", "metadata", "labels")) or {}


def _has_cluster(root: JsonMap) -> bool:
    """A RayJob that selects a cluster makes none (rayjob_controller.go)."""
    return not value_at(root, ("spec", "clusterSelector"))


def _has_submitter(root: JsonMap) -> bool:
    """In this mode alone a Job submits (rayjob_controller.go, `createK8sJobIfNeed`)."""
    return value_at(root, ("spec", "submissionMode")) in (None, "", "K8sJobMode")


def _ray(name: str, *cluster: str, suspend: Path, more: tuple[PodPath, ...] = ()) -> RayKind:
    prefix = ".".join(cluster)
    made = _has_cluster if name == "RayJob" else None
    return RayKind(
        name,
        "ray.io",
        (
            PodPath("head", f"{prefix}.headGroupSpec.template", primary=("ray-head",), made=made),
            PodPath(
                "worker:{groupName}",
                f"{prefix}.workerGroupSpecs[].template",
                primary=("ray-worker",),
                made=made,
            ),
            *more,
        ),
        queue=True,
        suspend=suspend,
        cluster=cluster,
    )


RAY_KINDS: tuple[RayKind, ...] = (
    _ray(
        "RayJob",
        "spec",
        "rayClusterSpec",
        suspend=("spec", "suspend"),
        more=(
            PodPath(
                "submitter",
                "spec.submitterPodTemplate",
                primary=("ray-job-submitter",),
                made=_has_submitter,
            ),
        ),
    ),
    _ray("RayCluster", "spec", suspend=("spec", "suspend")),
    # kubernetes-sigs/kueue, pkg/controller/jobs/rayservice/rayservice_controller.go, `Suspend`
    _ray(
        "RayService",
        "spec",
        "rayClusterConfig",
        suspend=("spec", "rayClusterConfig", "suspend"),
    ),
)
