"""The catalogue of accelerators."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from kubetailor.registry.accelerator import Accelerator
from kubetailor.registry.entries import AcceleratorError, laid_over
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.marks import Marks
from kubetailor.registry.stated import Stated
from kubetailor.workloads import nearest

__all__ = ["Catalogue"]


class Catalogue(Mapping[str, Accelerator]):
    """The accelerators by name; resolved when asked for.

    Attributes:
        flyte: how FlytePropeller is set.
    """

    def __init__(
        self,
        entries: Mapping[str, Mapping[str, Any]] | None = None,
        flyte: FlyteSettings | None = None,
    ) -> None:
        """A catalogue.

        Args:
            entries: name -> entry as it is written, `extends` and all.
            flyte: how FlytePropeller is set.
        """
        self._written = dict(entries or {})
        self._resolved: dict[str, Accelerator] = {}
        self._counted: dict[tuple[str, int], Accelerator] = {}
        self._stated: dict[tuple[str, ...], Stated] = {}
        self.flyte: FlyteSettings = flyte or FlyteSettings()

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def __contains__(self, name: object) -> bool:
        return name in self._written

    def __getitem__(self, name: str) -> Accelerator:
        if name not in self._resolved:
            if name not in self._written:
                raise KeyError(name)
            self._resolved[name] = Accelerator.of(name, self._values(name, ()))
        return self._resolved[name]

    def _values(self, name: str, seen: tuple[str, ...]) -> dict[str, Any]:
        if name in seen:
            circle = " -> ".join((*seen, name))
            raise AcceleratorError(f"accelerator {name!r}: cyclic `extends`: {circle}")
        if name not in self._written:
            raise AcceleratorError(
                f"accelerator {seen[-1]!r}: it extends {name!r}, which there is not; "
                f"{self._near(name)}"
            )
        own = self._written[name]
        if not isinstance(own, Mapping):
            raise AcceleratorError(f"accelerator {name!r}: expected a map, found {own!r}")
        parent = own.get("extends")
        rest = {key: value for key, value in own.items() if key != "extends"}
        if parent is None:
            return laid_over({}, rest)
        return laid_over(self._values(str(parent), (*seen, name)), rest)

    def require(self, name: str) -> Accelerator:
        """The accelerator of a name.

        Raises:
            AcceleratorError: there is none; the message has the nearest.
        """
        try:
            return self[name]
        except KeyError:
            raise AcceleratorError(f"no accelerator {name!r}; {self._near(name)}") from None

    def _near(self, name: str) -> str:
        listing = "kubetailor accelerators"
        return nearest(name, self._written, what="accelerators", listing=listing)

    def at(self, name: str, count: int) -> Accelerator:
        """The accelerator of a name for a number of GPUs; see `Accelerator.at`."""
        key = (name, count)
        if key not in self._counted:
            self._counted[key] = self.require(name).at(count)
        return self._counted[key]

    def stated(self, entries: tuple[Accelerator, ...]) -> Stated:
        """What some accelerators of this catalogue state."""
        names = tuple(entry.name for entry in entries)
        if names not in self._stated:
            self._stated[names] = Stated(entries, self.flyte)
        return self._stated[names]

    def placed_by_flyte(self, entry: Accelerator) -> bool:
        """Whether FlytePropeller alone places the entry: by its device, and nothing else."""
        known = self.flyte.tolerations(entry.device, entry.partition)
        return (
            entry.device is not None
            and entry.runtime_class is None
            and not entry.node_requirements
            and entry.node_selector == self.flyte.pairs(entry.device, entry.partition)
            and all(toleration in known for toleration in entry.tolerations)
        )

    @functools.cached_property
    def all(self) -> tuple[Accelerator, ...]:
        """Every accelerator."""
        return tuple(self[name] for name in self)

    @functools.cached_property
    def marks(self) -> Marks:
        """What the accelerators are recognised by."""
        return Marks(self.all, self.flyte)
