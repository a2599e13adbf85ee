"""The catalogue of accelerators: everything that choosing a GPU type means."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kubetailor.workloads import KubetailorError, deep_copy, nearest

__all__ = ["Accelerator", "AcceleratorError", "Catalogue", "FlyteSettings", "matches_count"]

_COUNT = "{count}"


class AcceleratorError(KubetailorError):
    """An entry of the catalogue that cannot be used."""


@dataclass(frozen=True)
class FlyteSettings:
    """How this cluster's FlytePropeller is set (flyteplugins, `K8sPluginConfig`).

    Attributes:
        device_label: `gpu-device-node-label`.
        partition_label: `gpu-partition-size-node-label`.
    """

    device_label: str = "k8s.amazonaws.com/accelerator"
    partition_label: str = "k8s.amazonaws.com/gpu-partition-size"


@dataclass(frozen=True)
class Accelerator:
    """One entry, with `extends` resolved.

    Attributes:
        name: its name.
        resource: the resource that a container asks for, such as ``nvidia.com/gpu``.
        device: Flyte's word for it (`GPUAccelerator(device)`), or None.
        partition: Flyte's partition size, or None.
        node_selector: node labels; ``{count}`` stands for the number of GPUs.
        tolerations: tolerations as Kubernetes writes them.
        node_requirements: match expressions of the required node affinity.
        runtime_class: the `runtimeClassName`, or None.
        per_gpu: resource -> quantity of each GPU's share of the node.
        by_count: count -> fields that are laid over this entry.
    """

    name: str
    resource: str
    device: str | None = None
    partition: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_requirements: tuple[Mapping[str, Any], ...] = ()
    runtime_class: str | None = None
    per_gpu: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    by_count: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def at(self, count: int | None) -> Accelerator:
        """This entry for a number of GPUs: `by_count` laid over it, ``{count}`` filled in."""
        values = {name: getattr(self, name) for name in _FIELDS}
        if count is not None and count in self.by_count:
            values = _laid_over(values, self.by_count[count])
        if count is not None:
            values = _filled(values, str(count))
        return _entry(self.name, {**values, "by_count": self.by_count})


_FIELDS = tuple(f.name for f in fields(Accelerator) if f.name not in ("name", "by_count"))
_WRITTEN = {*_FIELDS, "by_count", "extends"}


def _filled(value: Any, count: str) -> Any:
    if isinstance(value, str):
        return value.replace(_COUNT, count)
    if isinstance(value, Mapping):
        return {key: _filled(item, count) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_filled(item, count) for item in value)
    return value


def _laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Maps merge by key, null deletes, lists replace."""
    found = dict(under)
    for key, value in over.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(found.get(key), Mapping):
            found[key] = _laid_over(found[key], value)
        else:
            found[key] = deep_copy(value)
    return found


def _entry(name: str, values: Mapping[str, Any]) -> Accelerator:
    if unknown := values.keys() - _WRITTEN:
        odd = sorted(unknown)[0]
        raise AcceleratorError(
            f"accelerator {name!r}: no field {odd!r}; {nearest(odd, _WRITTEN, what='fields')}"
        )
    if not isinstance(values.get("resource"), str):
        raise AcceleratorError(f"accelerator {name!r}: `resource` is required, a resource's name")
    typed = dict(values)
    for key in ("tolerations", "node_requirements"):
        entries = typed.get(key) or ()
        if not all(isinstance(entry, Mapping) for entry in entries):
            raise AcceleratorError(f"accelerator {name!r}: {key} must be a list of objects")
        typed[key] = tuple(entries)
    for key in ("node_selector", "per_gpu", "requests", "limits", "by_count"):
        part = typed.get(key) or {}
        if not isinstance(part, Mapping):
            raise AcceleratorError(f"accelerator {name!r}: {key} must be a map")
        typed[key] = part if key == "by_count" else {k: str(v) for k, v in part.items()}
    try:
        typed["by_count"] = {int(count): over for count, over in typed["by_count"].items()}
    except ValueError:
        raise AcceleratorError(f"accelerator {name!r}: by_count's keys must be numbers") from None
    return Accelerator(name=name, **{k: v for k, v in typed.items() if k != "extends"})


class Catalogue(Mapping[str, Accelerator]):
    """The accelerators by name; resolved when asked for."""

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
        self.flyte = flyte or FlyteSettings()

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def __getitem__(self, name: str) -> Accelerator:
        if name not in self._resolved:
            if name not in self._written:
                raise KeyError(name)
            self._resolved[name] = _entry(name, self._values(name, ()))
        return self._resolved[name]

    def _values(self, name: str, seen: tuple[str, ...]) -> dict[str, Any]:
        if name in seen:
            raise AcceleratorError(f"accelerator {name!r}: cyclic `extends`: {' -> '.join((*seen, name))}")
        if name not in self._written:
            raise AcceleratorError(
                f"accelerator {seen[-1]!r}: it extends {name!r}, which there is not; "
                f"{nearest(name, self._written, what='accelerators')}"
            )
        own = self._written[name]
        if not isinstance(own, Mapping):
            raise AcceleratorError(f"accelerator {name!r}: expected a map, found {own!r}")
        parent = own.get("extends")
        rest = {key: value for key, value in own.items() if key != "extends"}
        if parent is None:
            return _laid_over({}, rest)
        return _laid_over(self._values(str(parent), (*seen, name)), rest)

    def require(self, name: str) -> Accelerator:
        """The accelerator of a name.

        Raises:
            AcceleratorError: there is none; the message has the nearest.
        """
        try:
            return self[name]
        except KeyError:
            raise AcceleratorError(
                f"no accelerator {name!r}; {nearest(name, self, what='accelerators')}"
            ) from None

    @functools.cached_property
    def all(self) -> tuple[Accelerator, ...]:
        """Every accelerator."""
        return tuple(self[name] for name in self)


def matches_count(pattern: str, text: str) -> bool:
    """Whether a text is a pattern with any number in the place of ``{count}``."""
    if _COUNT not in pattern:
        return pattern == text
    return _count_pattern(pattern).fullmatch(text) is not None


@functools.lru_cache(maxsize=1024)
def _count_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(r"\d+".join(map(re.escape, pattern.split(_COUNT))))
