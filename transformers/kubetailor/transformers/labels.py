"""Labels.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Literal

from kubetailor.registry import (
    CannotChangeError,
    InvalidObjectError,
    Pod,
    Workload,
    transformer,
)
from kubetailor.transformers.kueue import QUEUE, no_queue
from kubetailor.transformers.names import LabelKey
from kubetailor.transformers.types import OnObject, String, names_to_remove
from kubetailor.workloads.names import check_label_value

__all__ = ["labels", "targets"]

_LIMIT = 63
_HASH_DIGITS = 8
_ENDS = "-_."


@transformer
def labels(
    workload: Workload,
    *,
    set: dict[LabelKey, String] | None = None,
    remove: list[str] | None = None,
    on: list[OnObject] | None = None,
    on_invalid: Literal["error", "sanitize", "hash"] = "error",
) -> None:
    """Set and remove labels of the object and of its pods.

    Kueue's queue is refused where it does nothing (a CronJob's is its Jobs'), and as a label of
    pods that an object makes: each would be taken for a workload of its own. `kueue` writes it
    where it belongs.

    Args:
        workload: the workload.
        set: label -> value.
        remove: labels that go.
        on: `object`, `pods` or both; by default both.
        on_invalid: what to do with a value that Kubernetes would refuse: fail, or write what can
            be kept of it (`hash`: what is too long is cut and ends in a hash) and keep the whole
            text as an annotation of the same key.
    """
    for target in targets(workload, on):
        if QUEUE in (set or ()):
            _check_queue(workload, target)
        for key in names_to_remove(remove, set):
            target.unlabel(key)
        for key, value in (set or {}).items():
            label = value if on_invalid == "error" else _valid(key, value, on_invalid)
            target.label(key, label)
            if not label and value:
                workload.warn(
                    f"label {key}: nothing of {value!r} can be kept, so that it is empty",
                    target.where("metadata") if isinstance(target, Pod) else "metadata.labels",
                )
            if label != value:
                target.annotate(key, value)


def _check_queue(workload: Workload, target: Workload | Pod) -> None:
    """Refuse the queue's label where Kueue reads none, or would read it wrongly."""
    kind, owner = workload.kind_name, workload.queue_owner
    if owner is None:
        raise CannotChangeError(no_queue(workload), field="metadata.labels")
    if not owner.same_place(workload.metadata):
        raise CannotChangeError(
            f"{QUEUE} of a {kind} belongs at {workload.kind.queue_place}.labels: use `kueue`",
            field=target.where() if isinstance(target, Pod) else "metadata.labels",
        )
    if isinstance(target, Pod) and not target.is_object:
        raise CannotChangeError(
            f"{QUEUE} belongs on the {kind}, not on its {target.role} pods: use `kueue`",
            field=target.where(),
        )


def targets(workload: Workload, on: Iterable[OnObject] | None) -> Iterable[Workload | Pod]:
    """The object, and the pods whose labels are not the object's."""
    places = tuple(on) if on is not None else ("object", "pods")
    if "object" in places:
        yield workload
    if "pods" in places:
        alone = "object" not in places
        for pod in workload.pods():
            # Where the operator copies the object's labels, or the object is the pod, they are the
            # pods' too.
            if alone or (pod.has_metadata and not pod.is_object):
                yield pod


def _valid(key: str, value: str, how: str) -> str:
    try:
        return check_label_value(key, value)
    except InvalidObjectError:
        text = re.sub(r"[^-A-Za-z0-9_.]+", "-", value).strip(_ENDS)
    if len(text) <= _LIMIT:
        return text
    if how == "sanitize":
        return text[:_LIMIT].rstrip(_ENDS)
    digest = hashlib.sha256(value.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{text[: _LIMIT - _HASH_DIGITS - 1].rstrip(_ENDS)}-{digest}"
