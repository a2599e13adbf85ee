"""An object of a cluster, what it was made for, and which of them a chain ran over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubetailor.plugins.execution.identity import FLYTE_GROUP, is_execution
from kubetailor.plugins.execution.object_identity import controller_of
from kubetailor.plugins.execution.object_marks import find_stamp
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, Kind, KubetailorError, UnknownKindError, Workload

__all__ = ["Lineage", "OwnerOf"]

OwnerOf = Callable[[JsonMap, str], JsonMap]
"""The object of an owner reference in a namespace; raises KubetailorError."""


@dataclass(frozen=True)
class Lineage:
    """An object, and what it was made for.

    Attributes:
        obj: the object.
        owners: its controller, the controller of that, and so on, as far as they can be read.
        last: the reference to the next one, which is not read: a FlyteWorkflow, say; or None.
        unread: why it could not be, or None.
    """

    obj: JsonMap
    owners: tuple[JsonMap, ...] = ()
    last: JsonMap | None = None
    unread: str | None = None

    @classmethod
    def climb(cls, obj: JsonMap, owner_of: OwnerOf) -> Lineage:
        """Follow the controllers of an object.

        Args:
            obj: the object.
            owner_of: reads the next one.
        """
        namespace = obj["metadata"].get("namespace", "")
        found = [obj]
        while (reference := controller_of(found[-1])) is not None:
            # FlytePropeller writes the kind in lower case; what it says is on its objects anyway.
            if str(reference.get("apiVersion")).rpartition("/")[0] == FLYTE_GROUP:
                return cls(obj, tuple(found[1:]), reference)
            try:
                found.append(owner_of(reference, namespace))
            except KubetailorError as error:
                return cls(obj, tuple(found[1:]), reference, str(error))
        return cls(obj, tuple(found[1:]))

    def cut(self, tailor: Tailor) -> tuple[JsonMap, Kind]:
        """The object that the chain ran over: the topmost with a stamp, else of a known kind.

        Args:
            tailor: the config, which knows the kinds.

        Raises:
            KubetailorError: no chain runs over any of them.
        """
        known = []
        for obj in (self.obj, *self.owners):
            try:
                kind = tailor.kind_of(obj)
            except UnknownKindError:
                if obj is self.obj:
                    raise
                kind = None
            if kind is not None:
                known.append((obj, kind))
        if not known:
            title = f"{self.obj['kind']} {self.obj['metadata']['name']}"
            if is_execution(self.obj):
                raise KubetailorError(
                    f"{title} is an execution: `kubetailor execution show PROJECT/DOMAIN/ID` "
                    "shows it"
                )
            raise KubetailorError(f"{title}: no chain runs over this kind (see `kubetailor kinds`)")
        stamped = [pair for pair in known if find_stamp(Workload(*pair)) is not None]
        return (stamped or known)[-1]
