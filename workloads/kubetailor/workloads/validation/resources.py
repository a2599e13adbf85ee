"""What containers ask for.

https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from __future__ import annotations

from typing import Any, Final

from kubetailor.workloads.draft import Json, Path, as_map
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.names import check_key
from kubetailor.workloads.quantity import is_extended_resource, is_whole, parse_quantity
from kubetailor.workloads.validation.parts import Checks, fault

__all__ = ["CHECKS"]

_PARTS = ("requests", "limits")
_HUGE_PAGES = "hugepages-"
_PLAIN = frozenset({"cpu", "memory", "ephemeral-storage", "storage", "gpu"})
"""Names without a domain: ``storage`` is a volume claim's, ``gpu`` flytekit's."""


def _resources(before: Json, resources: Json, path: Path) -> None:
    if not isinstance(resources, dict):
        return
    old = as_map(before)
    if any(isinstance(resources.get(part), list) for part in _PARTS):  # Flyte's own form
        return
    new: set[str] = set()
    for part in _PARTS:
        was = as_map(old.get(part))
        for name, value in as_map(resources.get(part)).items():
            if name not in was or value is not was[name]:
                if name not in was:
                    _check_name(name, (*path, part))
                _check_amount(name, value, (*path, part, name))
                new.add(name)
    requests, limits = (as_map(resources.get(part)) for part in _PARTS)
    for name, request in requests.items():
        if name in new and limits.get(name) is not None:
            _compare(name, request, limits[name], path)


def _check_name(name: str, path: Path) -> None:
    if "/" not in name:
        if name not in _PLAIN and not name.startswith(_HUGE_PAGES):
            raise fault(
                f"resource {name!r}: write its domain too, as in nvidia.com/gpu; without one there "
                "are cpu, memory, ephemeral-storage and hugepages-<size>",
                *path,
            )
        return
    try:
        check_key(name)
    except InvalidObjectError as error:
        raise fault(error, *path) from None
    if name.startswith("requests."):  # kubernetes, pkg/apis/core/helper, `IsExtendedResourceName`
        raise fault(f"resource {name!r}: `requests.` is for quotas", *path)


def _check_amount(name: str, value: Json, path: Path) -> None:
    try:
        amount = parse_quantity(value)
    except InvalidObjectError as error:
        raise fault(error, *path) from None
    if amount < 0:
        raise fault(f"{name} {value} is negative", *path)
    if is_extended_resource(name) and not is_whole(value):
        raise fault(f"{name} must be a whole number, found {value}", *path)


def _compare(name: str, request: Any, limit: Any, path: Path) -> None:
    asked, most = parse_quantity(request), parse_quantity(limit)
    if asked == most:
        return
    for holds, what in (
        (is_extended_resource(name), "it is an extended resource"),
        (name.startswith(_HUGE_PAGES), "huge pages are not overcommitted"),
    ):
        if holds:
            raise fault(
                f"requests.{name} {request} and limits.{name} {limit} must be equal: {what}", *path
            )
    if asked > most:
        raise fault(
            f"requests.{name} {request} ({asked:f}) is more than limits.{name} {limit} "
            f"({most:f}); raise the limit too, or set raise_limits",
            *path,
        )


CHECKS: Final[Checks] = {"resources": _resources}
