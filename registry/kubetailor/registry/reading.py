"""From the text of `kubetailor.yaml` to its form; each fault with its place and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kubetailor.registry.errors import ConfigError
from kubetailor.registry.model import ConfigModel
from kubetailor.registry.source import Source, text
from kubetailor.workloads import nearest

__all__ = ["ConfigErrors", "read_model"]

_model = TypeAdapter(ConfigModel)


class ConfigErrors(ConfigError):
    """A file whose form is wrong in several places."""

    def __init__(self, faults: Sequence[ConfigError]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults: tuple[ConfigError, ...] = tuple(faults)


def read_model(source: Source) -> ConfigModel:
    """The data of a file in the form of a config.

    Raises:
        ConfigErrors: every fault of its form.
    """
    if not isinstance(source.data, dict):
        raise ConfigError("expected a map", source.mark())
    try:
        return _model.validate_python(source.data)
    except ValidationError as error:
        # A key that is missing may be there, misspelt.
        found = sorted(
            error.errors(include_url=False), key=lambda fault: fault["type"] == "missing"
        )
        faults = [_form_error(source, fault) for fault in found]
        raise ConfigErrors(faults) from None


def _form_error(source: Source, fault: Any) -> ConfigError:
    """One fault that pydantic found."""
    path = fault["loc"]
    if fault["type"] == "extra_forbidden":
        name = str(path[-1])
        known = nearest(name, _keys_at(path[:-1]), what="keys")
        return ConfigError(f"no key {name!r} here; {known}", source.mark(path))
    place = ".".join(map(str, path))
    reason = fault["msg"].removeprefix("Value error, ")
    shown = repr(text(fault["input"]))[:80]
    if fault["type"] == "missing":
        shown = "nothing"
    return ConfigError(f"{place}: {reason} (found {shown})", source.mark(path))


def _keys_at(path: Sequence[str | int]) -> list[str]:
    """The keys that the form of a config has at a path."""
    schema = ConfigModel.model_json_schema()
    node: Any = schema
    for key in path:
        node = _deref(node, schema)
        if isinstance(key, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(key) or node.get("additionalProperties") or {}
    return list(_deref(node, schema).get("properties", {}))


def _deref(node: Any, schema: Any) -> Any:
    for option in node.get("anyOf", ()):
        if option.get("type") != "null":
            node = option
            break
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node
