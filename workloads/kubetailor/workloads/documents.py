"""Manifests in and out: YAML streams, JSON and lists, read as kubectl reads them.

YAML is 1.1, as for kubectl (`yes` is true, `0644` is octal), but without the types that JSON has
no word for: `12:30` and `2026-01-01` are strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from kubetailor.workloads.draft import Json, JsonMap
from kubetailor.workloads.errors import KubetailorError

__all__ = ["Document", "DocumentError", "dump_json", "dump_yaml", "load_documents"]

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 100
MAX_NODES = 2_000_000  # after aliases are expanded

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
        list_index: where it stands in a ``kind: List``, or None.
    """

    obj: JsonMap
    source: str
    line: int
    list_index: int | None = None

    @property
    def where(self) -> str:
        """The place, for messages: ``file:line``."""
        item = "" if self.list_index is None else f" (item {self.list_index} of the List)"
        return f"{self.source}:{self.line}{item}"


class _Loader(_BaseLoader):  # type: ignore[misc]  # the C loader has no stubs
    """YAML 1.1 with kubectl's types alone."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("int", r"[-+]?0b[01_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0o?[0-7_]+|[-+]?(0|[1-9][0-9_]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), [*_first.replace("\0", ""), ""] if _tag == "null" else [*_first]
    )


def _construct_int(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node).replace("_", "").lower()
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in "box":
        digits = "0o" + digits[1:]
    return sign * int(digits, 0)


def _construct_float(loader: Any, node: Any) -> float:
    text = loader.construct_scalar(node).replace("_", "").lower()
    if text.lstrip("+-") in (".inf", ".nan"):
        raise yaml.constructor.ConstructorError(
            None, None, f"{text} has no form in JSON", node.start_mark
        )
    return float(text)


def _construct_map(loader: Any, node: Any) -> JsonMap:
    loader.flatten_mapping(node)
    found: JsonMap = {}
    merged = getattr(node, "merged", 0)
    for position, (key_node, value_node) in enumerate(node.value):
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a string", key_node.start_mark
            )
        if key in found and position >= merged + 1 and _repeated(node, key_node):
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} is there twice", key_node.start_mark
            )
        found[key] = loader.construct_object(value_node, deep=True)
    return found


def _repeated(node: Any, key_node: Any) -> bool:
    """Whether a key is written twice in one map; one from a merge (`<<`) may be written over."""
    own = [
        key
        for key, _ in node.value
        if isinstance(key, yaml.ScalarNode)
        and key.value == key_node.value
        and node.start_mark.index <= key.start_mark.index < node.end_mark.index
    ]
    return len(own) > 1


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)
_Loader.add_constructor("tag:yaml.org,2002:map", _construct_map)


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
    budget = [MAX_NODES]
    found: list[Document] = []
    for line, value in _values(text, source):
        if value is None:
            continue
        if not isinstance(value, dict):
            raise DocumentError(
                f"{source}:{line}: expected an object, found {_type_name(value)}; a manifest "
                "starts with `apiVersion` and `kind`"
            )
        obj = _unshared(value, budget, f"{source}:{line}")
        found.extend(_items(obj, source, line))
    return found


def _values(text: str, source: str) -> Iterator[tuple[int, Json]]:
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield 1, json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            pass  # YAML's flow style starts alike
        else:
            return
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield node.start_mark.line + 1, loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise DocumentError(f"{place}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"{source}: not YAML: {error}") from None
    except RecursionError:
        raise DocumentError(f"{source}: nested more than {MAX_DEPTH} deep") from None
    except (ValueError, OverflowError) as error:
        raise DocumentError(f"{source}: {error}") from None
    finally:
        loader.dispose()


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unshared(value: Json, budget: list[int], where: str, depth: int = 0) -> Json:
    """A copy without shared parts, within the limits of size and depth."""
    budget[0] -= 1
    if budget[0] < 0:
        raise DocumentError(f"{where}: more than {MAX_NODES} values once aliases are expanded")
    if depth > MAX_DEPTH:
        raise DocumentError(f"{where}: nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        return {key: _unshared(item, budget, where, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_unshared(item, budget, where, depth + 1) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise DocumentError(f"{where}: {value!r} has no form in JSON")


def _items(obj: JsonMap, source: str, line: int) -> Iterator[Document]:
    kind, items = obj.get("kind"), obj.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield Document(obj, source, line)
        return
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise DocumentError(
                f"{source}:{line}: item {index} of the List: expected an object, found "
                f"{_type_name(item)}"
            )
        yield Document(item, source, line, index)


def _type_name(value: Json) -> str:
    names = {list: "a list", str: "a string", bool: "a boolean", type(None): "nothing"}
    return names.get(type(value), "a number")


class _Dumper(_BaseDumper):  # type: ignore[misc]  # the C dumper has no stubs
    """Block style without aliases; strings that any YAML would read as something else are quoted."""

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
    whole = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
