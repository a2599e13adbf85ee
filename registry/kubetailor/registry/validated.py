"""What the plugins' `validate` say of a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kubetailor.registry.result import Result
from kubetailor.registry.step import Step
from kubetailor.workloads import InvalidObjectError, Workload, same

__all__ = ["ValidateCall", "culprit", "refusal"]

ValidateCall: TypeAlias = tuple[str, Callable[..., Any], tuple[str, ...]]
"""An implementation of the hook: its plugin, the function, the names of its arguments."""


def refusal(call: ValidateCall, workload: Workload) -> InvalidObjectError | None:
    """The error for what one of them says of a workload, or None.

    It may only look: what it changes is taken back, and is a fault of its own.
    """
    plugin, function, names = call
    given = {"workload": workload}
    before = workload.committed
    cause: BaseException | None = None
    try:
        faults = _sentences(function(**{name: given[name] for name in names}))
        after = workload.commit()
        if after is not before and not same(after, before):
            faults = ["it changed the workload, at which it may only look"]
    except (Exception, SystemExit) as error:
        faults, cause = [f"{type(error).__name__}: {error}"], error
    workload.reset(before)
    if not faults:
        return None
    refused = InvalidObjectError(f"{'; '.join(faults)} (validate of plugin {plugin})")
    refused.__cause__ = cause
    return refused


def _sentences(said: Any) -> list[str]:
    if isinstance(said, str):
        return [said] if said else []
    try:
        return [str(fault) for fault in said or ()]
    except TypeError:
        if hasattr(said, "__iter__"):  # it is raised by what makes them
            raise
        return [f"it returned {type(said).__name__}; a validate returns sentences, or None"]


def culprit(
    call: ValidateCall, refused: InvalidObjectError, result: Result, workload: Workload
) -> Step:
    """The first step after which it says the same; the last where it said so all along.

    One that raises is not asked again: it may hang.
    """
    last, _ = result.roots[-1]
    again: InvalidObjectError | None = refused
    for step, version in ((last, result.before), *result.roots):
        if again is not None and again.__cause__ is not None:
            break
        workload.reset(version)
        again = refusal(call, workload)
        if again is not None and str(again) == str(refused):
            return step
    return last
