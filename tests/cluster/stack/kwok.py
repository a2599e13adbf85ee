"""Nodes that say that their pods run."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from ..build import TOOLS, program
from .core import Core
from .process import Process, free_port

__all__ = ["KWOK", "node", "start_kwok"]

KWOK: Final = {"kubetailor.dev/kubelet": "kwok"}
"""The label of the nodes that kwok keeps."""

_STAGES: Final = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
_CAPACITY: Final = {"cpu": "96", "memory": "1Ti", "pods": "500", "ephemeral-storage": "1Ti"}


def start_kwok(core: Core, stack: ExitStack) -> Process:
    """Start kwok for the nodes with its label."""
    stages = TOOLS["kwok"].home / "stage"
    files = [path for stage in _STAGES for path in sorted(Path(stages, stage).glob("*.yaml"))]
    command = [
        program("kwok"),
        f"--kubeconfig={core.kubeconfig}",
        *(f"--manage-nodes-with-label-selector={key}={value}" for key, value in KWOK.items()),
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{free_port()}",
        *(f"--config={file}" for file in files if file.name != "kustomization.yaml"),
    ]
    return stack.enter_context(Process("kwok", command, folder=core.folder))


def node(
    name: str,
    *,
    gpus: int = 0,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
) -> dict[str, Any]:
    """A Node that kwok keeps: one with GPUs, labels and taints, as a cloud makes it."""
    capacity = {**_CAPACITY, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **KWOK, **(labels or {})},
        },
        "spec": {"taints": taints or []},
        "status": {"allocatable": capacity, "capacity": capacity},
    }
