"""TrainJob: it has no pod templates, but patches those of its runtime.

Source: kubeflow/trainer, pkg/apis/trainer/v1alpha1/trainjob_types.go; how it is read:
pkg/runtime/core/trainingruntime.go (`mergeRuntimePatches`: strategic merge, in the order of the
list) and pkg/runtime/framework/plugins/jobset (what is refused). `runtimePatches` are there since
v2.2; earlier versions read other fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, same, value_at
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.kinds.laid_out import LaidOut, move
from kubetailor.workloads.kinds.row import Kind
from kubetailor.workloads.kinds.runtime_patches import (
    JOBS,
    KUEUE,
    MANAGER,
    NODE,
    OLDER,
    OWN,
    PATCH,
    POD,
    TEMPLATE,
    TRAINER,
    patches,
    says,
)
from kubetailor.workloads.pod import Pod

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["TRAIN_JOB", "TrainJobKind"]


class JobTarget(LaidOut):
    """The pod of one replicated job: what the TrainJob says of it."""

    reader = "Kubeflow Trainer"
    reads: ClassVar[Iterable[str]] = POD

    def __init__(self, workload: Workload, at: Path, job: str) -> None:
        self._workload = workload
        self._at = at
        self._own, self._fields = OWN.get(job, ((), {}))
        super().__init__(job, (*at, *self._own), self._read(workload.draft.root, job), job)

    def _read(self, root: JsonMap, job: str) -> JsonMap:
        """What the patches come to."""
        spec: JsonMap = {}
        metadata: JsonMap = {}
        containers: dict[str, JsonMap] = {job: {"name": job}}
        own = value_at(root, (*self._at, *self._own)) if self._own else None
        if isinstance(own, dict):
            said = {name: own[place] for name, place in self._fields.items() if place in own}
            containers[job].update(said)
        for _, template in patches(root, self._at, job):
            for name, entries in (template.get("metadata") or {}).items():
                metadata[name] = {**metadata.get(name, {}), **(entries or {})}
            for name, value in (template.get("spec") or {}).items():
                if name == "containers":
                    for entry in value or ():
                        there = containers.setdefault(entry.get("name"), {})
                        there.update(entry)
                elif name == "nodeSelector":
                    spec[name] = {**spec.get(name, {}), **(value or {})}
                else:
                    spec[name] = value
        return {"metadata": metadata, "spec": {"containers": list(containers.values()), **spec}}

    def write_back(self, draft: Draft) -> None:
        """Labels and annotations are in the patches too."""
        was = self.before
        super().write_back(draft)
        if self.before is was:
            return
        for name in ("labels", "annotations"):
            new = self.before["metadata"].get(name)
            if not same(was["metadata"].get(name), new):
                move(draft, (*self._patch(draft, "metadata", name), "metadata", name), new)
        self._check(draft)
        self._tidy(draft)

    def _tidy(self, draft: Draft) -> None:
        """A patch of a chain's own that says nothing any more goes."""
        place = (*self._at, "spec", "runtimePatches")
        for index, entry in enumerate(draft.get(place) or ()):
            jobs = value_at(entry, JOBS) if value_at(entry, ("manager",)) == MANAGER else None
            if isinstance(jobs, list):
                kept = [job for job in jobs if says(job.get("template"))]
                if kept and len(kept) < len(jobs):
                    draft.keep((*place, index, *JOBS), kept)
                elif not kept:
                    entries = draft.get(place)
                    draft.keep(place, [*entries[:index], *entries[index + 1 :]])
                    return

    def _check(self, draft: Draft) -> None:
        """What another patch says cannot be taken off by this one."""
        after = self._read(draft.root, self.role)
        for part in ("metadata", "spec"):
            for name in {**self.before[part], **after[part]}:
                wanted, found = self.before[part].get(name), after[part].get(name)
                if not same(wanted or None, found or None):
                    raise CannotChangeError(
                        f"several of `runtimePatches` set {name} of the job {self.role}; change "
                        "them by hand",
                        field="spec.runtimePatches",
                    )

    def put(self, draft: Draft, name: str, old: Json, new: Json) -> None:
        """A list of a patch takes the place of the runtime's."""
        if name not in POD:
            raise self.refused(name)
        if name == "tolerations" and not old:
            self._workload.warn(
                f"tolerations of {self.role}: those of the runtime do not hold any more",
                "spec.runtimePatches",
            )
        move(draft, (*self._patch(draft, "spec", name), "spec", name), new)

    def put_main(self, draft: Draft, name: str, new: Json) -> None:
        """The container of the training itself has fields of its own."""
        if name in self._fields:
            move(draft, (*self.place, self._fields[name]), new)
            return
        if name not in PATCH:
            raise self.refused(name, {*self._fields, *PATCH})
        patch = (*self._patch(draft, "spec", "containers"), "spec", "containers")
        entries: list[JsonMap] = draft.edit(patch, list)
        names = [entry.get("name") for entry in entries]
        if self.main not in names:
            entries.append({"name": self.main})
            names.append(self.main)
        move(draft, (*patch, names.index(self.main), name), new)

    def put_others(self, draft: Draft, old: list[Json], new: list[Json]) -> None:
        """A runtime's other containers."""
        raise CannotChangeError(
            f"containers besides {self.main} of a TrainJob are its runtime's: change them there",
            field="spec.runtimePatches",
        )

    def _patch(self, draft: Draft, part: str, name: str) -> Path:
        """The pod template of the last patch that sets a field; else that of a chain's own."""
        found = list(patches(draft.root, self._at, self.role))
        for path, template in reversed(found):
            if name in (template.get(part) or {}):
                return path
        for older in OLDER:
            if draft.get((*self._at, "spec", older)):
                raise CannotChangeError(
                    f"its {older} are of a Kubeflow Trainer that does not read `runtimePatches`, "
                    f"by which {name} of the job {self.role} would be set",
                    field=f"spec.{older}",
                )
        place = (*self._at, "spec", "runtimePatches")
        entries: list[JsonMap] = draft.edit(place, list)
        managers = [value_at(entry, ("manager",)) for entry in entries]
        if MANAGER not in managers:
            entries.append({"manager": MANAGER})
            managers.append(MANAGER)
        jobs = (*place, managers.index(MANAGER), *JOBS)
        there: list[JsonMap] = draft.edit(jobs, list)
        names = [job.get("name") for job in there]
        if self.role not in names:
            there.append({"name": self.role})
            names.append(self.role)
        return (*jobs, names.index(self.role), *TEMPLATE)


