"""The kinds that are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubetailor.workloads.draft import Json, JsonMap, Key
from kubetailor.workloads.errors import ConflictError, InvalidObjectError
from kubetailor.workloads.kinds.row import Kind

__all__ = ["KindTable", "group_of", "holds_containers", "is_task_template"]


_DEPTH = 100


class KindTable(Mapping[tuple[str, str], Kind]):
    """The kinds that are known, by (API group, kind)."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._rows: dict[tuple[str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def __getitem__(self, key: tuple[str, str]) -> Kind:
        return self._rows[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, kind: Kind) -> None:
        """Add a row.

        Raises:
            ConflictError: another row has the same group and kind.
        """
        key = (kind.group, kind.name)
        if self._rows.get(key, kind) != kind:
            raise ConflictError(f"the kind {kind.name} of group {kind.group!r} is there already")
        self._rows[key] = kind.within(self)

    def of(self, obj: JsonMap) -> Kind | None:
        """The row of an object, or None.

        Raises:
            InvalidObjectError: it is neither a Kubernetes object nor a Flyte TaskTemplate.
        """
        kind, version = obj.get("kind"), obj.get("apiVersion")
        if kind is None and version is None and is_task_template(obj):
            return self._rows.get(("flyte", "TaskTemplate"))
        if not isinstance(kind, str) or not isinstance(version, str) or not kind:
            raise InvalidObjectError("an object needs `apiVersion` and `kind`, both strings")
        return self._rows.get((group_of(version), kind))

    def is_child(self, metadata: Any) -> bool:
        """Whether an object's controller is itself a workload of this table.

        https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
        """
        owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
        for owner in owners if isinstance(owners, list) else ():
            if isinstance(owner, dict) and owner.get("controller"):
                return (group_of(owner.get("apiVersion", "")), str(owner.get("kind"))) in self._rows
        return False


def group_of(version: Any) -> str:
    """The API group of an `apiVersion`, ``""`` for the core."""
    return str(version).rpartition("/")[0]


def is_task_template(obj: JsonMap) -> bool:
    """Whether an object is a flyteidl.core.TaskTemplate in protobuf's JSON form."""
    targets: tuple[Key, ...] = ("container", "k8sPod", "custom", "interface", "metadata")
    return isinstance(obj.get("type"), str) and any(target in obj for target in targets)


def holds_containers(value: Json, depth: int = 0) -> bool:
    """Whether there is a list `containers` anywhere in an object.

    Raises:
        InvalidObjectError: it is nested too deep to be looked through.
    """
    if depth > _DEPTH:
        raise InvalidObjectError(f"the object is nested more than {_DEPTH} deep")
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            return True
        return any(holds_containers(item, depth + 1) for item in value.values())
    return isinstance(value, list) and any(holds_containers(item, depth + 1) for item in value)
