"""What the parts of a pod spec say of each other."""

from __future__ import annotations

from typing import Final

from kubetailor.workloads.draft import Json, JsonMap, Path, as_list, as_map
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.named import CONTAINERS
from kubetailor.workloads.names import check_name
from kubetailor.workloads.validation.parts import TEMPLATE_GROUPS, fault, given

__all__ = ["check_containers", "volumes_elsewhere"]

_FOR_SIDECARS: Final = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")

_WHOLE: Final = TEMPLATE_GROUPS | {""}
"""API groups whose pod templates have every volume that is mounted.

Others, and tasks, take some from elsewhere: a runtime, a workflow, the PodTemplate of the cluster.
"""


def volumes_elsewhere(obj: JsonMap) -> list[Json] | None:
    """The names of volumes that the pods of an object have beside those of their specs.

    None where they are not known.
    """
    api = obj.get("apiVersion")
    if not isinstance(api, str) or api.rpartition("/")[0] not in _WHOLE:
        return None
    claims = as_map(obj.get("spec")).get("volumeClaimTemplates")  # a StatefulSet's
    return [as_map(as_map(claim).get("metadata")).get("name") for claim in as_list(claims)]


def check_containers(
    before: JsonMap, spec: JsonMap, path: Path, elsewhere: list[Json] | None
) -> None:
    """The containers of a pod spec, beside each other and beside its volumes.

    Args:
        before: the pod spec before.
        spec: the pod spec.
        path: where it is.
        elsewhere: as `volumes_elsewhere` has it.

    Raises:
        InvalidObjectError: the first fault, with its path.
    """
    changed = [field for field in CONTAINERS if before.get(field) is not spec.get(field)]
    remounted = before.get("volumes") is not spec.get("volumes")
    if not changed and not remounted:
        return
    if any(_names(before.get(field)) != _names(spec.get(field)) for field in changed):
        _check_names(spec, path)  # where all are what they were, they are the author's
    old = {entry.get("name"): entry for _, _, entry in _entries(before)}
    volumes = None if elsewhere is None else [*_names(spec.get("volumes")), *elsewhere]
    for field, index, container in _entries(spec):
        was = old.get(container.get("name")) or {}
        if was is container and not remounted:
            continue
        place = (*path, field, index)
        if field == "initContainers":
            _check_init(was, container, place)
        mounts = container.get("volumeMounts")
        if not mounts or (mounts is was.get("volumeMounts") and not remounted):
            continue
        for number, mount in enumerate(as_list(mounts)):
            name, where = as_map(mount).get("name"), (*place, "volumeMounts", number)
            if volumes is not None and name not in volumes:
                _check_missing(name, volumes, before, was, where)
            if as_map(mount).get("mountPropagation") == "Bidirectional":
                _check_privilege(was, container, mount, where)


def _entries(spec: JsonMap) -> list[tuple[str, int, JsonMap]]:
    return [
        (field, index, entry)
        for field in CONTAINERS
        for index, entry in enumerate(spec.get(field) or ())
        if isinstance(entry, dict)
    ]


def _names(entries: Json) -> list[Json]:
    return [entry.get("name") for entry in as_list(entries) if isinstance(entry, dict)]


def _check_names(spec: JsonMap, path: Path) -> None:
    seen = set()
    for field, index, container in _entries(spec):
        name = container.get("name")
        if name is None:
            raise fault("a container needs a name", *path, field, index)
        try:
            check_name(name, "container")
        except InvalidObjectError as error:
            raise fault(error, *path, field, index, "name") from None
        if name in seen:
            raise fault(f"container {name!r} is there twice", *path, field, index)
        seen.add(name)


def _check_init(was: JsonMap, container: JsonMap, path: Path) -> None:
    if container.get("restartPolicy") == "Always":
        return
    for field in given(container, _FOR_SIDECARS):
        if container[field] is not was.get(field) or was.get("restartPolicy") == "Always":
            raise fault(f"{field} is for init containers with restartPolicy: Always", *path, field)


def _check_privilege(was: JsonMap, container: JsonMap, mount: JsonMap, path: Path) -> None:
    privileged = as_map(container.get("securityContext")).get("privileged")
    if privileged is not True and mount not in as_list(was.get("volumeMounts")):
        raise fault("mountPropagation: Bidirectional is for privileged containers", *path)


def _check_missing(
    name: Json, volumes: list[Json], before: JsonMap, was: JsonMap, path: Path
) -> None:
    """A volume that never was there, and was mounted all the same, is the author's own fault."""
    if name in _names(before.get("volumes")) or name not in _names(was.get("volumeMounts")):
        found = ", ".join(map(str, volumes)) or "none"
        raise fault(f"there is no volume {name!r} to mount; found {found}", *path)
