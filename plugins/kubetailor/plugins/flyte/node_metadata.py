"""What flytekit copies from a task into the metadata of each of its nodes.

core/base_task.py, `construct_node_metadata`. FlytePropeller reads retries there first, and timeout
and interruptible there alone (pkg/compiler/transformers/k8s): where a chain changes the task, the
nodes follow. What a node says otherwise than its task did, by `with_overrides`, is its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from kubetailor.plugins.flyte.undo import UNDO
from kubetailor.workloads import Draft, JsonMap
from kubetailor.workloads.duration import duration_text, parse_duration

__all__ = ["FIELDS", "changes_nodes", "followed", "own_words", "words", "write_node_metadata"]

_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "retries": lambda found: (found or {}).get("retries") or None,
    "timeout": lambda found: parse_duration(found) or None,
    "interruptible": lambda found: found,
}
"""Field of a task's metadata and of a node's -> what it says; None for nothing."""

FIELDS: Final = frozenset(_READ)
"""The fields that both have."""


def changes_nodes(config: Mapping[str, str] | None) -> bool:
    """Whether a chain changed anything of a task that its nodes have too.

    Args:
        config: the task's, with the way back.
    """
    text = (config or {}).get(UNDO)
    return text is not None and any(f'"/metadata/{field}' in text for field in _READ)


def followed(node: JsonMap, before: JsonMap, after: JsonMap) -> JsonMap:
    """The metadata of a node whose task has changed; `node` itself if that is the same.

    Args:
        node: flyteidl.core.NodeMetadata in JSON form.
        before: the task template that the node was made for.
        after: the template as it is now.
    """
    draft = Draft(node)
    old, new = (template.get("metadata") or {} for template in (before, after))
    for field, read in _READ.items():
        said, says, own = read(old.get(field)), read(new.get(field)), read(node.get(field))
        if said == says or own not in (None, said):
            continue
        if says is not None:
            draft.put((field,), new[field])
        elif field == "retries":
            draft.put((field,), {})  # as flytekit writes none
        else:
            draft.drop((field,))
    return draft.checkpoint()


def words(metadata: JsonMap) -> dict[str, str]:
    """What metadata says of these fields, as texts, by field."""
    found = {field: read(metadata.get(field)) for field, read in _READ.items()}
    return {
        field: duration_text(value) if isinstance(value, Decimal) else str(value).lower()
        for field, value in found.items()
        if value is not None
    }


def own_words(node: JsonMap, task: JsonMap) -> dict[str, str]:
    """What a node says otherwise than its task.

    Args:
        node: flyteidl.core.NodeMetadata in JSON form.
        task: the task template.
    """
    said = words(task.get("metadata") or {})
    return {name: value for name, value in words(node).items() if said.get(name) != value}


def write_node_metadata(node: Any, metadata: Any) -> None:
    """Write what changed into flytekit's model of a node.

    The metadata itself is shared with the workflow, and stays as it is.

    Args:
        node: the model.
        metadata: a flyteidl.core.NodeMetadata message.
    """
    from flytekit.models.literals import RetryStrategy

    found = copy.copy(node.metadata)
    found._retries = RetryStrategy(metadata.retries.retries)
    found._timeout = metadata.timeout.ToTimedelta()
    found._interruptible = metadata.interruptible if metadata.HasField("interruptible") else None
    node._metadata = found
