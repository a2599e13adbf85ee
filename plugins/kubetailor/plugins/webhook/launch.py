"""The phase `launch`: one execution on its way in, and what is decided of it."""

from __future__ import annotations

from dataclasses import replace

from kubetailor.plugins.execution.override import override_of
from kubetailor.plugins.execution.tailored_execution import TailoredExecution
from kubetailor.plugins.execution.tailored_node import NodeError
from kubetailor.plugins.webhook.decision import Decision, explained
from kubetailor.plugins.webhook.reviews import AdmissionRequest, allowed, denied
from kubetailor.registry import OverrideError
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import InvalidObjectError, JsonMap, json_patch
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["decide_execution"]


def decide_execution(request: AdmissionRequest, obj: JsonMap, tailor: Tailor) -> Decision:
    """Tailor every task of an execution, and say what came out.

    Args:
        request: the request.
        obj: its object, a FlyteWorkflow.
        tailor: the config in use.
    """
    execution = TailoredExecution(obj, tailor, namespace=request.get("namespace"))
    try:
        after = execution.tailored(override_of(obj, tailor))
        execution.judge()
    except (InvalidObjectError, OverrideError) as error:
        return _denied(request, execution, 422, str(error))
    except NodeError as error:
        denial = explained(error.error, error.template, TASK_TEMPLATE)
        if denial is None:
            raise error.error from None
        return _denied(request, execution, denial[0], error.what + denial[1])
    patch = json_patch(obj, after)
    steps = tuple(execution.steps)
    response = allowed(
        request["uid"],
        patch=patch,
        warnings=execution.warnings,
        audit={
            "chain": ",".join(execution.chains),
            "digest": ",".join(execution.chains.values()),
            "override": _override(execution),
            "steps": ",".join(steps),
        },
    )
    offloaded = execution.is_offloaded
    reason = "the workflow closure is offloaded: what it makes is tailored then"
    return _said(
        execution,
        Decision(
            response,
            "patched" if patch else "unchanged",
            reason if offloaded else "",
            operations=len(patch),
            offloaded=offloaded,
        ),
    )


def _denied(
    request: AdmissionRequest, execution: TailoredExecution, code: int, reason: str
) -> Decision:
    message = f"kubetailor: {reason}"
    response = denied(request["uid"], code, message, warnings=execution.warnings)
    return _said(execution, Decision(response, "denied", message))


def _said(execution: TailoredExecution, decision: Decision) -> Decision:
    return replace(
        decision,
        chain=",".join(execution.chains),
        digest=",".join(execution.chains.values()),
        override=_override(execution),
        steps=tuple(execution.steps),
        warnings=tuple(execution.warnings),
        undecided=execution.undecided,
        known=execution.known,
    )


def _override(execution: TailoredExecution) -> str:
    return execution.override.digest if execution.override else ""
