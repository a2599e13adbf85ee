"""The type and number of GPUs, with all that they mean: resources, nodes, tolerations.

The catalogue says what each accelerator means; what is taken off and put on is one rule for every
kind of workload (`_gpu_asks`, `_gpu_placement`, `_gpu_terms`, `_gpu_flyte`, `_gpu_processes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field

from kubetailor.registry import (
    Accelerator,
    CannotChangeError,
    Catalogue,
    ConflictError,
    Container,
    DeferError,
    Pod,
    Selection,
    Workload,
    transformer,
)
from kubetailor.registry.accelerator import is_slice_resource, vendor_of
from kubetailor.registry.stated import Stated
from kubetailor.transformers._gpu_asks import ask_for, gpus_of, target_of
from kubetailor.transformers._gpu_flyte import device_on, set_device, set_ray_gpus
from kubetailor.transformers._gpu_placement import pairs_on, place, placement_of
from kubetailor.transformers._gpu_processes import Count, say_processes
from kubetailor.transformers.types import AcceleratorName

__all__ = ["gpu"]

_Asked: TypeAlias = Mapping[str, Mapping[str, int]]
"""Container -> GPU resource -> how many it asks for."""


@transformer(atomic=True, replicas=True, accelerator=True)
def gpu(
    workload: Workload,
    selection: Selection,
    catalogue: Catalogue,
    *,
    type: AcceleratorName,
    count: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None,
    container: str | None = None,
) -> None:
    """Choose the type of GPU, and how many.

    The accelerator that is on the pods is taken off, and this one put on: resources, node selector,
    node affinity, tolerations, runtime class. All else stays. It changes the pods that ask for a
    GPU now; with `count` also a pod that asks for none, if `when.role` names it or it is the only
    one. All pods are changed, or none. A number of processes that was that of the GPUs, such as
    `slotsPerWorker`, stays, with a warning.

    Args:
        workload: the workload.
        selection: the pods that `when` picked.
        catalogue: the accelerators.
        type: the accelerator, by its name in the catalogue.
        count: the GPUs of each pod; by default as many as it asks for now.
        container: the container that has them, if more than one asks for a GPU; by default the one
            that asks, else the primary one.
    """
    swap = _Swap(workload, catalogue, type, count, container)
    # A replica that says no resources has those of the task's own pod.
    pods = [pod for pod in selection.pods if not (pod.is_replica and not pod.primary.resources)]
    asking = {pod: gpus_of(pod, swap.resources) for pod in pods}
    targets = _targets(workload, asking, count, by_role=selection.by_role)
    if targets:
        swap.all({pod: asking[pod] for pod in targets})


def _targets(
    workload: Workload, asking: Mapping[Pod, _Asked], count: int | None, *, by_role: bool
) -> list[Pod]:
    """The pods that change: those that ask for a GPU, or are to have one."""
    found = [pod for pod, asked in asking.items() if asked]
    if count is None or not asking:
        return found
    if by_role or len(workload.pods()) == 1:
        # What is laid over a pod that gets one has it from there.
        return [p for p in asking if p in found or p.is_replica or p.base not in asking]
    if not found:
        roles = sorted({role for pod in workload.pods() for role in pod.roles})
        raise CannotChangeError(
            "no pod asks for a GPU, and which is to have one cannot be told; name it with "
            f"`when: {{role: …}}` (roles present: {', '.join(roles)})"
        )
    return found


@dataclass(frozen=True)
class _Change:
    """What changes in one pod: a container's GPUs, `asked` before and `count` of `new` after."""

    pod: Pod
    container: Container
    asked: Mapping[str, int]
    old: Stated
    new: Accelerator
    count: int

    @property
    def place(self) -> Pod:
        """The pod whose placement is its own: a replica has that of the task's own pod."""
        return self.pod.base if self.pod.is_replica and self.pod.base else self.pod


