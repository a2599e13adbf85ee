"""Changes of a pod that a chain could make, and what becomes of them.

The rows are in pod_changes.yaml. What is said there of Kubernetes is asked of a real API server in
tests/cluster/test_pod_changes.py, what is said of the pass after a chain in
tests/workloads/test_pod_changes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ["BARE", "ROWS", "PodChange"]

BARE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Never"},
}
"""The pod that is changed."""


@dataclass(frozen=True)
class PodChange:
    """One row.

    Attributes:
        name: what the change is.
        after: the pod with it.
        refused: what the pass after the chain says of it; "" if nothing.
        left: why it says nothing, though the API server refuses the pod; "" if it does not.
        authored: whether it is said of what the author alone wrote, too.
    """

    name: str
    after: dict[str, Any]
    refused: str = ""
    left: str = ""
    authored: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether the API server takes the pod."""
        return not (self.refused or self.left)


def _row(row: dict[str, Any], reasons: dict[str, str]) -> PodChange:
    (bare,) = BARE["spec"]["containers"]
    main = {**bare, **row.get("main", {})}
    spec = {**BARE["spec"], "containers": [main], **row.get("spec", {})}
    metadata = {**BARE["metadata"], **row.get("metadata", {})}
    if "requirement" in row:
        terms = [{"matchExpressions": [row["requirement"]]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    if "annotation_bytes" in row:
        metadata["annotations"] = {"a": "x" * (row["annotation_bytes"] - 1)}
    return PodChange(
        row["is"],
        {**BARE, "metadata": metadata, "spec": spec},
        row.get("refused", ""),
        reasons[row["left"]] if "left" in row else "",
        row.get("authored", False),
    )


def _read() -> tuple[PodChange, ...]:
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    found = yaml.load(text, yaml.CSafeLoader)
    return tuple(_row(row, found["left"]) for row in found["rows"])


ROWS: Final = _read()
