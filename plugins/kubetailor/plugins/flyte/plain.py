"""Plain JSON data out of what flytekit and protobuf keep."""

from __future__ import annotations

from collections.abc import Iterable

from kubetailor.workloads import Json

__all__ = ["plain"]


def plain(value: Json) -> Json:
    """A value as dicts, lists and numbers as they were written; itself if it is that already.

    Numbers of a protobuf Struct are all floats, and what is whole is an integer. The Kubernetes
    client leaves tuples in what it makes of a model.
    """
    return value if _is_plain((value,)) else _plain(value)


def _is_plain(values: Iterable[Json]) -> bool:
    for value in values:
        kind = type(value)
        if kind is dict:
            if value and not _is_plain(value.values()):
                return False
        elif kind is list:
            if value and not _is_plain(value):
                return False
        elif kind not in _SCALARS:
            return False
    return True


_SCALARS = frozenset({str, int, bool, type(None)})


def _plain(value: Json) -> Json:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
