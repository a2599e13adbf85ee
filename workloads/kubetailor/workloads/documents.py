"""Manifests in and out: YAML streams, JSON and lists, read as kubectl reads them.

YAML is 1.1, as for kubectl (`yes` is true, `0644` is octal), but without the types that JSON has
no word for: `12:30` and `2026-01-01` are strings.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from kubetailor.workloads.draft import Json, JsonMap
from kubetailor.workloads.errors import KubetailorError

__all__ = ["Document", "DocumentError", "dump_json", "dump_yaml", "load_documents"]

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 100
MAX_NODES = 2_000_000  # after aliases are expanded

_WHOLE = 2.0**53
"""Below it every whole float is an integer exactly."""

_SPACE = re.compile(r"[ \t\r\n]*")

_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BaseDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class DocumentError(KubetailorError):
    """A file that cannot be read as manifests; the message says where."""


@dataclass(frozen=True)
class Document:
    """One object of a file.

    Attributes:
        obj: the object, JSON data that shares nothing with others.
        source: the file, or ``-``.
        line: the line where it starts, from 1.
        list_index: where it stands in a ``kind: List``, and in those within it; empty outside.
    """

    obj: JsonMap
    source: str
    line: int
    list_index: tuple[int, ...] = ()

    @property
    def where(self) -> str:
        """The place, for messages: ``file:line``."""
        item = f" ({_item(self.list_index)})" if self.list_index else ""
        return f"{self.source}:{self.line}{item}"


class _Loader(_BaseLoader):  # type: ignore[misc]  # the C loader has no stubs
    """YAML 1.1 with kubectl's types alone."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    (
        "bool",
        r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        "yYnNtTfFoO",
    ),
    (
        "int",
        r"[-+]?0b[01_]+|[-+]?0x[0-9a-fA-F][0-9a-fA-F_]*|[-+]?0o?[0-7_]+|[-+]?(0|[1-9][0-9_]*)",
        "-+0123456789",
    ),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(rf"^(?:{_pattern})$"),
        [*_first.replace("\0", ""), ""] if _tag == "null" else [*_first],
    )


_DIGITS = 300
"""A float has no more than 308; nor does anything that Kubernetes knows as an integer."""


def _int(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"an integer of {len(text)} digits; at most 64 bits are read")
    digits = text.replace("_", "").lower().lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in "box":
        digits = "0o" + digits[1:]
    return -int(digits, 0) if text.startswith("-") else int(digits, 0)


def _float(text: str) -> float | int:
    """A number that is no integer by its form; `1e3` and `08` are whole, as kubectl prints them."""
    found = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(found):
        raise ValueError(f"{text} has no form in JSON")
    whole = "." not in text and found.is_integer() and abs(found) < _WHOLE
    return int(found) if whole else found


_SCALARS: Mapping[str, Callable[[str], Json]] = {
    "tag:yaml.org,2002:bool": lambda text: text.lower() in ("yes", "true", "on"),
    "tag:yaml.org,2002:float": _float,
    "tag:yaml.org,2002:int": _int,
    "tag:yaml.org,2002:merge": str,
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:str": str,
}


class _Reader:
    """Makes JSON data of YAML nodes; aliases and merges become copies, within the limits."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.left = MAX_NODES

    def error(self, node: Any, problem: str) -> DocumentError:
        mark = node.start_mark
        return DocumentError(f"{self.source}:{mark.line + 1}:{mark.column + 1}: {problem}")

    def read(self, node: Any, depth: int = 0) -> Json:
        self.left -= 1
        if self.left < 0:
            raise self.error(node, f"more than {MAX_NODES} values once aliases are expanded")
        if depth > MAX_DEPTH:
            raise self.error(node, f"nested more than {MAX_DEPTH} deep")
        if node.tag == "tag:yaml.org,2002:map" and isinstance(node, yaml.MappingNode):
            return self._map(node, depth)
        if node.tag == "tag:yaml.org,2002:seq" and isinstance(node, yaml.SequenceNode):
            return [self.read(item, depth + 1) for item in node.value]
        if node.tag not in _SCALARS or not isinstance(node, yaml.ScalarNode):
            raise self.error(node, f"the tag {node.tag!r} has no form in JSON")
        try:
            return _SCALARS[node.tag](node.value)
        except ValueError as error:
            raise self.error(node, f"not YAML: {error}") from None

    def _map(self, node: Any, depth: int) -> JsonMap:
        merged: JsonMap = {}
        found: JsonMap = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.error(key_node, "not YAML: a key must be a string")
            key = key_node.value
            if key_node.tag == "tag:yaml.org,2002:merge":
                for part in self._merge_parts(value_node):
                    merged = {**self.read(part, depth + 1), **merged}
                continue
            if key in found:
                raise self.error(key_node, f"not YAML: the key {key!r} is there twice")
            found[key] = self.read(value_node, depth + 1)
        return {**merged, **found} if merged else found

    def _merge_parts(self, node: Any) -> list[Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(part, yaml.MappingNode) for part in parts):
            raise self.error(node, "not YAML: `<<` takes a map or a list of maps")
        return list(parts)


def load_documents(data: bytes, source: str) -> list[Document]:
    """The objects of a file: a YAML stream, JSON, or either with a ``kind: List``.

    Empty documents are left out. Anchors and merge keys are expanded, and no two places share
    data.

    Args:
        data: the bytes of the file.
        source: its name, for messages.

    Raises:
        DocumentError: it is too large, not UTF-8, not YAML, or a document is no object.
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(f"{source}: {len(data)} bytes, at most {MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DocumentError(
            f"{source}:{line}: not UTF-8 (byte 0x{data[error.start]:02x})"
        ) from None
    found: list[Document] = []
    for line, value in _values(text, source):
        if value is None:
            continue
        if not isinstance(value, dict):
            raise DocumentError(
                f"{source}:{line}: expected an object, found {_type_name(value)}; a manifest "
                "starts with `apiVersion` and `kind`"
            )
        found.extend(_items(value, source, line))
    return found


