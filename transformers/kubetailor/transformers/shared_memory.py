"""Shared memory: a volume of the medium `Memory` at ``/dev/shm``.

https://kubernetes.io/docs/concepts/storage/volumes/#emptydir
"""

from __future__ import annotations

from typing import Any

from kubetailor.registry import ConflictError, InvalidObjectError, Pod, transformer
from kubetailor.transformers.types import Quantity
from kubetailor.workloads import parse_quantity, same_quantity

__all__ = ["shared_memory"]

PATH = "/dev/shm"
VOLUME = "dshm"


@transformer(atomic=True)
def shared_memory(
    pod: Pod, *, size_limit: Quantity | None = None, container: str | None = None
) -> None:
    """Give a container shared memory, as training with several workers needs it.

    What is mounted at ``/dev/shm`` already is resized. Where a Flyte task asks for
    `shared_memory=`, which FlytePropeller makes a volume of, that is what is resized.

    Args:
        pod: the pod.
        size_limit: how much; by default as much as the container's memory limit allows.
        container: the container's name; by default the primary one.
    """
    target = pod.primary if container is None else pod.container(container)
    limit, where = target.quantity("memory"), pod.where("containers")
    over = size_limit and limit is not None
    if over and parse_quantity(size_limit) > parse_quantity(limit, where):
        pod.workload.warn(
            f"shm {size_limit} is more than the memory limit {limit}, which it counts towards",
            pod.where("volumes"),
        )
    if pod.workload.is_task_template and pod.workload.get("extendedResources", "sharedMemory"):
        if size_limit:
            pod.workload.edit("extendedResources", "sharedMemory")["sizeLimit"] = size_limit
        return
    mounted = target.mounted(PATH)
    if mounted is None:
        pod.add_volume(VOLUME, {"emptyDir": _memory({}, size_limit)})
        target.mount(VOLUME, PATH)
        return
    _resize(pod, mounted, size_limit)


def _memory(empty_dir: dict[str, Any], size_limit: str | None) -> dict[str, Any]:
    found = {**empty_dir, "medium": "Memory"}
    if size_limit and not same_quantity(found.get("sizeLimit"), size_limit):
        found["sizeLimit"] = size_limit
    return found


def _resize(pod: Pod, name: str, size_limit: str | None) -> None:
    volume = next((volume for volume in pod.volumes if volume.get("name") == name), None)
    if volume is None:
        raise InvalidObjectError(f"{PATH} mounts the volume {name!r}, which there is not")
    if "emptyDir" not in volume:
        raise ConflictError(f"{PATH} is a mount of volume {name!r}, which is no emptyDir")
    empty_dir = volume["emptyDir"] or {}
    pod.add_volume(name, {"emptyDir": _memory(empty_dir, size_limit)}, replace=True)
