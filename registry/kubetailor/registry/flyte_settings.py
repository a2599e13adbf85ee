"""How this cluster's FlytePropeller is set, as far as it matters to accelerators and overrides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["FlyteSettings"]


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
