"""One row of the table: what is known of a kind of workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubetailor.workloads.draft import JsonMap, Path, dotted, same, value_at
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.kinds.pod_path import PodPath, keys
from kubetailor.workloads.metadata import Metadata
from kubetailor.workloads.pod import Pod

if TYPE_CHECKING:
    from kubetailor.workloads.kinds.known import KindTable
    from kubetailor.workloads.workload import Workload

__all__ = ["Kind"]


_IDENTITY: tuple[Path, ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "generateName"),
    ("metadata", "namespace"),
)


@dataclass(frozen=True)
class Kind:
    """One row: a kind of workload.

    Attributes:
        name: the kind, such as ``PyTorchJob``.
        group: its API group, ``""`` for the core.
        pods: where its pod templates are.
        metadata: the path of the object's own labels and annotations.
        queue: whether Kueue reads its queue label on such objects
            (https://kueue.sigs.k8s.io/docs/tasks/run/), or else the path of the metadata of what
            they make, where it reads it there.
        suspend: the path of the field that Kueue suspends it by, if it has one.
    """

    name: str
    group: str
    pods: tuple[PodPath, ...] = ()
    metadata: Path = ("metadata",)
    queue: bool | Path = False
    suspend: Path | None = None

    @property
    def identity(self) -> tuple[Path, ...]:
        """The paths of what makes an object this one and no other; no step may change it."""
        return _IDENTITY

    # for listings ------------------------------------------------------------------------------

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that its pods may have; ``{name}`` stands for a name."""
        return tuple(dict.fromkeys(role for row in self.pods for role in row.roles))

    @property
    def primary(self) -> tuple[str, ...]:
        """The names by which its operator knows the containers that run the task."""
        return tuple(dict.fromkeys(name for row in self.pods for name in row.primary))

    @property
    def ignored(self) -> tuple[str, ...]:
        """The fields of its pods that its operator does not read."""
        return tuple(dict.fromkeys(field for row in self.pods for field, *_ in row.ignored))

    @property
    def reads(self) -> tuple[str, ...]:
        """The only fields of its pods that are read; empty where all are, save the ignored."""
        return ()

    @property
    def queue_place(self) -> str:
        """Where the queue label goes, as a path; empty where Kueue does not know the kind."""
        if isinstance(self.queue, tuple):
            return dotted(self.queue)
        return dotted(self.metadata) if self.queue else ""

    # what it holds -----------------------------------------------------------------------------

    def within(self, table: KindTable) -> Kind:
        """The row as a table keeps it: one that wraps other objects looks their rows up there."""
        return self

    def find_pods(self, workload: Workload, at: Path = ()) -> list[Pod]:
        """The pods of a workload of this kind, in the order of the table.

        Args:
            workload: the workload.
            at: where in it the object of this kind is, if it is wrapped in another.
        """
        found = []
        obj = value_at(workload.draft.root, at)
        for row in self.pods:
            for path, role in row.templates(obj):
                place: Path | None = None
                if row.metadata is not None:
                    place = (*at, *path, *keys(row.metadata))
                found.append(
                    Pod(
                        workload,
                        workload.draft,
                        (*at, *path, *keys(row.spec)),
                        roles=(role,),
                        metadata=workload.metadata_at(workload.draft, place),
                        primary_names=row.primary,
                    )
                )
        return found

    def object_metadata(self, workload: Workload) -> Metadata:
        """The object's own labels and annotations."""
        found = workload.metadata_at(workload.draft, self.metadata)
        assert found is not None
        return found

    def queue_metadata(self, workload: Workload) -> Metadata | None:
        """The labels among which Kueue looks for the queue; None where it does not."""
        if not self.controls_kueue(workload.draft.root):
            return None
        place = self.queue
        if isinstance(place, tuple):
            return workload.metadata_at(workload.draft, place)
        return workload.metadata

    def object_kind(self, root: JsonMap) -> str:
        """The Kubernetes kind that `when.kind` sees; a task template becomes one."""
        return self.name

    def object_group(self, root: JsonMap) -> str:
        """The API group that `when.api_group` sees."""
        return self.group

    def controls_kueue(self, root: JsonMap) -> bool:
        """Whether Kueue reads a queue label on this object, or on what it makes."""
        return bool(self.queue)

    # what a step did ---------------------------------------------------------------------------

    def settle(self, workload: Workload, at: Path = ()) -> None:
        """Put in order what a step wrote, before it counts.

        Args:
            workload: the workload.
            at: as for `find_pods`.

        Raises:
            CannotChangeError: the object would not mean what was written.
        """

    def check_change(self, before: JsonMap, after: JsonMap) -> None:
        """Refuse a change that the kind's operator would not read.

        Raises:
            CannotChangeError: it names the field and what is read instead.
        """
        for row in self.pods:
            if row.ignored:
                for path, was, now in row.changed(before, after):
                    self._check_ignored(row, path, was if isinstance(was, dict) else {}, now, after)

    def _check_ignored(
        self, row: PodPath, path: Path, was: JsonMap, now: JsonMap, obj: JsonMap
    ) -> None:
        for ignored in row.ignored:
            if same(ignored.said(was), ignored.said(now)):
                continue
            if ignored.when is None or ignored.when(obj):
                raise CannotChangeError(
                    f"{ignored.field} of the pods of a {self.name} is not read by its operator; it "
                    f"reads {ignored.instead}",
                    field=f"{dotted(path)}.{ignored.field}",
                )
