"""A pod that an object keeps in a layout of its own: shown as a pod, and the way back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, dotted, same
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.metadata import Metadata
from kubetailor.workloads.pod import Pod

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["LaidOut", "move", "put_shared"]


class LaidOut:
    """The pod, and where each of its fields is in the object.

    A change of a field that has no place there is refused.

    Attributes:
        role: what the pod does.
        place: the part of the object that is about it.
        main: the name of the container whose fields are laid out too, or None.
        before: the pod as the object has it.
        draft: the pod under change.
    """

    reader: ClassVar[str] = "its operator"
    reads: ClassVar[Iterable[str]] = ()

    def __init__(self, role: str, place: Path, pod: JsonMap, main: str | None) -> None:
        self.role: str = role
        self.place: Path = place
        self.main: str | None = main
        self.before: JsonMap = pod
        self.draft: Draft = Draft(pod)

    def pod_of(
        self, workload: Workload, metadata: Metadata | None, primary_names: tuple[str, ...]
    ) -> Pod:
        """The pod, as the workload shows it; what changes in it is written back.

        Args:
            workload: the workload.
            metadata: its labels and annotations; None where the layout has none.
            primary_names: names by which its kind knows the primary container.
        """
        workload.converted.append(self)
        return Pod(
            workload,
            self.draft,
            ("spec",),
            roles=(self.role,),
            metadata=metadata,
            primary_names=primary_names,
            place=self.place,
        )

    def write_back(self, draft: Draft) -> None:
        """Put what changed where the operator reads it, or raise CannotChangeError."""
        after = self.draft.checkpoint()
        if after is self.before:
            return
        old, new = self.before["spec"], after["spec"]
        for name in _differing(old, new):
            if name != "containers":
                self.put(draft, name, old.get(name), new.get(name))
        was, others_were = self._split(old)
        now, others = self._split(new)
        for name in _differing(was, now):
            self.put_main(draft, name, now.get(name))
        if not same(others_were, others):
            self.put_others(draft, others_were, others)
        self.before = after

    def _split(self, spec: JsonMap) -> tuple[JsonMap, list[Json]]:
        """The main container, and the others."""
        containers = spec.get("containers") or []
        if self.main is None:
            return {}, containers
        for index, container in enumerate(containers):
            if isinstance(container, dict) and container.get("name") == self.main:
                return container, containers[:index] + containers[index + 1 :]
        raise CannotChangeError(
            f"the container {self.main!r} of the {self.role} cannot be taken off",
            field=dotted(self.place),
        )

    # where things go ---------------------------------------------------------------------------

    def put(self, draft: Draft, name: str, old: Json, new: Json) -> None:
        """Put a field of the pod spec."""
        raise self.refused(name)

    def put_main(self, draft: Draft, name: str, new: Json) -> None:
        """Put a field of the main container."""
        raise self.refused(name)

    def put_others(self, draft: Draft, old: list[Json], new: list[Json]) -> None:
        """Put the other containers."""
        raise self.refused("containers")

    def refused(self, name: str, reads: Iterable[str] | None = None) -> CannotChangeError:
        """The error for a field that has no place."""
        read = ", ".join(sorted(self.reads if reads is None else reads))
        return CannotChangeError(
            f"{name} of the {self.role} is not read by {self.reader}; it reads {read}",
            field=dotted(self.place),
        )


def _differing(old: JsonMap, new: JsonMap) -> list[str]:
    return [name for name in {**old, **new} if not same(old.get(name), new.get(name))]


def move(draft: Draft, path: Path, new: Json) -> None:
    """Put a value in its place; None, and an empty list, take it off."""
    if new is None or new == []:
        draft.drop(path)
    else:
        draft.put(path, new)


def put_shared(draft: Draft, path: Path, old: list[JsonMap], new: list[JsonMap]) -> None:
    """Put a list, by name, that other pods have a share in: only what this one changed."""
    wanted = {entry.get("name"): entry for entry in new}
    gone = {entry.get("name") for entry in old} - wanted.keys()
    written = {name: entry for name, entry in wanted.items() if entry not in old}
    there: list[JsonMap] = draft.get(path) or []
    kept = [written.pop(e.get("name"), e) for e in there if e.get("name") not in gone]
    draft.keep(path, [*kept, *written.values()])
