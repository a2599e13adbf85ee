"""The catalogue of accelerators: everything that choosing a GPU type means."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kubetailor.registry.entries import AcceleratorError, laid_over, read_fields
from kubetailor.registry.marks import Marks, is_slice_resource
from kubetailor.registry.placeholder import filled
from kubetailor.registry.stated import Stated
from kubetailor.workloads import nearest

__all__ = ["ACCELERATOR_FORMAT", "Accelerator", "AcceleratorError", "Catalogue", "FlyteSettings"]

ACCELERATOR_FORMAT = "accelerator"
"""The `format` that a parameter which names an accelerator has in its JSON Schema."""


@dataclass(frozen=True)
class FlyteSettings:
    """How this cluster's FlytePropeller is set (flyteplugins, `K8sPluginConfig`).

    Attributes:
        device_label: `gpu-device-node-label`.
        partition_label: `gpu-partition-size-node-label`.
        offloaded_closures: FlyteAdmin's `useOffloadedWorkflowClosure`: no phase `launch` sees the
            tasks of an execution.
    """

    device_label: str = "k8s.amazonaws.com/accelerator"
    partition_label: str = "k8s.amazonaws.com/gpu-partition-size"
    offloaded_closures: bool = False

    def pairs(self, device: str | None, partition: str | None) -> dict[str, str]:
        """The node labels by which FlytePropeller places a device."""
        found = {self.device_label: device, self.partition_label: partition}
        return {key: value for key, value in found.items() if value is not None}

    def tolerations(self, device: str | None, partition: str | None) -> list[dict[str, Any]]:
        """The tolerations that FlytePropeller adds for a device."""
        return [
            {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
            for key, value in self.pairs(device, partition).items()
        ]


@dataclass(frozen=True)
class Accelerator:
    """One entry, with `extends` resolved.

    Attributes:
        name: its name.
        resource: the resource that a container asks for, such as ``nvidia.com/gpu``.
        device: Flyte's word for it (`GPUAccelerator(device)`), or None.
        aliases: other words for the device, by which it is recognised too (Flyte 2's).
        partition: Flyte's partition size, or None; of a TPU, the topology.
        node_selector: node labels; ``{count}`` stands for the number of GPUs.
        tolerations: tolerations as Kubernetes writes them.
        node_requirements: match expressions of the required node affinity.
        runtime_class: the `runtimeClassName`, or None.
        per_gpu: resource -> quantity of each GPU's share of the node.
        requests: resource -> quantity that the container requests, whatever the number of GPUs.
        limits: the same for its limits.
        by_count: count -> fields that are laid over this entry.
        pages: the pages of vendors that it comes from.
    """

    name: str
    resource: str
    device: str | None = None
    aliases: tuple[str, ...] = ()
    partition: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_requirements: tuple[Mapping[str, Any], ...] = ()
    runtime_class: str | None = None
    per_gpu: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    by_count: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    pages: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, written: Mapping[str, Any]) -> Accelerator:
        """The entry that was written, `extends` resolved already.

        Raises:
            AcceleratorError: a field that there is not, or a value of the wrong form.
        """
        values = read_fields(f"accelerator {name!r}", written, required=("resource",))
        return cls(name=name, **values)

    def at(self, count: int) -> Accelerator:
        """This entry for a number of GPUs: `by_count` laid over it, ``{count}`` filled in."""
        return self._with(filled(laid_over(self._values, self.by_count.get(count, {})), str(count)))

    @functools.cached_property
    def forms(self) -> tuple[Accelerator, ...]:
        """All that it may look like: itself, and with each of `by_count` laid over it."""
        overlays = self.by_count.values()
        return (self, *(self._with(laid_over(self._values, over)) for over in overlays))

    @property
    def devices(self) -> tuple[str | None, ...]:
        """Every word for the device, or None alone."""
        return (self.device, *self.aliases)

    @property
    def is_slice(self) -> bool:
        """Whether it is a part of a GPU, by partition or by the name of its resource."""
        return self.partition is not None or is_slice_resource(self.resource)

    @property
    def vendor(self) -> str:
        """The domain of the resource, such as ``nvidia.com``."""
        return vendor_of(self.resource)

    @property
    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FORM}

    def _with(self, values: Mapping[str, Any]) -> Accelerator:
        return Accelerator(name=self.name, by_count=self.by_count, **values)


_FORM = tuple(f.name for f in fields(Accelerator) if f.name not in ("name", "by_count"))


def vendor_of(resource: str) -> str:
    """The domain of a resource's name."""
    return resource.partition("/")[0]


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
