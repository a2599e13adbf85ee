"""Volumes and their mounts.

https://kubernetes.io/docs/concepts/storage/volumes/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers._lists import chosen
from kubetailor.transformers._pod_types import NamedVolume, VolumeMount
from kubetailor.transformers.types import names_to_remove
from kubetailor.workloads.identity import mount_path

__all__ = ["volumes"]


@transformer
def volumes(
    pod: Pod,
    *,
    add: list[NamedVolume] | None = None,
    remove: list[str] | None = None,
    mount: list[VolumeMount] | None = None,
    unmount: list[str] | None = None,
    containers: list[str] | None = None,
    replace: bool = False,
) -> None:
    """Add volumes and mount them, or take them off with all their mounts.

    A volume is known by its name, a mount by its path: ``/data/`` is ``/data``. The containers are
    those that are there when the step runs, so it comes after what adds some.

    Args:
        pod: the pod.
        add: volumes as Kubernetes writes them.
        remove: names of volumes that go, with every mount of them, save what is added.
        mount: mounts as Kubernetes writes them.
        unmount: paths at which nothing is mounted, save those of `mount`; the volumes stay.
        containers: globs of the names of the containers that `mount` and `unmount` are about, init
            containers too; by default the primary one.
        replace: put a volume or mount in place of another of the same name or path; otherwise
            that is an error.
    """
    targets = []
    if mount or unmount:
        targets = [pod.primary] if containers is None else chosen(pod, containers)
    for name in names_to_remove(remove, {volume["name"] for volume in add or ()}):
        pod.remove_volume(name)
    for volume in add or ():
        source = {key: value for key, value in volume.items() if key != "name"}
        pod.add_volume(volume["name"], source, replace=replace)
    wanted = {mount_path(entry["mountPath"]) for entry in mount or ()}
    for target in targets:
        for path in names_to_remove(map(mount_path, unmount or ()), wanted):
            target.unmount(path)
        for entry in mount or ():
            target.add_mount(entry, replace=replace)
