"""What an execution would become, as a diff of each node."""

from __future__ import annotations

from kubetailor.plugins.cli.output import print_diff, unified_diff
from kubetailor.plugins.client.preview import Preview
from kubetailor.plugins.flyte.undo import TASK_PLACE
from kubetailor.workloads import Draft, JsonMap
from kubetailor.workloads.task_target import as_pod_task

__all__ = ["print_diffs"]


def print_diffs(preview: Preview) -> bool:
    """The unified diff of every node that changes, from what is registered to what will run.

    Returns:
        Whether there is any.
    """
    found = False
    for node in preview.nodes:
        where = f"{node.title} ({node.task}"
        registered, final = _shown(node.registered), _shown(node.final)
        # A container that became a pod is shown as that pod: what is left is the chain's.
        before = as_pod_task(registered, final)
        text = unified_diff(before, final, f"{where}, registered)", f"{where}, final)")
        print_diff(text)
        found = found or bool(text)
    return found


def _shown(template: JsonMap) -> JsonMap:
    """A template without the way back, which is for machines."""
    draft = Draft(template)
    draft.drop(TASK_PLACE)
    if draft.get(TASK_PLACE[:1]) == {}:
        draft.drop(TASK_PLACE[:1])
    return draft.root
