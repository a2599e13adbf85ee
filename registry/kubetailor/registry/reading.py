"""From the data of a file to its form; each fault with its place and what is allowed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from kubetailor.registry.errors import ConfigError, Mark
from kubetailor.registry.source import text
from kubetailor.workloads import nearest

__all__ = ["ConfigErrors", "MarkOf", "keys_at", "read_model"]

M = TypeVar("M", bound=BaseModel)
MarkOf: TypeAlias = Callable[[Sequence[str | int]], Mark]
"""The place of what is at a path of some data."""


_SHOWN = 20
"""As many faults are in the message; a file that is no config at all has one for each key."""


class ConfigErrors(ConfigError):
    """A file whose form is wrong in several places."""

    def __init__(self, faults: Sequence[ConfigError]) -> None:
        lines = list(map(str, faults[:_SHOWN]))
        if len(faults) > _SHOWN:
            lines.append(f"… and {len(faults) - _SHOWN} more")
        super().__init__("\n".join(lines), None)
        self.mark: Mark | None = faults[0].mark
        self.faults: tuple[ConfigError, ...] = tuple(faults)


def read_model(model: type[M], data: Any, mark: MarkOf) -> M:
    """Data in a form.

    Args:
        model: the form.
        data: the data of a file, or what is built like it.
        mark: the place of what is at a path of it.

    Raises:
        ConfigErrors: every fault of its form.
    """
    if not isinstance(data, dict):
        raise ConfigError("expected a map", mark(()))
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # A key that is missing may be there, misspelt.
        found = sorted(
            error.errors(include_url=False), key=lambda fault: fault["type"] == "missing"
        )
        faults = [_form_error(model, fault, mark) for fault in found]
        raise ConfigErrors(faults) from None


def _form_error(model: type[BaseModel], fault: Any, mark: MarkOf) -> ConfigError:
    """One fault that pydantic found."""
    path = fault["loc"]
    if fault["type"] == "extra_forbidden":
        name = str(path[-1])
        known = nearest(name, keys_at(_schema(model), path[:-1]), what="keys")
        return ConfigError(f"no key {name!r} here; {known}", mark(path))
    place = ".".join(map(str, path))
    reason = fault["msg"].removeprefix("Value error, ")
    shown = repr(text(fault["input"]))[:80]
    if fault["type"] == "missing":
        shown = "nothing"
    return ConfigError(f"{place}: {reason} (found {shown})", mark(path))


def keys_at(schema: Any, path: Sequence[str | int]) -> list[str]:
    """The keys that a form has at a path, by its JSON Schema."""
    node: Any = schema
    for key in path:
        node = _deref(node, schema)
        if isinstance(key, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(key) or node.get("additionalProperties") or {}
    return list(_deref(node, schema).get("properties", {}))


@functools.cache
def _schema(model: type[BaseModel]) -> Any:
    return model.model_json_schema()


def _deref(node: Any, schema: Any) -> Any:
    for option in node.get("anyOf", ()):
        if option.get("type") != "null":
            node = option
            break
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node
