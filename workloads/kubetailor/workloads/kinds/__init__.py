"""The table that says where each kind of workload keeps its pods, its queue label, its quirks.

A plugin adds rows with the hook `register_kinds`; only kinds whose operators read something else
than pod templates need a `Kind` with code.
"""

from __future__ import annotations

from kubetailor.workloads.kinds.known import KindTable, holds_containers, is_task_template
from kubetailor.workloads.kinds.pod_path import Ignored, PodPath
from kubetailor.workloads.kinds.row import Kind
from kubetailor.workloads.kinds.table import KINDS

__all__ = [
    "KINDS",
    "Ignored",
    "Kind",
    "KindTable",
    "PodPath",
    "holds_containers",
    "is_task_template",
]
