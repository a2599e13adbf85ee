"""An entry of the catalogue as it is written: its fields, read by their types, and `extends`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from kubetailor.workloads import InvalidObjectError, KubetailorError, deep_copy, nearest
from kubetailor.workloads.quantity import quantity_text

__all__ = ["AcceleratorError", "laid_over", "read_fields"]

Read: TypeAlias = Callable[[str, Any], Any]

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


class AcceleratorError(KubetailorError):
    """An entry of the catalogue that cannot be used."""


def laid_over(
    under: Mapping[str, Any], over: Mapping[str, Any], *, keep_nulls: bool = False
) -> dict[str, Any]:
    """One entry over another: maps merge by key, null deletes, lists replace.

    Args:
        under: the entry below.
        over: the one above; it wins.
        keep_nulls: the result is itself to be laid over something, so that its nulls stay; so it
            is for what `by_count` holds.
    """
    found = {str(key): value for key, value in under.items()}
    for name, value in over.items():
        key = str(name)
        if value is None and not keep_nulls:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            there = found.get(key)
            nulls = keep_nulls or key == "by_count"
            found[key] = laid_over(
                there if isinstance(there, Mapping) else {}, value, keep_nulls=nulls
            )
        else:
            found[key] = deep_copy(value)
    return found


def read_fields(
    where: str, written: Mapping[str, Any], *, required: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields of an entry, each read as its type says.

    Args:
        where: whose fields they are, for messages.
        written: the entry, from YAML or from Python.
        required: the fields that must be there.

    Raises:
        AcceleratorError: a field that there is not, or a value of the wrong form.
    """
    for key in written:
        if key not in _READ:
            near = nearest(str(key), _READ, what="fields", listing="kubetailor schema")
            raise AcceleratorError(f"{where}: no field {key!r}; {near}")
    for key in required:
        if written.get(key) is None:
            raise AcceleratorError(f"{where}: `{key}` is required")
    return {
        str(key): _READ[key](f"{where}: {key}", value)
        for key, value in written.items()
        if value is not None
    }


def _text(where: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as YAML writes it
    if isinstance(value, str | int | float):
        return str(value)
    raise AcceleratorError(f"{where}: expected a string, found {value!r}")


def _quantity(where: str, value: Any) -> str:
    text = _text(where, value)
    try:
        return quantity_text(text)
    except InvalidObjectError as error:
        raise AcceleratorError(f"{where}: {error}") from None


def _whole(where: str, value: Any) -> int:
    try:
        return int(_text(where, value))
    except ValueError:
        raise AcceleratorError(f"{where}: expected a whole number, found {value!r}") from None


def _map_of(read: Read) -> Read:
    def read_map(where: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise AcceleratorError(f"{where}: expected a map, found {value!r}")
        return {
            str(key): None if item is None else read(f"{where}.{key}", item)
            for key, item in value.items()
        }

    return read_map


def _list_of(read: Read) -> Read:
    def read_list(where: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise AcceleratorError(f"{where}: expected a list, found {value!r}")
        return tuple(read(f"{where}[{index}]", item) for index, item in enumerate(value))

    return read_list


def _object_of(reads: Mapping[str, Read], *required: str) -> Read:
    def read_object(where: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise AcceleratorError(f"{where}: expected a map, found {value!r}")
        for key in value:
            if key not in reads:
                known = nearest(str(key), reads, what="fields")
                raise AcceleratorError(f"{where}: no field {key!r}; {known}")
        for key in required:
            if key not in value:
                raise AcceleratorError(f"{where}: `{key}` is required")
        return {str(key): reads[key](f"{where}.{key}", item) for key, item in value.items()}

    return read_object


def _values(where: str, value: Any) -> list[str]:
    return list(_list_of(_text)(where, value))


def _operator(where: str, value: Any) -> str:
    if value not in _OPERATORS:
        raise AcceleratorError(f"{where}: {value!r}; it is one of {', '.join(_OPERATORS)}")
    return _text(where, value)


def _by_count(where: str, value: Any) -> dict[int, dict[str, Any]]:
    if not isinstance(value, Mapping):
        raise AcceleratorError(f"{where}: expected a map, found {value!r}")
    return {
        _whole(where, count): _overlay(f"{where}.{count}", over)
        for count, over in value.items()
        if over is not None
    }


def _overlay(where: str, over: Any) -> dict[str, Any]:
    """Fields that are laid over the entry; null deletes there."""
    if not isinstance(over, Mapping) or "by_count" in over:
        raise AcceleratorError(f"{where}: expected a map of an entry's fields, found {over!r}")
    if "resource" in over and over["resource"] is None:
        raise AcceleratorError(f"{where}: `resource` cannot be taken off")
    return {**dict.fromkeys(map(str, over)), **read_fields(where, over)}


_READ: Mapping[str, Read] = {
    "resource": _text,
    "device": _text,
    "aliases": _list_of(_text),
    "partition": _text,
    "node_selector": _map_of(_text),
    "tolerations": _list_of(
        _object_of(
            {
                "key": _text,
                "operator": _text,
                "value": _text,
                "effect": _text,
                "tolerationSeconds": _whole,
            }
        )
    ),
    "node_requirements": _list_of(
        _object_of({"key": _text, "operator": _operator, "values": _values}, "key", "operator")
    ),
    "runtime_class": _text,
    "per_gpu": _map_of(_quantity),
    "requests": _map_of(_quantity),
    "limits": _map_of(_quantity),
    "by_count": _by_count,
    "pages": _list_of(_text),
}
"""How each field is read; `extends` is resolved before."""
