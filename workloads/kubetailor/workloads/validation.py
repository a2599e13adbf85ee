"""What Kubernetes would refuse, checked on the parts that a chain changed.

Each rule is one that the API server applies and that the chain may have broken; of the author's own
mistakes those in a map or a pod spec that the chain changed, if they never run (`authored`). The
others are left for the API server to report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubetailor.workloads.authored import check_container_names, check_pod_spec, check_texts
from kubetailor.workloads.draft import Json, JsonMap, Key, Path, dotted, unshared
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.metadata import FLYTE_LABELS
from kubetailor.workloads.names import (
    ANNOTATIONS_LIMIT,
    check_env_name,
    check_key,
    check_label_value,
    check_name,
)
from kubetailor.workloads.quantity import is_extended_resource, is_whole, parse_quantity

__all__ = ["validate"]

_NESTED = (dict, list)
_LIMIT = 100  # deeper than any kind nests its pods
_PARTS = ("requests", "limits")
_FLYTE_LABELS = sorted(FLYTE_LABELS)


def validate(before: JsonMap, after: JsonMap) -> None:
    """Check every part of `after` that is not shared with `before`.

    Raises:
        InvalidObjectError: the first fault, with its path.
    """
    _walk(before, after, ())
    check_container_names(before, after)


def _walk(before: Json, after: Json, path: Path) -> None:
    if before is after or len(path) > _LIMIT:
        return
    if isinstance(after, dict):
        old = _map(before)
        if "containers" in after:
            check_pod_spec(after, path)
        if old.get("labels") is not after.get("labels"):
            _flyte_labels(_map(old.get("labels")), _map(after.get("labels")), (*path, "labels"))
        for key, value in after.items():
            was = old.get(key)
            if value is was:
                continue
            check = _CHECKS.get(key)
            if check is not None:
                if check(was, value, (*path, key)):
                    continue
            elif not isinstance(value, _NESTED):
                continue
            _walk(was, value, (*path, key))
    elif isinstance(after, list):
        was_list = before if isinstance(before, list) else []
        for index, value in unshared(was_list, after):
            if isinstance(value, _NESTED):
                _walk(was_list[index] if index < len(was_list) else None, value, (*path, index))


def _new(before: Json, after: Json) -> list[tuple[int, Json]]:
    """The (index, entry) of each entry of a list that is not shared with the list before."""
    if not isinstance(after, list):
        return []
    return unshared(before if isinstance(before, list) else [], after)


def _map(value: Json) -> JsonMap:
    return value if isinstance(value, dict) else {}


def _fail(error: InvalidObjectError | str, *path: Key) -> InvalidObjectError:
    return InvalidObjectError(str(error), field=dotted(path))


def _flyte_labels(before: JsonMap, after: JsonMap, path: Path) -> None:
    """A chain neither writes nor removes what Flyte finds its objects by."""
    for key in _FLYTE_LABELS:
        if before.get(key) != after.get(key):
            raise _fail(f"label {key!r} is Flyte's own and never written", *path)


def _labels(before: Json, labels: Json, path: Path) -> bool:
    if not isinstance(labels, dict):
        return False
    check_texts(labels, path, "label ")
    old = _map(before)
    for key, value in labels.items():
        if key in old and value is old[key]:
            continue
        try:
            check_key(key)
            check_label_value(key, value)
        except InvalidObjectError as error:
            raise _fail(error, *path) from None
    return True


def _annotations(before: Json, annotations: Json, path: Path) -> bool:
    if not isinstance(annotations, dict):
        return False
    check_texts(annotations, path)
    old = _map(before)
    for key, value in annotations.items():
        if key in old and value is old[key]:
            continue
        try:
            check_key(key)
        except InvalidObjectError as error:
            raise _fail(error, *path) from None
        if not isinstance(value, str):
            raise _fail(f"{key}: the value must be a string, found {value!r}", *path)
    size = len("".join([*annotations, *map(str, annotations.values())]).encode())
    if size > ANNOTATIONS_LIMIT:
        raise _fail(f"{size} bytes of annotations, at most {ANNOTATIONS_LIMIT} (256 KiB)", *path)
    return True


def _resources(before: Json, resources: Json, path: Path) -> bool:
    if not isinstance(resources, dict):
        return False
    old = _map(before)
    if any(isinstance(resources.get(part), list) for part in _PARTS):  # Flyte's own form
        return True
    new: set[str] = set()
    for part in _PARTS:
        was = _map(old.get(part))
        for name, value in _map(resources.get(part)).items():
            if name not in was or value is not was[name]:
                _check_amount(name, value, (*path, part, name))
                new.add(name)
    requests, limits = (_map(resources.get(part)) for part in _PARTS)
    for name, request in requests.items():
        if name in new and limits.get(name) is not None:
            _compare(name, request, limits[name], path)
    return True


def _check_amount(name: str, value: Json, path: Path) -> None:
    try:
        amount = parse_quantity(value)
    except InvalidObjectError as error:
        raise _fail(error, *path) from None
    if amount < 0:
        raise _fail(f"{name} {value} is negative", *path)
    if is_extended_resource(name) and not is_whole(value):
        raise _fail(f"{name} must be a whole number, found {value}", *path)


def _compare(name: str, request: Any, limit: Any, path: Path) -> None:
    asked, most = parse_quantity(request), parse_quantity(limit)
    if is_extended_resource(name) and asked != most:
        raise _fail(
            f"requests.{name} {request} and limits.{name} {limit} must be equal: it is an "
            "extended resource",
            *path,
        )
    if asked > most:
        raise _fail(
            f"requests.{name} {request} ({asked:f}) is more than limits.{name} {limit} "
            f"({most:f}); raise the limit too, or set raise_limits",
            *path,
        )


def _named(what: str) -> Any:
    def check(before: Json, entries: Json, path: Path) -> bool:
        seen = set()
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            name = entry.get("name") if isinstance(entry, dict) else None
            if name is None:
                raise _fail(f"a {what} needs a name", *path, index)
            try:
                check_name(name, what)
            except InvalidObjectError as error:
                raise _fail(error, *path, index, "name") from None
            if name in seen:
                raise _fail(f"{what} {name!r} is there twice", *path, index)
            seen.add(name)
        return False

    return check


def _env(before: Json, entries: Json, path: Path) -> bool:
    for index, entry in _new(before, entries):
        if not isinstance(entry, dict) or "name" not in entry:
            continue
        try:
            check_env_name(entry["name"])
        except InvalidObjectError as error:
            raise _fail(error, *path, index) from None
        value = entry.get("value")
        if value is not None and not isinstance(value, str):
            raise _fail(
                f"{entry['name']}: the value must be a string, found {value!r}", *path, index
            )
        if entry.get("value") is not None and entry.get("valueFrom") is not None:
            raise _fail(f"{entry['name']}: either value or valueFrom", *path, index)
    return True


def _tolerations(before: Json, entries: Json, path: Path) -> bool:
    # https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    for index, entry in _new(before, entries):
        if isinstance(entry, dict):
            for fault in _toleration_faults(entry):
                raise _fail(fault, *path, index)
    return True


def _toleration_faults(entry: JsonMap) -> Iterator[str]:
    operator = entry.get("operator") or "Equal"
    if operator not in ("Equal", "Exists", "Lt", "Gt"):
        yield f"operator {operator!r}: must be Equal or Exists"
    if operator == "Exists" and entry.get("value"):
        yield "operator Exists takes no value"
    if not entry.get("key") and operator != "Exists":
        yield "without a key the operator must be Exists"
    if entry.get("effect") not in (None, "", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        yield f"effect {entry['effect']!r}: must be NoSchedule, PreferNoSchedule or NoExecute"
    if entry.get("tolerationSeconds") is not None and entry.get("effect") != "NoExecute":
        yield "tolerationSeconds goes with the effect NoExecute"


_CHECKS = {
    "annotations": _annotations,
    "containers": _named("container"),
    "env": _env,
    "labels": _labels,
    "nodeSelector": _labels,
    "resources": _resources,
    "tolerations": _tolerations,
    "volumes": _named("volume"),
}