def _values(text: str, source: str) -> Iterator[tuple[int, Json]]:
    """The (line, value) of each document. JSON is YAML, and read faster as what it is."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            values = list(_json_values(text))
        except (ValueError, RecursionError):
            pass  # YAML's flow style starts alike
        else:
            for line, value in values:
                _check_depth(value, source)
                _check_escapes(text, value, source)
                yield line, value
            return
    loader, reader = _Loader(text), _Reader(source)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield node.start_mark.line + 1, reader.read(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise DocumentError(f"{place}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"{source}: not YAML: {error}") from None
    except RecursionError:
        raise DocumentError(f"{source}: nested more than {MAX_DEPTH} deep") from None
    finally:
        loader.dispose()


def _json_values(text: str) -> Iterator[tuple[int, Json]]:
    """The (line, value) of each JSON text, one after another as kubectl takes them."""
    decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_float)
    position, line = 0, 1
    # `_SPACE` matches anywhere, also no space at all.
    while (start := _SPACE.match(text, position).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", position, start)
        value, position = decoder.raw_decode(text, start)
        yield line, value
        line += text.count("\n", start, position)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: Json, source: str, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise DocumentError(f"{source}: nested more than {MAX_DEPTH} deep")
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            _check_depth(item, source, depth + 1)


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _check_escapes(text: str, value: Json, source: str) -> None:
    """JSON can escape half a character (a lone surrogate), which no file can hold."""
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise DocumentError(f"{source}: {half} is half a character") from None


def _items(obj: JsonMap, source: str, line: int) -> Iterator[Document]:
    """The objects of a list; those of lists within it come after the others, as kubectl has them.

    kubernetes/cli-runtime, pkg/resource/visitor.go, `FlattenListVisitor`.
    """
    found: deque[tuple[tuple[int, ...], Json]] = deque([((), obj)])
    while found:
        place, value = found.popleft()
        at = f"{source}:{line}: {f'{_item(place)}: ' if place else ''}"
        if not isinstance(value, dict):
            raise DocumentError(f"{at}expected an object, found {_type_name(value)}")
        kind = value.get("kind")
        if not (isinstance(kind, str) and kind.endswith("List") and "items" in value):
            yield Document(value, source, line, place)
            continue
        items = value["items"]
        if not isinstance(items, list):
            raise DocumentError(
                f"{at}`items` of a {kind}: expected a list, found {_type_name(items)}"
            )
        found.extend(((*place, index), item) for index, item in enumerate(items))


def _item(place: tuple[int, ...]) -> str:
    return f"item {'.'.join(map(str, place))} of the List"


def _type_name(value: Json) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        type(None): "nothing",
    }
    return names.get(type(value), "a number")


class _Dumper(_BaseDumper):  # type: ignore[misc]  # the C dumper has no stubs
    """Block style without aliases; what any YAML would misread is quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# Beyond PyYAML's own: floats and octals of YAML 1.2 and Go, and the single letters of YAML 1.1.
_MISREAD = re.compile(
    r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|[yYnN]|<<|=|[-+]?0x[0-9a-fA-F]+"
)


def _represent_str(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text and not text[:1].isspace() else None
    if _MISREAD.fullmatch(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_str)


def dump_yaml(objects: list[Json]) -> str:
    """Objects as a YAML stream, in the order of their keys, without anchors."""
    return "".join(
        ("---\n" if index else "")
        + yaml.dump(obj, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
        for index, obj in enumerate(objects)
    )


def dump_json(objects: list[Json]) -> str:
    """One object as JSON; several as a ``kind: List``, as kubectl prints them."""
    whole = (
        objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
    )
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
