"""An accelerator: everything that choosing a GPU type means."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kubetailor.registry.entries import laid_over, read_fields
from kubetailor.registry.placeholder import filled

__all__ = ["ACCELERATOR_FORMAT", "Accelerator", "is_slice_resource", "vendor_of"]

ACCELERATOR_FORMAT = "accelerator"
"""The `format` that a parameter which names an accelerator has in its JSON Schema."""


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

    def stated_pairs(self) -> Iterator[tuple[str, str]]:
        """The (node label, value) by which it is placed: selector pairs and values of `In`."""
        yield from self.node_selector.items()
        for expression in self.node_requirements:
            if expression["operator"] == "In":
                for value in expression.get("values", ()):
                    yield expression["key"], value

    @property
    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FORM}

    def _with(self, values: Mapping[str, Any]) -> Accelerator:
        return Accelerator(name=self.name, by_count=self.by_count, **values)


_FORM = tuple(f.name for f in fields(Accelerator) if f.name not in ("name", "by_count"))


def vendor_of(resource: str) -> str:
    """The domain of a resource's name."""
    return resource.partition("/")[0]


def is_slice_resource(resource: str) -> bool:
    """Whether a resource stands for a part of a GPU.

    https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html names
    them ``nvidia.com/mig-…``, and gpu-sharing.html on that site ``….shared``.
    """
    kind = resource.partition("/")[2]
    return kind.startswith("mig-") or kind.endswith(".shared")
