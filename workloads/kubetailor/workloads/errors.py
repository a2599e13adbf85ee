"""The faults of a workload: what is wrong, and in which field."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "CannotChangeError",
    "ConflictError",
    "InvalidObjectError",
    "KubetailorError",
    "UnknownKindError",
    "nearest",
]


class KubetailorError(Exception):
    """A fault that the user can mend; hosts print it without a traceback.

    Attributes:
        field: the path of the field within the object, such as ``spec.tolerations``, or ``""``.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field: str = field

    def __str__(self) -> str:
        text = super().__str__()
        return text if not self.field or self.field in text else f"{self.field}: {text}"


class InvalidObjectError(KubetailorError):
    """The object, or a value for it, is one that Kubernetes would refuse."""


class ConflictError(KubetailorError):
    """Something of the same name is there with other content, and `replace` was not asked for."""


class CannotChangeError(KubetailorError):
    """The object has no place for the change: no such container, or a field nobody reads.

    In `defaults` and `steps` this is a warning; in `enforce`, and under `strict`, an error.
    """


class UnknownKindError(KubetailorError):
    """No row of the kinds table says where this kind keeps its pods."""


def nearest(name: str, names: Iterable[str], *, what: str = "known") -> str:
    """The end of an error message: the closest of `names`, else the first few.

    Args:
        name: what was given.
        names: what is allowed.
        what: how to call them, such as "known transformers".
    """
    names = sorted(set(names))
    if close := difflib.get_close_matches(name, names, n=3, cutoff=0.6):
        return f"did you mean {_listed(close)}? ({what}: {_listed(names)})"
    return f"{what}: {_listed(names)}"


def _listed(names: Sequence[str], limit: int = 40) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
