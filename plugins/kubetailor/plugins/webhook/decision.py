"""What is decided of one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from kubetailor.plugins.webhook.reviews import AdmissionRequest, AdmissionResponse, denied
from kubetailor.workloads import JsonMap, Kind, KubetailorError
from kubetailor.workloads.form import form_fault

__all__ = [
    "Decision",
    "LimitError",
    "MemoryLimitError",
    "Outcome",
    "TimeLimitError",
    "denial",
    "explained",
]

Outcome: TypeAlias = Literal["ignored", "unchanged", "patched", "denied"]


class LimitError(Exception):
    """A chain that took too much of something.

    Attributes:
        code: the HTTP code of the answer. FlytePropeller tries again on it, as it may have been
            another object's fault.
    """

    code: int = 500


class TimeLimitError(LimitError):
    """A chain that took too long; the host raises it inside of the chain."""

    code = 504


class MemoryLimitError(LimitError):
    """A chain that needed too much memory."""


@dataclass(frozen=True)
class Decision:
    """What was decided, for the API server and for the log.

    Attributes:
        response: the answer.
        outcome: `ignored` (no business of ours), `unchanged`, `patched` or `denied`.
        reason: why it was ignored or denied.
        chain: the name of the chain, or "".
        digest: its digest, or "".
        override: the digest of the execution's override that it ran with, or "".
        steps: the steps that changed something.
        operations: how many operations the patch has.
        warnings: what the chain had to say.
        undecided: how many conditions could not be decided.
        inapplicable: how many steps are about task templates alone.
        known: what is known of the task.
        offloaded: an execution whose tasks are not in the object.
    """

    response: AdmissionResponse
    outcome: Outcome
    reason: str = ""
    chain: str = ""
    digest: str = ""
    override: str = ""
    steps: tuple[str, ...] = ()
    operations: int = 0
    warnings: tuple[str, ...] = ()
    undecided: int = 0
    inapplicable: int = 0
    known: JsonMap | None = None
    offloaded: bool = False


def explained(error: Exception, obj: JsonMap, kind: Kind) -> tuple[int, str] | None:
    """The HTTP code and the message of a denial; None if the fault is ours.

    FlytePropeller takes 400 and 422 as final, and tries again on 500 and 504.

    Args:
        error: what was raised while the object was tailored.
        obj: the object.
        kind: its row.
    """
    cause = error.__cause__ or error
    if isinstance(cause, LimitError):
        return cause.code, str(error)
    if isinstance(cause, MemoryError):
        if error is cause:
            return None  # the host knows what the limit is
        return MemoryLimitError.code, str(error)
    if (fault := form_fault(error, obj, kind)) is not None:
        return 400, str(fault)
    return (422, str(error)) if isinstance(error, KubetailorError) else None


def denial(request: AdmissionRequest, error: KubetailorError, code: int) -> Decision:
    """A denial before any chain was selected."""
    message = f"kubetailor: {error}"
    return Decision(denied(request["uid"], code, message), "denied", message)
