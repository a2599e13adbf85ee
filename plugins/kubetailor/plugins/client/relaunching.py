"""What comes before an execution is launched again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kubetailor.plugins.client.annotations import launch_plan_of, merged, own_annotations
from kubetailor.plugins.client.launching import Launch
from kubetailor.plugins.client.previewing import preview
from kubetailor.plugins.client.remote import entity_of
from kubetailor.plugins.execution.marks import EXECUTION_KEYS
from kubetailor.plugins.execution.override import JUDGED
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.registry.overrides.document import OVERRIDE, Override

if TYPE_CHECKING:
    from kubetailor.plugins.client.executions import Execution
    from kubetailor.registry.tailor import Tailor

__all__ = ["prepare_relaunch"]

_MARKS: Final = frozenset({STAMP, EXECUTION_KEYS, JUDGED})
"""What the webhook said of one execution, and a client may have copied."""


def prepare_relaunch(execution: Execution, override: Override | None, tailor: Tailor) -> Launch:
    """The annotations of an execution that is launched again; the cluster's refusals come first.

    They are those of its request; where that had none, the launch plan's hold again.

    Args:
        execution: the execution.
        override: takes the place of its own, with that of its launch plan below; None keeps it.
        tailor: the config.

    Raises:
        OverrideError: a step may not be, is for no task, or changes nothing.
        KubetailorError: what was launched is registered no more, or FlyteAdmin cannot be asked.
    """
    registered = execution.registered()
    annotations = {k: v for k, v in execution.annotations.items() if k not in _MARKS}
    sent = annotations
    if override is not None:
        place = (execution.id.project, execution.id.domain)
        launch_plan = launch_plan_of(execution.remote, entity_of(registered))
        own = own_annotations(execution.remote, launch_plan, *place)
        if annotations:  # which took the place of all of the launch plan's
            own = {key: value for key, value in own.items() if key == OVERRIDE}
        annotations.pop(OVERRIDE, None)
        found = merged(own, annotations, override)
        annotations, override, sent = found.annotations, found.override, found.request
    request = replace(execution.request(), annotations=annotations)
    shown = preview(registered, tailor, override, request)
    shown.check()
    return Launch(sent, shown)
