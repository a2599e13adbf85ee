"""Plain scalars of YAML, read by the types of parameters.

pydantic takes a plain scalar for a string. Here its core schema is rewritten so that each place
reads one as it should be read: a string stays the text that was written, a place of any other type
gets what YAML 1.2's core schema makes of it, and a union takes the number or boolean if it has such
a member, else the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import SchemaValidator
from pydantic_core import core_schema as core

from kubetailor.registry.source import Plain, check_numbers, read_core, text

__all__ = ["scalar_validator"]

_CHILDREN = (
    *("schema", "items_schema", "keys_schema", "values_schema", "extras_schema"),
    *("choices", "fields", "definitions", "steps", "lax_schema", "strict_schema"),
    *("python_schema", "arguments_schema", "var_args_schema", "var_kwargs_schema"),
)
"""Keys of a core schema under which there are core schemas."""

_OPEN: Mapping[str, tuple[str, ...]] = {
    "dict": ("values_schema",),
    "frozenset": ("items_schema",),
    "list": ("items_schema",),
    "set": ("items_schema",),
}
"""Containers, and where the type of what they hold would be."""


def scalar_validator(schema: Any) -> SchemaValidator:
    """What validates as a core schema says, and reads plain scalars.

    Args:
        schema: pydantic's core schema of a type; it is not changed.
    """
    rewritten = _rewritten(schema)
    try:  # a model's own validator would read its fields otherwise
        return SchemaValidator(rewritten, _use_prebuilt=False)
    except TypeError:  # a pydantic that has no prebuilt ones
        return SchemaValidator(rewritten)


def _rewritten(node: Any) -> Any:
    if isinstance(node, list):
        return [_rewritten(item) for item in node]
    if isinstance(node, tuple):
        return tuple(_rewritten(item) for item in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if not isinstance(kind, str):  # schemas by name
        return {key: _rewritten(value) for key, value in node.items()}
    found: Any = {key: _rewritten(v) if key in _CHILDREN else v for key, v in node.items()}
    for key in _OPEN.get(kind, ()):
        found.setdefault(key, _rewritten(core.any_schema()))
    if kind == "generator":  # it would be empty for every object but the first
        kept = ("items_schema", "min_length", "max_length", "ref")
        return {"type": "list", **{key: found[key] for key in kept if key in found}}
    if (found.get("config") or {}).get("extra_fields_behavior") == "allow":
        _open_extras(found)
    if kind == "union":
        found["choices"] = [_unnamed(choice) for choice in found["choices"]]
    read = _READERS.get(kind)
    if read is None:
        return found
    ref = found.pop("ref", None)
    return core.no_info_wrap_validator_function(read, found, ref=ref)


def _open_extras(node: Any) -> None:
    """Let the keys that a model does not name be open."""
    while node is not None and node["type"] not in ("model-fields", "typed-dict"):
        node = node.get("schema")
    if node is not None:
        node.setdefault("extras_schema", _rewritten(core.any_schema()))


def _unnamed(choice: Any) -> Any:
    """A member of a union whose name is no part of the place of a fault."""
    return (choice[0] if isinstance(choice, tuple) else choice, "function-member")


def _scalar(value: Any, handler: Callable[[Any], Any]) -> Any:
    if not isinstance(value, Plain):
        return handler(value)
    found, written = read_core(value), text(value)
    if isinstance(found, str):
        return handler(written)
    try:
        result = handler(found)
    except ValidationError as error:
        try:
            return handler(written)
        except ValidationError:
            raise error from None
    if _same_kind(found, result):
        return result
    try:
        return handler(written)
    except ValidationError:
        return result


def _same_kind(found: Any, result: Any) -> bool:
    """Whether pydantic took a number or boolean as what it is, and made no other of it."""
    if not isinstance(result, str | bool | int | float):
        return True
    if isinstance(result, str) or isinstance(found, bool) is not isinstance(result, bool):
        return False
    return isinstance(found, int) or isinstance(result, float)


def _open(value: Any, handler: Callable[[Any], Any]) -> Any:
    check_numbers(value)
    return handler(read_core(value))


def _text(value: Any, handler: Callable[[Any], Any]) -> Any:
    return handler(text(value))


_READERS: Mapping[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "any": _open,
    "bool": _scalar,
    "callable": _scalar,
    "enum": _scalar,
    "float": _scalar,
    "function-plain": _text,
    "int": _scalar,
    "is-instance": _scalar,
    "is-subclass": _scalar,
    "literal": _scalar,
    "tagged-union": _scalar,
    "union": _scalar,
}
"""Type of a core schema -> how a plain scalar is read there; elsewhere it is the text."""
