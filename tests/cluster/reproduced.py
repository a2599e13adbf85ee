"""What of an execution's objects is the same when it is launched again."""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["reproduced"]

_FIELDS: Final = frozenset(
    {
        # The API server's, of each object; the last also in `ownerReferences`.
        "creationTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "uid",
        # What became of it: times, and addresses of pods.
        "status",
        # Of a FlyteWorkflow: when it was accepted, and which of FlytePropeller's workers has it.
        "acceptedAt",
        "shard-key",
    }
)
_TEXTS: Final = (
    # The token's volume, which the API server names.
    (re.compile(r"\bkube-api-access-\w{5}\b"), "kube-api-access"),
    # Where FlytePropeller spreads an execution's data over a bucket.
    (re.compile(r"/data/\w\w/"), "/data/"),
)


_UNORDERED: Final = ("BATCH_JOB_ARRAY_INDEX_VAR_NAME", "FLYTE_K8S_ARRAY_INDEX")
"""Of the pods of a map: FlytePropeller, which keeps them in a Go map, writes them in any order."""


def reproduced(obj: Any, execution: str) -> str:
    """An object as one text, without what is of this launch alone: this table, and the name.

    Args:
        obj: as the API server gives it.
        execution: the name of its execution.
    """
    text = json.dumps(_without(obj), indent=1).replace(execution, "EXECUTION")
    for pattern, instead in _TEXTS:
        text = pattern.sub(instead, text)
    return text


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in _FIELDS}
    if isinstance(value, list):
        return sorted(map(_without, value), key=_place)
    return value


def _place(item: Any) -> str:
    """What has an order of its own has none here, and stays where it is."""
    name = item.get("name") if isinstance(item, dict) else None
    return name if name in _UNORDERED else ""
