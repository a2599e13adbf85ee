"""By what an accelerator is recognised on a pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from kubetailor.registry.accelerator import Accelerator, is_slice_resource
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.placeholder import COUNT, matches_count

__all__ = ["Marks"]

_Mark: TypeAlias = tuple[str, tuple[str, ...]]
"""An entry's name, and what tells its marks apart."""


class Marks:
    """The marks of a catalogue's entries, built once for it.

    A mark is a selector pair, a value of an `In` requirement, a device or partition on
    FlytePropeller's labels, or a resource that only one entry uses or that stands for a slice.
    ``{count}`` in a mark is any number.

    Attributes:
        resources: every resource that an entry asks for.
    """

    def __init__(self, entries: Iterable[Accelerator], flyte: FlyteSettings) -> None:
        """The marks of some entries.

        Args:
            entries: the accelerators.
            flyte: how FlytePropeller is set.
        """
        self._entries: dict[str, Accelerator] = {}
        self._exact: dict[tuple[str, str], list[_Mark]] = {}
        self._patterns: dict[str, list[tuple[str, _Mark]]] = {}
        users: dict[str, set[str]] = {}
        for entry in entries:
            self._entries[entry.name] = entry
            for form in entry.forms:
                users.setdefault(form.resource, set()).add(entry.name)
                for key, value in form.stated_pairs():
                    self._add(key, value, (entry.name, ("stated", key, value)))
                for device in form.devices:
                    for key, value in flyte.pairs(device, form.partition).items():
                        self._add(key, value, (entry.name, ("flyte", key, value)))
        self.resources: frozenset[str] = frozenset(users)
        self._telling: Mapping[str, list[str]] = {
            resource: sorted(names)
            for resource, names in users.items()
            if len(names) == 1 or is_slice_resource(resource)
        }

    def _add(self, key: str, value: str, mark: _Mark) -> None:
        if COUNT in value:
            self._patterns.setdefault(key, []).append((value, mark))
        else:
            self._exact.setdefault((key, value), []).append(mark)

    def _of(self, key: str, value: Any) -> Iterator[_Mark]:
        if not isinstance(value, str):
            return
        yield from self._exact.get((key, value), ())
        for pattern, mark in self._patterns.get(key, ()):
            if matches_count(pattern, value):
                yield mark

    def known(self, key: str, value: str) -> bool:
        """Whether some accelerator is placed by this value of a node label."""
        return next(self._of(key, value), None) is not None

    def present(
        self, pairs: Iterable[tuple[str, Any]], resources: Iterable[str]
    ) -> tuple[Accelerator, ...]:
        """The accelerator that is on a pod: the one with most marks, on a tie all of them.

        Args:
            pairs: the (node label, value) by which the pod is placed.
            resources: the resources that it asks for.
        """
        found: dict[str, set[tuple[str, ...]]] = {}
        for key, value in pairs:
            for name, mark in self._of(key, value):
                found.setdefault(name, set()).add(mark)
        for resource in resources:
            for name in self._telling.get(resource, ()):
                found.setdefault(name, set()).add(("resource", resource))
        most = max(map(len, found.values()), default=0)
        return tuple(self._entries[name] for name, marks in found.items() if len(marks) == most)
