"""Annotations.

https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from kubetailor.registry import Workload, transformer
from kubetailor.transformers.kueue import LABELS
from kubetailor.transformers.labels import targets
from kubetailor.transformers.names import Key
from kubetailor.transformers.types import OnObject, String, names_to_remove

__all__ = ["annotate"]


def _no_label(key: str) -> str:
    if key in LABELS:
        raise ValueError(f"{key} is a label, and does nothing as an annotation: use `kueue`")
    return key


@transformer(name="annotations")
def annotate(
    workload: Workload,
    *,
    set: dict[Annotated[Key, AfterValidator(_no_label)], String] | None = None,
    remove: list[str] | None = None,
    on: list[OnObject] | None = None,
) -> None:
    """Set and remove annotations of the object and of its pods.

    Args:
        workload: the workload.
        set: annotation -> value.
        remove: annotations that go.
        on: `object`, `pods` or both; by default both.
    """
    for target in targets(workload, on):
        for key in names_to_remove(remove, set):
            target.unannotate(key)
        for key, value in (set or {}).items():
            target.annotate(key, value)
