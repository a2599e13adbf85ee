"""Labels and annotations of an object or a pod template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from kubetailor.workloads.draft import Draft, Path, dotted
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.names import check_key, check_label_value

__all__ = ["FLYTE_LABELS", "MapName", "Metadata"]

MapName: TypeAlias = Literal["labels", "annotations"]

FLYTE_LABELS = frozenset(
    {
        "domain",
        "execution-id",
        "interruptible",
        "node-id",
        "project",
        "shard-key",
        "task-name",
        "workflow-name",
    }
)
"""Labels that FlytePropeller finds its objects by (flytepropeller,
pkg/compiler/transformers/k8s/workflow.go and pkg/controller/nodes/node_exec_context.go)."""


class Metadata:
    """The labels and annotations at one place; below it, those that count where it has none.

    `on_write` is told of each write: (path of the map, (key,), new value, old value).
    """

    __slots__ = ("_below", "_draft", "_flyte", "_on_write", "_path")

    def __init__(
        self,
        draft: Draft,
        path: Path,
        on_write: Callable[[Path, Path, Any, Any], None],
        *,
        below: tuple[Path, ...] = (),
        flyte: bool = False,
    ) -> None:
        self._draft = draft
        self._path = path
        self._on_write = on_write
        self._below = below
        self._flyte = flyte

    def same_place(self, other: Metadata) -> bool:
        """Whether both are views of one place."""
        return self._draft is other._draft and self._path == other._path

    def get(self, name: MapName) -> Mapping[str, Any]:
        """The map, shared and not to be changed; empty if there is none."""
        found = self._draft.get((*self._path, name))
        own: Mapping[str, Any] = found if isinstance(found, dict) else {}
        for path in self._below:
            under = self._draft.get((*path, name))
            if under:
                own = {**under, **own}
        return own

    def set(self, name: MapName, key: str, value: str) -> None:
        """Set an entry.

        Raises:
            InvalidObjectError: Kubernetes would refuse it, or it is a label of Flyte's own.
        """
        path = (*self._path, name)
        own = self._draft.get(path)
        old = own.get(key) if isinstance(own, dict) else None
        if old == value and type(old) is type(value):
            return
        try:
            check_key(key)
            if name == "labels":
                check_label_value(key, value)
                if self._flyte and key in FLYTE_LABELS:
                    raise InvalidObjectError(_flytes_own(key))
            elif not isinstance(value, str):
                raise InvalidObjectError(
                    f"annotation {key}: the value must be a string, found {value!r}"
                )
        except InvalidObjectError as error:
            raise InvalidObjectError(str(error), field=dotted(path)) from None
        self._on_write(path, (key,), value, old)
        self._draft.edit(path)[key] = value

    def label(self, key: str, value: str) -> None:
        """Set a label."""
        self.set("labels", key, value)

    def unlabel(self, key: str) -> None:
        """Remove a label, if it is there."""
        self.remove("labels", key)

    def annotate(self, key: str, value: str) -> None:
        """Set an annotation."""
        self.set("annotations", key, value)

    def unannotate(self, key: str) -> None:
        """Remove an annotation, if it is there."""
        self.remove("annotations", key)

    @property
    def labels(self) -> dict[str, str]:
        """The labels, as a copy."""
        return dict(self.get("labels"))

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations, as a copy."""
        return dict(self.get("annotations"))

    def remove(self, name: MapName, key: str) -> None:
        """Remove an entry, here and below, if it is there; what that empties goes.

        Raises:
            InvalidObjectError: it is a label of Flyte's own.
        """
        for place in (self._path, *self._below):
            path = (*place, name)
            found = self._draft.get(path)
            if isinstance(found, dict) and key in found:
                if name == "labels" and self._flyte and key in FLYTE_LABELS:
                    raise InvalidObjectError(_flytes_own(key), field=dotted(path))
                entries = self._draft.edit(path)
                del entries[key]
                if not entries:
                    self._draft.drop(path)
                    if len(place) > 1 and self._draft.get(place) == {}:  # no object's own
                        self._draft.drop(place)


def _flytes_own(key: str) -> str:
    return f"label {key!r} is Flyte's own and never written"
