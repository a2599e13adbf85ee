"""Questions to FlyteAdmin in its own messages, and its refusals as faults that say what was asked.

flytekit's models lose what they do not know, such as a node's overrides without resources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from kubetailor.workloads import KubetailorError

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

__all__ = ["UnreachableError", "ask", "ask_if_there", "raw"]

T = TypeVar("T")


class UnreachableError(KubetailorError):
    """There is no FlyteAdmin where it is looked for."""


def raw(remote: FlyteRemote) -> Any:
    """The client that takes and gives messages."""
    client: Any = remote.client
    return client.raw


def ask(what: str, call: Callable[[], T]) -> T:
    """What FlyteAdmin answers.

    Args:
        what: what is asked for, for messages.
        call: asks.

    Raises:
        KubetailorError: there is no such thing, or FlyteAdmin cannot be asked.
    """
    found = ask_if_there(what, call)
    if found is None:
        raise KubetailorError(f"{what}: FlyteAdmin has none")
    return found


def ask_if_there(what: str, call: Callable[[], T]) -> T | None:
    """What FlyteAdmin answers; None if there is no such thing.

    Raises:
        KubetailorError: FlyteAdmin cannot be asked.
    """
    from flytekit.exceptions.base import FlyteException
    from flytekit.exceptions.system import FlyteSystemUnavailableException
    from flytekit.exceptions.user import FlyteEntityNotExistException

    try:
        return call()
    except FlyteEntityNotExistException:
        return None
    except FlyteSystemUnavailableException as error:
        raise UnreachableError(f"{what}: cannot reach FlyteAdmin: {_reason(error)}") from error
    except FlyteException as error:
        raise KubetailorError(f"{what}: FlyteAdmin says: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What the server, or what led to it, says."""
    cause = error.__cause__
    details = getattr(cause, "details", None)
    return str(details() if callable(details) else "") or str(error) or type(error).__name__
