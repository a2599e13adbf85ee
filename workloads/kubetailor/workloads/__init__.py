"""What is transformed: workloads, their pods, and the rules by which they merge."""

from __future__ import annotations

from kubetailor.workloads.container import Container
from kubetailor.workloads.diff import Op, apply_ops, diff, json_patch
from kubetailor.workloads.documents import (
    Document,
    DocumentError,
    dump_json,
    dump_yaml,
    load_documents,
)
from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, deep_copy, dotted, same
from kubetailor.workloads.errors import (
    CannotChangeError,
    ConflictError,
    InvalidObjectError,
    KubetailorError,
    UnknownKindError,
    nearest,
)
from kubetailor.workloads.kinds import KINDS, Ignored, Kind, KindTable, PodPath
from kubetailor.workloads.plain import check_json, read_json
from kubetailor.workloads.pod import Pod
from kubetailor.workloads.quantity import parse_quantity, same_quantity
from kubetailor.workloads.task_template import TASK_TEMPLATE
from kubetailor.workloads.validation import validate
from kubetailor.workloads.workload import Note, Workload

__all__ = [
    "BUILTIN_KINDS",
    "CannotChangeError",
    "ConflictError",
    "Container",
    "Document",
    "DocumentError",
    "Draft",
    "Ignored",
    "InvalidObjectError",
    "Json",
    "JsonMap",
    "Kind",
    "KindTable",
    "KubetailorError",
    "Note",
    "Op",
    "Path",
    "Pod",
    "PodPath",
    "UnknownKindError",
    "Workload",
    "apply_ops",
    "check_json",
    "deep_copy",
    "diff",
    "dotted",
    "dump_json",
    "dump_yaml",
    "json_patch",
    "load_documents",
    "nearest",
    "parse_quantity",
    "read_json",
    "same",
    "same_quantity",
    "validate",
]

BUILTIN_KINDS: tuple[Kind, ...] = (*KINDS, TASK_TEMPLATE)
"""Every kind that is known without a plugin."""
