"""From a review to its answer. There is no HTTP in here, and no state."""

from __future__ import annotations

from kubetailor.plugins.execution.identity import is_execution
from kubetailor.plugins.webhook.admit import Admission
from kubetailor.plugins.webhook.decision import Decision, denial
from kubetailor.plugins.webhook.launch import decide_execution
from kubetailor.plugins.webhook.reviews import AdmissionRequest, AdmissionReview, allowed
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import InvalidObjectError, KubetailorError

__all__ = ["decide"]


def decide(review: AdmissionReview, tailor: Tailor) -> Decision:
    """Tailor the object of a review, or say why it may not come in.

    Args:
        review: the review; it is not changed.
        tailor: the config in use.
    """
    try:
        return _decide(review["request"], tailor)
    except RecursionError:
        error = InvalidObjectError("the object is nested deeper than can be read")
        return denial(review["request"], error, 400)


def _decide(request: AdmissionRequest, tailor: Tailor) -> Decision:
    obj = request.get("object")
    if reason := _not_ours(request):
        return _ignored(request, reason)
    assert obj is not None, "`parse` has seen to it"
    if is_execution(obj):
        if "launch" not in tailor.config.phases:
            return _ignored(request, "`phases` does not list launch")
        return decide_execution(request, obj, tailor)
    try:
        kind = tailor.kind_of(obj)
    except KubetailorError as error:
        return denial(request, error, 400)
    if kind is None:
        return _ignored(request, "a kind without pods that are known")
    return Admission(request, obj, kind, tailor).decision()


def _not_ours(request: AdmissionRequest) -> str:
    """Why a request is no business of ours, or ""."""
    if request["operation"] != "CREATE":
        return f"operation {request['operation']}"
    if request.get("subResource"):
        return f"subresource {request.get('subResource')}"
    return ""


def _ignored(request: AdmissionRequest, reason: str) -> Decision:
    return Decision(allowed(request["uid"]), "ignored", reason)
