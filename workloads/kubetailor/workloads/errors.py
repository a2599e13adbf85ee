"""The faults of a workload: what is wrong, and in which field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = [
    "CannotChangeError",
    "ConflictError",
    "InvalidObjectError",
    "KubetailorError",
    "UnknownKindError",
    "nearest",
]


_LONG = re.compile(r"(\S{60})\S{240,}")
"""What is given may be a number of 5,000 digits; a path of a file is hardly that long."""


def _shortened(message: str) -> str:
    """A message whose words are no longer than a reader needs to know them again."""
    return _LONG.sub(lambda found: f"{found[1]}… ({len(found[0])} characters)", message)


class KubetailorError(Exception):
    """A fault that the user can mend; hosts print it without a traceback.

    Attributes:
        field: the path of the field within the object, such as ``spec.tolerations``, or ``""``.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(_shortened(message))
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


_FEW = 10
"""As many names are said; of more, the first."""
_PART = 4
"""A name of as many letters is looked for within others: `h100` in `nvidia-h100-80gb`."""


def nearest(
    name: str, names: Iterable[str], *, what: str = "known", listing: str | None = None
) -> str:
    """The end of an error message: the closest of `names`, and all if they are few.

    Args:
        name: what was given.
        names: what is allowed.
        what: how to call them, such as "known transformers".
        listing: the command that lists them all, for when they are many.
    """
    names = sorted(set(names))
    many = len(names) > _FEW
    part = name.casefold()
    holding = [] if len(part) < _PART else [one for one in names if part in one.casefold()]
    close = sorted(holding, key=len)[:3] or difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    parts = [f"did you mean {', '.join(close)}?"] if close else []
    if not (close and many):
        more = f" and {len(names) - _FEW} more" if many else ""
        listed = f"{what}: {', '.join(names[:_FEW]) or 'none'}{more}"
        parts.append(f"({listed})" if close else listed)
    if many and listing:
        parts.append(f"(`{listing}` lists all {len(names)})")
    return " ".join(parts)
