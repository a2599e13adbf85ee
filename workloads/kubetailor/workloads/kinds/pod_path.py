"""Where a kind keeps its pod templates, and what its operator does not read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kubetailor.workloads.draft import Json, JsonMap, Path, unshared

__all__ = ["Ignored", "PodPath", "keys"]


class Ignored(NamedTuple):
    """A field of a pod spec that the kind's operator does not read.

    Attributes:
        field: its name; ``initContainers[].restartPolicy`` is that of each entry of a list.
        instead: what is read in its place.
        when: whether that holds for an object; by default it does for all.
    """

    field: str
    instead: str
    when: Callable[[JsonMap], bool] | None = None

    def said(self, spec: JsonMap) -> Json:
        """What a pod spec says there; of a list, by the names of its entries."""
        name, each, of_entry = self.field.partition("[].")
        if not each:
            return spec.get(name)
        entries = spec.get(name)
        return {
            str(entry.get("name")): entry[of_entry]
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict) and of_entry in entry
        }


@dataclass(frozen=True)
class PodPath:
    """Where a kind keeps one pod template, or several.

    Attributes:
        role: what the pods do. ``{key}`` is the lower-cased key of the last ``*`` in `path`, and
            ``{name}`` (or another field) a field of the entry of the last ``[]``.
        path: from the object to the template, such as ``spec.template``; ``*`` is every key of a
            map, ``[]`` after a name every entry of a list. Empty: the object is the pod.
        spec: from the template to the pod spec; empty where the template is one.
        metadata: from the template to the pods' labels; None where the kind has no place for them.
        primary: the names by which the operator knows the container that runs the task.
        ignored: the fields of the pod spec that the operator does not read.
        made: whether an object's operator makes such pods; by default it does.
        known: the roles that ``{key}`` stands for, where the operator knows a few alone.
    """

    role: str
    path: str = ""
    spec: str = "spec"
    metadata: str | None = "metadata"
    primary: tuple[str, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    made: Callable[[JsonMap], bool] | None = None
    known: tuple[str, ...] = ()

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that the pods may have; ``{name}`` stands for a name."""
        return self.known or (self.role,)

    def templates(self, root: JsonMap) -> Iterator[tuple[Path, str]]:
        """The (path, role) of each template that is there."""
        if self.made is None or self.made(root):
            yield from self._walk(root, (), keys(self.path), self.role)

    def _walk(
        self, node: Json, path: Path, rest: tuple[str, ...], role: str
    ) -> Iterator[tuple[Path, str]]:
        if not rest:
            if isinstance(node, dict):
                yield path, role
            return
        head, tail = rest[0], rest[1:]
        if head == "*":
            for key, child in node.items() if isinstance(node, dict) else ():
                yield from self._walk(child, (*path, key), tail, role.replace("{key}", key.lower()))
        elif head.endswith("[]"):
            field = head[:-2]
            entries: Json = node.get(field) if isinstance(node, dict) else None
            for index, child in enumerate(entries) if isinstance(entries, list) else ():
                if isinstance(child, dict):
                    named = role
                    for name, value in child.items() if "{" in role else ():
                        if (mark := f"{{{name}}}") in named:
                            named = named.replace(mark, str(value))
                    yield from self._walk(child, (*path, field, index), tail, named)
        elif isinstance(node, dict):
            yield from self._walk(node.get(head), (*path, head), tail, role)

    def changed(self, before: JsonMap, after: JsonMap) -> Iterator[tuple[Path, Json, Json]]:
        """(path, what was there, what is) of each pod spec that is not shared by two versions."""
        yield from _changed(before, after, (), (*keys(self.path), *keys(self.spec)))


def _changed(
    before: Json, after: Json, path: Path, rest: tuple[str, ...]
) -> Iterator[tuple[Path, Json, Json]]:
    if before is after or not isinstance(after, dict):
        return
    if not rest:
        yield path, before, after
        return
    was = before if isinstance(before, dict) else {}
    head, tail = rest[0], rest[1:]
    if head == "*":
        for key, child in after.items():
            yield from _changed(was.get(key), child, (*path, key), tail)
    elif head.endswith("[]"):
        field = head[:-2]
        old, new = was.get(field), after.get(field)
        entries = old if isinstance(old, list) else []
        for index, child in unshared(entries, new) if isinstance(new, list) else ():
            there = entries[index] if index < len(entries) else None
            yield from _changed(there, child, (*path, field, index), tail)
    else:
        yield from _changed(was.get(head), after.get(head), (*path, head), tail)


def keys(path: str) -> tuple[str, ...]:
    """The keys of a path that is written with dots."""
    return tuple(path.split(".")) if path else ()
