"""Labels, annotations and node selectors."""

from __future__ import annotations

from typing import Final

from kubetailor.workloads.draft import Json, JsonMap, Path, as_map
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.metadata import FLYTE_LABELS
from kubetailor.workloads.names import ANNOTATIONS_LIMIT, check_key, check_label_value
from kubetailor.workloads.validation.authored import check_texts
from kubetailor.workloads.validation.parts import Checks, fault

__all__ = ["CHECKS", "check_flyte_labels"]

_FLYTE_LABELS = sorted(FLYTE_LABELS)


def check_flyte_labels(before: JsonMap, after: JsonMap, path: Path) -> None:
    """A chain neither writes nor removes what Flyte finds its objects by."""
    for key in _FLYTE_LABELS:
        if before.get(key) != after.get(key):
            raise fault(f"label {key!r} is Flyte's own and never written", *path)


def _labels(before: Json, labels: Json, path: Path) -> None:
    if not isinstance(labels, dict):
        return
    check_texts(labels, path, "label ")
    old = as_map(before)
    for key, value in labels.items():
        if key in old and value is old[key]:
            continue
        try:
            check_key(key)
            check_label_value(key, value)
        except InvalidObjectError as error:
            raise fault(error, *path) from None


def _annotations(before: Json, annotations: Json, path: Path) -> None:
    if not isinstance(annotations, dict):
        return
    check_texts(annotations, path)
    old = as_map(before)
    for key, value in annotations.items():
        if key in old and value is old[key]:
            continue
        try:
            # k8s.io/apimachinery, pkg/api/validation/objectmeta.go, `ValidateAnnotations`
            check_key(key.lower())
        except InvalidObjectError as error:
            raise fault(error, *path) from None
        if not isinstance(value, str):
            raise fault(f"{key}: the value must be a string, found {value!r}", *path)
    size = len("".join([*annotations, *map(str, annotations.values())]).encode())
    if size > ANNOTATIONS_LIMIT:
        raise fault(f"{size} bytes of annotations, at most {ANNOTATIONS_LIMIT} (256 KiB)", *path)


CHECKS: Final[Checks] = {
    "annotations": _annotations,
    "labels": _labels,
    "matchLabels": _labels,
    "nodeSelector": _labels,
}
