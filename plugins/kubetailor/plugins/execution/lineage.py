"""The nested id of the node behind an object, by the object's name.

FlytePropeller names what a task makes ``<execution>-<node>-<attempt>``, where the node of a
subworkflow, of a branch or of a dynamic task has its parent's name and attempt before it:
``n1-0-n0``. What comes out too long is a hash instead, of which the way back is lost
(flytepropeller, pkg/controller/nodes/common/utils.go, `GenerateUniqueID`, and
nodes/task/taskexec_context.go; flyteplugins, encoding/encoder.go). The label `node-id` has the last
id alone.
"""

from __future__ import annotations

import base64
import re
from typing import Final

__all__ = ["map_node_of", "node_of"]

_DEFAULT: Final = re.compile(r"d?n[0-9]+(?:-n[0-9]+)*")
"""An id that flytekit gave: one by an author may have a number in its middle."""

_BETWEEN: Final = re.compile(r"-[0-9]+-")
_MAP: Final = re.compile(r"(.+)-[0-9]+-n[0-9]+-[0-9]+")
_LONGEST_NODE: Final = 20
_LONGEST_NAMES: Final = (50, 47)
"""Of an object; Ray's operator adds to the names of its own."""

_LETTERS: Final = str.maketrans("234567", "123456")
_HASH: Final = re.compile(r"f[a-z1-6]{7}")


def node_of(name: str, execution: str, label: str, attempt: int | None = 0) -> str | None:
    """The nested id of a node; None where the name does not say it.

    Args:
        name: the name of the object that FlytePropeller made, or of one that was made for that.
        execution: the name of the execution.
        label: the label `node-id`.
        attempt: the attempt; None if it is not known.
    """
    whole = f"{execution}-{_shortened(label, _LONGEST_NODE)}-{attempt or 0}"
    if name in [_shortened(whole, longest) for longest in _LONGEST_NAMES]:
        return label
    if not name.startswith(f"{execution}-"):
        return None
    rest = name.removeprefix(f"{execution}-")
    own = re.escape(label)
    if re.fullmatch(rf"{own}-[0-9]+", rest):
        return label
    if nested := re.fullmatch(rf"(.+)-[0-9]+-{own}-[0-9]+", rest):
        return _joined(nested[1], label)
    once = re.findall(rf"(?:^|-){own}-[0-9]+(?=-)", rest)
    made_for_it = re.fullmatch(rf"(?:(.+)-[0-9]+-)?{own}-[0-9]+-.+", rest)
    if made_for_it is None or len(once) > 1:
        return None
    return _joined(made_for_it[1], label) if made_for_it[1] else label


def map_node_of(name: str, execution: str) -> str | None:
    """The nested id of a map task's node, of which the label `node-id` says the index.

    ``<execution>-<node>-<attempt>-n<index>-<attempt>`` (flytepropeller,
    pkg/controller/nodes/array/event_recorder.go).

    Args:
        name: the name of one of its pods.
        execution: the name of the execution.
    """
    match = _MAP.fullmatch(name.removeprefix(f"{execution}-"))
    if match is None or not name.startswith(f"{execution}-"):
        return None
    *parents, own = _BETWEEN.split(match[1])
    if not parents:
        return None if _HASH.fullmatch(own) else own
    if not _DEFAULT.fullmatch(own):
        return None
    return _joined(match[1][: -len(own)].rstrip("-").rpartition("-")[0], own)


def _joined(parents: str, own: str) -> str | None:
    """The path of ids; None where a hash or an author's own id hides one."""
    ids = _BETWEEN.split(parents)
    if any(_HASH.fullmatch(each) for each in ids):
        return None
    if len(ids) > 1 and not all(_DEFAULT.fullmatch(each) for each in ids):
        return None
    found: list[str] = []
    for each in (*ids, own):
        if found and each.startswith(f"{found[-1]}-"):
            found.pop()  # a node of a branch is in the graph of the branch, and has its id before
        found.append(each)
    return ".".join(found)


def _shortened(text: str, longest: int) -> str:
    """An id as FlytePropeller shortens it: FNV-1a of 32 bits, in base 32."""
    if len(text.encode()) <= longest:
        return text
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    digits = base64.b32encode(value.to_bytes(4, "big")).decode().rstrip("=").lower()
    return f"f{digits.translate(_LETTERS)}"