class _Swap:
    """One change of the accelerator of a workload: planned whole, then made."""

    def __init__(
        self,
        workload: Workload,
        catalogue: Catalogue,
        name: str,
        count: int | None,
        container: str | None,
    ) -> None:
        self.workload = workload
        self.catalogue = catalogue
        self.name = name
        self.count = count
        self.container = container
        self.resources = catalogue.marks.resources
        self.device = device_on(workload, catalogue.flyte)

    def all(self, asking: Mapping[Pod, _Asked]) -> None:
        """Change these pods, whose containers ask for these GPUs now."""
        changes = [self._plan(pod, asked) for pod, asked in asking.items()]
        placed: dict[Pod, list[_Change]] = {}
        for change in changes:
            placed.setdefault(change.place, []).append(change)
        by_flyte = {pod: self._is_placed_by_flyte(pod, own) for pod, own in placed.items()}
        for pod, own in placed.items():
            self._check_roles(pod, own, by_flyte=by_flyte[pod])
            self._check_base(pod, placed)
        for change in changes:
            old = change.old
            ask_for(
                change.container,
                change.new,
                change.count,
                asked=change.asked,
                besides=old.resources,
            )
        for pod, own in placed.items():
            base = placed.get(pod.base) if pod.base else None
            same_as_base = base is not None and _one_placement([*base, *own])
            place(
                pod, own[0].old, own[0].new, self.catalogue, put=not (by_flyte[pod] or same_as_base)
            )
        self._finish(changes, by_flyte)

    def _finish(self, changes: Sequence[_Change], by_flyte: Mapping[Pod, bool]) -> None:
        """What the object says outside its pods; views of these are out of date after it."""
        counts = {role: change.count for change in changes for role in change.pod.roles}
        new = changes[0].new
        if any(vendor_of(resource) != new.vendor for c in changes for resource in c.asked):
            self.workload.warn(f"{new.name}: the image may not run on the new vendor's GPUs")
        own = next((pod for pod in by_flyte if pod.base is None), None)
        if self.workload.is_task_template and own is not None:
            placed = next(change.new for change in changes if change.place is own)
            set_device(self.workload, placed if by_flyte[own] else None)
        set_ray_gpus(self.workload, counts)
        say_processes(
            self.workload,
            (Count(c.pod.roles, sum(c.asked.values()), c.count) for c in changes if c.asked),
        )

    def _plan(self, pod: Pod, asking: _Asked) -> _Change:
        container, asked = target_of(pod, asking, self.container)
        placed = pod.base if pod.is_replica and pod.base else pod
        present = self.catalogue.marks.present([*pairs_on(placed), *self.device.items()], asked)
        count = self.count
        if count is None:
            was_slice = (
                all(entry.is_slice for entry in present)
                if present
                else all(map(is_slice_resource, asked))
            )
            if len(asked) != 1 or was_slice != self.catalogue.require(self.name).is_slice:
                raise CannotChangeError(
                    f"`count` must be given: {container.name} asks for "
                    f"{', '.join(f'{number} {name}' for name, number in asked.items())}, of which "
                    f"{self.name} is another kind",
                    field=pod.where("containers"),
                )
            (count,) = asked.values()
        new = self.catalogue.at(self.name, count)
        self._check_others(pod, asking, container, new)
        return _Change(pod, container, asked, self.catalogue.stated(present), new, count)

    # what may stand in the way -----------------------------------------------------------------

    def _is_placed_by_flyte(self, pod: Pod, changes: Sequence[_Change]) -> bool:
        """Whether FlytePropeller places a pod of a task, so that nothing is written into it.

        It looks at what the task's own pod asks for, and, for Kubeflow alone, at what a replica
        asks for instead (flyteplugins, kfoperators/common/common_operator.go, `WithResources`).
        """
        return (
            self.workload.is_task_template
            and pod.base is None
            and self.catalogue.placed_by_flyte(changes[0].new)
            and (self._is_kubeflow or any(change.pod is pod for change in changes))
        )

    @property
    def _is_kubeflow(self) -> bool:
        return self.workload.api_group == "kubeflow.org"

    def _check_roles(self, pod: Pod, changes: Sequence[_Change], *, by_flyte: bool) -> None:
        """A pod spec that serves several roles must be the same for all of them."""
        if by_flyte and self._is_kubeflow:
            return
        replicas = [
            other
            for other in self.workload.pods()
            if other.is_replica and other.base is pod and other.primary.resources
        ]
        own = {role for replica in replicas for role in replica.roles}
        changed = {role for c in changes if c.pod is not pod for role in c.pod.roles}
        if any(change.pod is pod for change in changes):
            changed |= set(pod.roles) - own
        if set(pod.roles) - changed or not _one_placement(changes):
            raise DeferError("role")

    def _check_base(self, pod: Pod, placed: Mapping[Pod, object]) -> None:
        """What a pod has from one that does not change cannot be taken off it."""
        base = pod.base
        if base is None or base in placed:
            return
        pairs = list(pairs_on(base))
        if gpus_of(base, self.resources):
            pairs += self.device.items()
        if any(entry.name != self.name for entry in self.catalogue.marks.present(pairs, ())):
            raise DeferError("role")

    def _check_others(
        self, pod: Pod, asking: _Asked, container: Container, new: Accelerator
    ) -> None:
        """No other container may ask for GPUs that the new nodes do not have."""
        others = {name: asked for name, asked in asking.items() if name != container.name}
        init = gpus_of(pod, self.resources, "initContainers")
        for name, asked in (*others.items(), *init.items()):
            if foreign := asked.keys() - {new.resource}:
                raise ConflictError(
                    f"container {name!r} asks for {', '.join(sorted(foreign))}, which the nodes of "
                    f"{new.name} do not have",
                    field=pod.where("initContainers" if name in init else "containers"),
                )


def _one_placement(changes: Sequence[_Change]) -> bool:
    """Whether all are placed in the same way, whatever their numbers of GPUs."""
    first = placement_of(changes[0].new)
    return all(placement_of(change.new) == first for change in changes)
