"""Flyte's literals and plain values: what a condition on `inputs` looks at."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from kubetailor.workloads import JsonMap

__all__ = ["literal_of", "plain_inputs", "plain_values"]

_PRIMITIVES: Final[Mapping[str, type]] = {
    "integer": int,
    "floatValue": float,
    "stringValue": str,
    "boolean": bool,
}
_PLAIN: Final = (bool, int, float, str)


def plain_inputs(literals: Any) -> dict[str, Any]:
    """The inputs that are plain values or maps of them: a `dict`, a dataclass, a pydantic model.

    Lists, files, data sets, times and durations are left out.

    Args:
        literals: flyteidl.core.Literal in JSON form, by name; or BindingData.
    """
    return plain_values(dict(_values(literals)))


def plain_values(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Those entries of a map that are plain values, or maps of such."""
    return {
        key: plain_values(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if isinstance(key, str) and isinstance(value, (*_PLAIN, Mapping))
    }


def literal_of(value: Any) -> JsonMap:
    """A plain value, or a map of such, as flyteidl.core.Literal in JSON form."""
    if isinstance(value, Mapping):
        return {"map": {"literals": {key: literal_of(item) for key, item in value.items()}}}
    if isinstance(value, bool):
        primitive: JsonMap = {"boolean": value}
    elif isinstance(value, int):
        primitive = {"integer": str(value)}
    elif isinstance(value, float):
        primitive = {"floatValue": value}
    else:
        primitive = {"stringValue": str(value)}
    return {"scalar": {"primitive": primitive}}


def _values(literals: Any) -> Iterator[tuple[str, Any]]:
    for name, literal in literals.items() if isinstance(literals, dict) else ():
        below = _at(literal, "map")
        if isinstance(below, dict):
            yield name, plain_inputs(below.get("literals") or below.get("bindings"))
            continue
        scalar = _at(literal, "scalar")
        if (inner := _at(_at(scalar, "union"), "value")) is not None:  # such as `int | None`
            yield from _values({name: inner})
        if _at(_at(scalar, "binary"), "tag") == "msgpack":
            yield name, _unpacked(scalar["binary"].get("value"))
        primitive = _at(scalar, "primitive")
        for kind, value in primitive.items() if isinstance(primitive, dict) else ():
            if kind in _PRIMITIVES:
                with suppress(TypeError, ValueError):
                    yield name, _PRIMITIVES[kind](value)


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _unpacked(text: Any) -> Any:
    """What flytekit makes of a dataclass, of a model and of a `dict` whose values have no type."""
    try:
        import msgpack  # type: ignore[import-untyped]  # it has no stubs
    except ImportError:  # flytekit brings it, and so does the extra `webhook`
        return None
    try:
        return msgpack.unpackb(base64.b64decode(text), strict_map_key=False)
    except (TypeError, ValueError, msgpack.UnpackException):  # whoever may launch may write one
        return None
