"""YAML with places: the text that was written, and where.

A plain scalar stays text until the type of the parameter reads it, so in labels and selectors
`true`, `1.10`, `NO` and `0755` are strings. Where the type is open, YAML 1.2's core schema reads it
(https://yaml.org/spec/1.2.2/#103-core-schema). `null`, `~` and nothing are always null.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubetailor.registry.errors import ConfigError, Mark

__all__ = ["Limits", "Plain", "Source", "as_written", "check_numbers", "read_core", "text"]

_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_BASED_INT = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_LONG_INT = re.compile(f"{_INT.pattern}|{_BASED_INT.pattern}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


_DIGITS = 300
"""What is longer is no number, for integers as for floats: JSON and Python would refuse it."""


class Limits(NamedTuple):
    """How much a file may be.

    Attributes:
        bytes: its size.
        depth: how deep it is nested.
        nodes: how many values it has, aliases expanded.
        aliases: whether it may have aliases.
    """

    bytes: int = 1024 * 1024
    depth: int = 50
    nodes: int = 100_000
    aliases: bool = True


_LIMITS = Limits()


class Plain(str):
    """A scalar that was written without quotes."""

    __slots__ = ()


class _Loader(_BaseLoader):  # type: ignore[misc]  # the C loader has no stubs
    """Composes nodes; reads no types."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """The tag of a node without one; PyYAML's own search takes a third of the time."""
        return _TAGS[kind]


_TAGS: dict[type[yaml.Node], str] = {
    yaml.ScalarNode: yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG,
    yaml.SequenceNode: yaml.resolver.BaseResolver.DEFAULT_SEQUENCE_TAG,
    yaml.MappingNode: yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG,
}


def read_core(value: Any) -> Any:
    """A value whose type is open: plain scalars as YAML 1.2's core schema reads them."""
    if isinstance(value, dict):
        return {text(key): read_core(item) for key, item in value.items()}
    if isinstance(value, list):
        return [read_core(item) for item in value]
    if not isinstance(value, Plain):
        return value
    if value in _BOOLS:
        return _BOOLS[value]
    if len(value) > _DIGITS:
        return text(value)
    if _INT.fullmatch(value):
        return int(value)
    if _BASED_INT.fullmatch(value):
        return int(value, 0)
    if _FLOAT.fullmatch(value) and math.isfinite(found := float(value)):
        return found
    return text(value)


def check_numbers(value: Any) -> None:
    """Refuse, where the type is open, an integer that would become a text for its length.

    Raises:
        ValueError: there is one.
    """
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            check_numbers(item)
    elif isinstance(value, Plain) and len(value) > _DIGITS and _LONG_INT.fullmatch(value):
        raise ValueError(f"an integer of {len(value)} digits; at most 64 bits are read")


def text(value: Any) -> Any:
    """A value without the marker of plain scalars."""
    if isinstance(value, str):
        return str.__str__(value) if type(value) is str else "".join(value)
    if isinstance(value, dict):
        return {text(key): text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [text(item) for item in value]
    return value


def as_written(value: Any) -> Any:
    """JSON data that is the same for what reads the same, whatever reads it."""
    if isinstance(value, dict):
        return {text(key): as_written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_written(item) for item in value]
    if not isinstance(value, Plain):
        return value
    # `1.10` may be read as the number or as the text; of `abc` there is one reading.
    return text(value) if isinstance(read_core(value), str) else {"plain": text(value)}


class Source:
    """One YAML or JSON file: its data, and the place of each part."""

    def __init__(self, data: bytes, file: str, limits: Limits = _LIMITS) -> None:
        """Parse a file.

        Args:
            data: its bytes.
            file: its name, for messages.
            limits: how much it may be.

        Raises:
            ConfigError: it is not UTF-8, not YAML, too large, or has no content.
        """
        self.file: str = file
        if len(data) > limits.bytes:
            raise ConfigError(f"{file}: {len(data)} bytes, at most {limits.bytes}")
        try:
            content = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            column = error.start - data.rfind(b"\n", 0, error.start)
            raise ConfigError(
                f"not UTF-8 (byte 0x{data[error.start]:02x})", Mark(file, line, column)
            ) from None
        self._root = self._compose(content)
        self._limits = limits
        self._nodes = 0
        self._seen: set[int] = set()
        self.data: Any = self._construct(self._root, 0)

    @classmethod
    def read(cls, path: Path) -> Source:
        """Parse the file at a path.

        Raises:
            ConfigError: it cannot be read, or as for the constructor.
        """
        try:
            return cls(path.read_bytes(), str(path))
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from None

    def _compose(self, content: str) -> Any:
        loader = _Loader(content)
        try:
            root = loader.get_single_node()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Mark(self.file, mark.line + 1, mark.column + 1) if mark else None
            problem = error.problem or error.context or "not YAML"
            raise ConfigError(f"not YAML: {problem}", place) from None
        except (yaml.YAMLError, RecursionError) as error:
            raise ConfigError(f"{self.file}: not YAML: {error}") from None
        finally:
            loader.dispose()
        if root is None:
            raise ConfigError(f"{self.file}: the file is empty")
        return root

    def _construct(self, node: Any, depth: int) -> Any:
        self._nodes += 1
        limits = self._limits
        if depth > limits.depth or self._nodes > limits.nodes:
            raise ConfigError("nested too deep, or too large", self._mark_of(node))
        if not limits.aliases:
            if id(node) in self._seen:
                raise ConfigError("no aliases here: write it out", self._mark_of(node))
            self._seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise ConfigError(f"the tag {node.tag!r} is not known here", self._mark_of(node))
        if isinstance(node, yaml.SequenceNode):
            return [self._construct(item, depth + 1) for item in node.value]
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise ConfigError("a key must be a string", self._mark_of(key_node))
            self._check_tag(key_node)
            if key == "<<" and not key_node.style:
                for part in self._merge_parts(value_node):
                    merged = {**self._construct(part, depth + 1), **merged}
                continue
            if key in found:
                raise ConfigError(f"the key {key!r} is there twice", self._mark_of(key_node))
            found[key] = self._construct(value_node, depth + 1)
        return {**merged, **found}

    def _merge_parts(self, node: Any) -> list[Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(part, yaml.MappingNode) for part in parts):
            raise ConfigError("`<<` takes a map or a list of maps", self._mark_of(node))
        return list(parts)

    def _scalar(self, node: Any) -> str | None:
        value: str = node.value
        self._check_tag(node)
        if node.style:
            return value
        return None if value in _NULLS else Plain(value)

    def _check_tag(self, node: Any) -> None:
        if node.tag not in ("tag:yaml.org,2002:str", "!"):
            raise ConfigError(f"the tag {node.tag!r} is not known here", self._mark_of(node))

    def _mark_of(self, node: Any) -> Mark:
        return Mark(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def mark(self, path: Sequence[str | int] = ()) -> Mark:
        """The place of what is at `path`, or of the nearest thing above it that is there."""
        node = place = self._root
        for key in path:
            if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
                if key >= len(node.value):
                    return self._mark_of(node)
                node = place = node.value[key]
                continue
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            found = next((pair for pair in pairs if pair[0].value == key), None)
            if found is None:
                return self._mark_of(node)
            place, node = found
        return self._mark_of(place)


def canonical(value: Any) -> str:
    """JSON text that is the same for the same data."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
