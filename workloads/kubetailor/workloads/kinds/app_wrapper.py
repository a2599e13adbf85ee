"""AppWrapper: it wraps whole objects, and their pods are its own.

Source: project-codeflare/appwrapper, api/v1beta2/appwrapper_types.go and pkg/utils/utils.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kubetailor.workloads.draft import Json, JsonMap, Key, Path, dotted, value_at
from kubetailor.workloads.errors import UnknownKindError
from kubetailor.workloads.kinds.known import KindTable, group_of, holds_containers
from kubetailor.workloads.kinds.row import Kind
from kubetailor.workloads.pod import Pod

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["APP_WRAPPER", "AppWrapperKind"]

_COMPONENTS: Path = ("spec", "components")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True)
class AppWrapperKind(Kind):
    """The row of AppWrapper.

    Attributes:
        table: where the rows of what it wraps are.
    """

    table: KindTable = field(default_factory=KindTable, compare=False, repr=False)

    @property
    def roles(self) -> tuple[str, ...]:
        """Those of what it wraps."""
        return ("{those of its components}",)

    def within(self, table: KindTable) -> Kind:
        """The row that looks up what it wraps in a table."""
        return replace(self, table=table)

    def components(self, root: JsonMap) -> Iterator[tuple[Path, JsonMap, Kind | None]]:
        """The (path, object, row) of each object that it wraps."""
        entries = value_at(root, _COMPONENTS)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            obj = entry.get("template") if isinstance(entry, dict) else None
            if isinstance(obj, dict):
                key = (group_of(obj.get("apiVersion", "")), str(obj.get("kind")))
                yield (*_COMPONENTS, index, "template"), obj, self.table.get(key)

    def find_pods(self, workload: Workload, at: Path = ()) -> list[Pod]:
        """The pods of what it wraps; of a kind that is not known, those of its `podSets`."""
        found: list[Pod] = []
        obj = value_at(workload.draft.root, at)
        for path, inner, kind in self.components(obj):
            place = (*at, *path)
            if kind is not None:
                found += kind.find_pods(workload, place)
                continue
            declared = list(_pod_sets(value_at(obj, (*path[:-1], "podSets")), inner))
            if not declared and holds_containers(inner):
                raise UnknownKindError(
                    f"the kind {inner.get('kind')} of {inner.get('apiVersion')} is not known, and "
                    "it holds containers: say where under `podSets`, or add a row with the hook "
                    "`register_kinds`",
                    field=dotted(place),
                )
            found += [
                Pod(
                    workload,
                    workload.draft,
                    (*place, *template, "spec"),
                    roles=("primary",),
                    metadata=workload.metadata_at(workload.draft, (*place, *template, "metadata")),
                )
                for template in declared
            ]
        return found

    def settle(self, workload: Workload, at: Path = ()) -> None:
        """As each component's kind does."""
        for path, _, kind in self.components(value_at(workload.draft.root, at)):
            if kind is not None:
                kind.settle(workload, (*at, *path))

    def check_change(self, before: JsonMap, after: JsonMap) -> None:
        """As each component's kind does."""
        for path, inner, kind in self.components(after):
            was = value_at(before, path)
            if kind is not None and isinstance(was, dict) and was is not inner:
                kind.check_change(was, inner)


def _pod_sets(entries: Json, obj: JsonMap) -> Iterator[Path]:
    """Where the pod templates are that are declared, in the wrapped object."""
    for entry in entries if isinstance(entries, list) else ():
        written = str(entry.get("path", "")) if isinstance(entry, dict) else ""
        head, tail = written[: len("template")], written[len("template") :]
        if head == "template" and _STEP.sub("", tail) == "":
            path: tuple[Key, ...] = tuple(
                match[1] if match[1] is not None else int(match[2])
                for match in _STEP.finditer(tail)
            )
            if isinstance(value_at(obj, (*path, "spec")), dict):
                yield path


APP_WRAPPER = AppWrapperKind(
    "AppWrapper", "workload.codeflare.dev", queue=True, suspend=("spec", "suspend")
)
