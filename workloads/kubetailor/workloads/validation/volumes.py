"""Volumes, and where containers mount them.

https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetailor.workloads.draft import Json, JsonMap, Path, as_list, as_map
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.names import check_name
from kubetailor.workloads.quantity import parse_quantity
from kubetailor.workloads.validation.parts import Checks, fault, new

__all__ = ["CHECKS"]

_NEEDS = {
    "configMap": "name",
    "csi": "driver",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
}
"""Source of a volume -> the field that it must have."""


def _volumes(before: Json, entries: Json, path: Path) -> None:
    names = [as_map(entry).get("name") for entry in as_list(entries)]
    for index, entry in new(before, entries):
        name = names[index]
        if name is None:
            if "mountPath" in entry:  # Volcano's own, of a job
                continue
            raise fault("a volume needs a name", *path, index)
        try:
            check_name(name, "volume")
        except InvalidObjectError as error:
            raise fault(error, *path, index, "name") from None
        if name in names[:index]:
            raise fault(f"volume {name!r} is there twice", *path, index)
        for text in _source_faults(entry):
            raise fault(f"volume {name!r}: {text}", *path, index)


def _source_faults(volume: JsonMap) -> Iterator[str]:
    sources = [key for key, value in volume.items() if key != "name" and value is not None]
    if len(sources) > 1:
        yield f"it has one source, found {', '.join(sources)}"
    for source in sources:
        needed = _NEEDS.get(source)
        if needed is not None and not as_map(volume[source]).get(needed):
            yield f"{source} needs {needed}"
    if _goes_up(as_map(volume.get("hostPath")).get("path")):
        yield "the path of hostPath must not contain '..'"
    size = as_map(volume.get("emptyDir")).get("sizeLimit")
    if size is not None:
        try:
            if parse_quantity(size) < 0:
                yield f"sizeLimit {size} is negative"
        except InvalidObjectError as error:
            yield f"sizeLimit: {error}"


def _goes_up(path: Json) -> bool:
    return isinstance(path, str) and ".." in path.split("/")


def _mounts(before: Json, entries: Json, path: Path) -> None:
    places = [as_map(entry).get("mountPath") for entry in as_list(entries)]
    for index, entry in new(before, entries):
        for text in _mount_faults(entry):
            raise fault(text, *path, index)
        if places.count(places[index]) > 1:
            raise fault(f"two volumes are mounted at {places[index]}", *path, index)


def _mount_faults(mount: JsonMap) -> Iterator[str]:
    if not mount.get("mountPath"):
        yield "a mount needs a mountPath"
    for field in ("subPath", "subPathExpr"):
        below = mount.get(field)
        if isinstance(below, str) and (below.startswith("/") or _goes_up(below)):
            yield f"{field} {below}: must be a path below the volume, without '..'"
    if mount.get("subPath") and mount.get("subPathExpr"):
        yield "either subPath or subPathExpr"
    if mount.get("recursiveReadOnly") in ("IfPossible", "Enabled") and not mount.get("readOnly"):
        yield "recursiveReadOnly goes with readOnly: true"


CHECKS: Final[Checks] = {"volumeMounts": _mounts, "volumes": _volumes}