class TrainJobKind(Kind):
    """The row of TrainJob."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The replicated jobs of the runtime."""
        return (*OWN, "{name}")

    @property
    def primary(self) -> tuple[str, ...]:
        """Each job's container has its name."""
        return tuple(OWN)

    @property
    def reads(self) -> tuple[str, ...]:
        """What a runtime patch and `trainer` have."""
        main = (f"containers.{name}" for name in {*PATCH, *TRAINER})
        return tuple(sorted({*POD, *main}))

    def find_pods(self, workload: Workload, at: Path = ()) -> list[Pod]:
        """The pods that train, those that initialize, and others that are patched already."""
        root = workload.draft.root
        jobs = [NODE, *(job for job, (own, _) in OWN.items() if value_at(root, (*at, *own)))]
        entries = value_at(root, (*at, "spec", "runtimePatches"))
        for entry in entries if isinstance(entries, list) else ():
            patched = value_at(entry, JOBS)
            jobs += [
                str(job["name"])
                for job in (patched if isinstance(patched, list) else ())
                if value_at(job, ("name",)) and value_at(entry, ("manager",)) != KUEUE
            ]
        found = []
        for job in dict.fromkeys(jobs):
            target = JobTarget(workload, at, job)
            metadata = workload.metadata_at(target.draft, ("metadata",))
            found.append(target.pod_of(workload, metadata, (job,)))
        return found


TRAIN_JOB = TrainJobKind(
    "TrainJob", "trainer.kubeflow.org", queue=True, suspend=("spec", "suspend")
)
