"""Plain JSON data: what code that is not ours may leave in an object."""

from __future__ import annotations

import json
import math

from kubetailor.workloads.draft import Json, Path, dotted, unshared
from kubetailor.workloads.errors import InvalidObjectError

__all__ = ["check_json", "read_json"]

_DEPTH = 100
_MISSING = object()


def check_json(before: Json, after: Json) -> None:
    """Check that every part of `after` that is not shared with `before` is plain JSON data.

    Subclasses of dict, str and the like are not plain: what is equal could be told apart.

    Args:
        before: the version before; its own data is not looked at.
        after: the version after.

    Raises:
        InvalidObjectError: the first part that is not, with its path.
    """
    _check(before, after, ())


def read_json(text: str) -> Json:
    """The data of a JSON text that came in an object, where anybody may have written it.

    The standard library reads more than others can write again: NaN, halves of surrogate pairs,
    integers of any length.

    Raises:
        InvalidObjectError: it is no JSON, or holds what is not plain JSON data.
    """
    try:
        found: Json = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidObjectError(f"it is no JSON: {error}") from None
    check_json(None, found)
    return found


def _check(before: Json, after: Json, path: Path) -> None:
    if before is after:
        return
    kind = type(after)
    if kind in (dict, list) and len(path) > _DEPTH:
        place = f"{dotted(path[:4])}…"
        raise InvalidObjectError(f"nested more than {_DEPTH} deep, or in itself", field=place)
    if kind is dict:
        old = before if type(before) is dict else {}
        for key, value in after.items():
            if type(key) is not str:
                raise _fault(f"the key {key!r} is no str, but of type {type(key).__name__}", path)
            was = old.get(key, _MISSING)
            if was is _MISSING:
                _check_text(key, path)
            if value is not was:
                _check(was, value, (*path, key))
    elif kind is list:
        old_list = before if type(before) is list else []
        for index, entry in unshared(old_list, after):
            _check(old_list[index] if index < len(old_list) else None, entry, (*path, index))
    elif kind is str:
        _check_text(after, path)
    elif kind is float:
        if not math.isfinite(after):
            raise _fault(f"{after} is no number that JSON has", path)
    elif kind is int:
        if not -(2**63) <= after < 2**64:
            raise _fault(f"an integer of {after.bit_length()} bits; at most 64 are read", path)
    elif kind not in (bool, type(None)):
        allowed = "dict, list, str, int, float, bool or None"
        raise _fault(f"expected JSON data ({allowed}), found {kind.__name__}", path)


def _check_text(text: str, path: Path) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _fault(f"{text[error.start]!r} in a text is no Unicode character", path) from None


def _fault(text: str, path: Path) -> InvalidObjectError:
    return InvalidObjectError(text, field=dotted(path))
