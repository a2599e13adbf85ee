"""A template of Argo's as the pod that is made of it, and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, same, value_at
from kubetailor.workloads.errors import CannotChangeError
from kubetailor.workloads.kinds.argo_above import Above, defaulted, key_of
from kubetailor.workloads.kinds.laid_out import LaidOut, move, put_shared

__all__ = ["MAIN", "POD", "SHARED", "TemplateTarget"]

MAIN = "main"
"""Argo's name for the container of a template."""

POD: Mapping[str, str] = {
    **{
        name: name
        for name in (
            *("activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "hostAliases"),
            *("initContainers", "nodeSelector", "priorityClassName", "resourceClaims"),
            *("schedulerName", "securityContext", "serviceAccountName", "tolerations", "volumes"),
        )
    },
    "resources": "podResources",
}
"""Field of a pod spec -> the template's name for it."""

_JOINED = frozenset({"hostAliases", "volumes"})
"""Lists of which a pod has the template's and the workflow's entries."""

SHARED = "imagePullSecrets"
"""What only the workflow has; an entry more does no harm to its other pods."""


class TemplateTarget(LaidOut):
    """The pod of a template."""

    reader = "Argo"
    reads: ClassVar[Iterable[str]] = (*POD, SHARED, "containers")

    def __init__(self, root: JsonMap, above: Above, role: str, place: Path) -> None:
        self._above = above
        own = value_at(root, place)
        self._key = key_of(own)
        template = defaulted(above.defaults, own)
        self._kind = next((n for n in ("container", "script") if n in template), None)
        self._in_set = "containerSet" in template
        super().__init__(role, place, self._read(template), MAIN if self._kind else None)

    def _read(self, template: JsonMap) -> JsonMap:
        spec: JsonMap = {}
        for name, field in POD.items():
            value = template.get(field)
            above = self._from_above(name)
            if name in _JOINED:
                key = "name" if name == "volumes" else "ip"
                taken = {entry.get(key) for entry in value or ()}
                value = [*(e for e in above or () if e.get(key) not in taken), *(value or ())]
            elif not value:
                value = above
            if value not in (None, []):
                spec[name] = value
        if self._above.spec.get(SHARED):
            spec[SHARED] = self._above.spec[SHARED]
        containers: list[JsonMap] = []
        if self._in_set:
            containers = list((template["containerSet"] or {}).get("containers") or [])
        elif self._kind is not None:
            fields = {n: v for n, v in (template[self._kind] or {}).items() if n not in _SCRIPT}
            containers = [{"name": MAIN, **fields}]
        spec["containers"] = [*containers, *(template.get("sidecars") or [])]
        self._in_front = len(containers)
        return {"spec": spec}

    def write_back(self, draft: Draft) -> None:
        """What `templateDefaults` says cannot be taken off one template."""
        was = self.before
        super().write_back(draft)
        if self.before is was or not self._above.defaults:
            return
        found = self._read(defaulted(self._above.defaults, draft.get(self.place)))
        for name in {**found["spec"], **self.before["spec"]}:
            if not _alike(found["spec"].get(name), self.before["spec"].get(name)):
                raise CannotChangeError(
                    f"part of {name} is set by `templateDefaults`, and cannot be taken off one "
                    "template",
                    field=f"{self.role}.{name}",
                )

    def put(self, draft: Draft, name: str, old: Json, new: Json) -> None:
        """What a template says takes the place of what is said above it."""
        if name == SHARED:
            put_shared(draft, (*self._above.place, name), old or [], new or [])
            return
        if name not in POD:
            raise self.refused(name)
        self._check_patch(draft, name)
        if not old and len(self._above.values(name, self._key)) > 1:
            raise CannotChangeError(
                f"the templates that call {self.role} differ in {name}, and one of its own would "
                "take its place: set it on the template",
                field=f"{self.role}.{name}",
            )
        above = self._from_above(name)
        if name in _JOINED:
            shared = [e for e in above or () if e in (old or [])]
            if gone := [e for e in shared if e not in (new or []) and not _named(e, new or [])]:
                raise CannotChangeError(
                    f"{name} {gone[0].get('name', gone[0].get('ip'))} is the whole workflow's, and "
                    "cannot be taken off one template",
                    field=f"{self.role}.{name}",
                )
            new = [entry for entry in new or [] if entry not in shared]
        elif not new and above:
            raise CannotChangeError(
                f"{name} is the whole workflow's, and cannot be taken off one template",
                field=f"{self.role}.{name}",
            )
        elif same(new, above) and name not in self._above.defaults:
            new = None  # it has that from above
        move(draft, (*self.place, POD[name]), new)

    def put_main(self, draft: Draft, name: str, new: Json) -> None:
        """A field of the main container."""
        assert self._kind is not None
        self._check_patch(draft, name)
        move(draft, (*self.place, self._kind, name), new)

    def put_others(self, draft: Draft, old: list[Json], new: list[Json]) -> None:
        """The containers of a set, and the sidecars."""
        front = self._in_front if self._in_set else 0
        names = [entry.get("name") for entry in old[:front]]
        if [entry.get("name") for entry in new[:front]] != names:
            raise CannotChangeError(
                f"the containers of the set of {self.role} stay as many as they are",
                field=f"{self.role}.containerSet",
            )
        if not same(old[:front], new[:front]):
            move(draft, (*self.place, "containerSet", "containers"), new[:front])
        if not same(old[front:], new[front:]):
            move(draft, (*self.place, "sidecars"), new[front:])

    def _from_above(self, name: str) -> Json:
        """What the pod has where the template says nothing, if that is one value."""
        values = self._above.values(name, self._key)
        return values[0] if len(values) == 1 else None

    def _check_patch(self, draft: Draft, name: str) -> None:
        """A `podSpecPatch` is laid over what a template says."""
        for place in (self.place, self._above.place):
            patch = draft.get((*place, "podSpecPatch"))
            if isinstance(patch, str) and re.search(rf"\b{name}\b['\"]?\s*:", patch):
                raise CannotChangeError(
                    f"{name} of a {self.role} is set by its `podSpecPatch`, which is laid over "
                    "what the template says",
                    field=f"{self.role}.podSpecPatch",
                )


_SCRIPT = frozenset({"name", "source"})


def _named(entry: JsonMap, entries: list[JsonMap]) -> bool:
    return any(other.get("name") == entry.get("name") for other in entries if "name" in entry)


def _alike(a: Json, b: Json) -> bool:
    """Whether two values are the same, but for the order of lists."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(any(_alike(x, y) for y in b) for x in a)
    return same(a, b)
