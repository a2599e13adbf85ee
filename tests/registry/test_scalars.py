"""Plain scalars: a string keeps its text, every other type gets what YAML 1.2 reads."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, JsonValue, StrictBool, StrictInt, StrictStr
from typing_extensions import TypedDict

from kubetailor.registry import Pod
from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.parameters import ParameterError, json_schema, read_parameters
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.schema import config_schema
from kubetailor.registry.source import Plain, Source, read_core
from kubetailor.registry.transformer import Options, Transformer


class Number(enum.Enum):
    ONE = 1


class Small(enum.IntEnum):
    ONE = 1


class Version(str, enum.Enum):
    OLD = "1.10"


@dataclasses.dataclass
class Data:
    names: list[str]
    open: Any = None


class Model(BaseModel):
    name: str = ""
    open: Any = None
    count: Literal[1, 2] | None = None
    inner: list[Model] = []


class Loose(BaseModel, extra="allow"):
    name: str = ""


class Typed(TypedDict, total=False):
    name: str
    open: Any


def taking(annotation: Any) -> Transformer:
    def function(pod: Pod, *, v: Any) -> None: ...

    function.__annotations__["v"] = annotation
    return Transformer.of(function, name="t.f", plugin="t", options=Options())


def reading(annotation: Any, written: str) -> Any:
    given = Source(f"v: {written}".encode(), "f").data
    found = read_parameters(taking(annotation), given)["v"]
    assert not plain_in(found)
    return found


def plain_in(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(plain_in, [*value, *value.values()]))
    if isinstance(value, list | tuple | set):
        return any(map(plain_in, value))
    return isinstance(value, Plain)


OPEN = {"a": 1.1, "b": True, "c": [755, "1", None]}
OPEN_TEXT = "{a: 1.10, b: true, c: [0755, '1', ~]}"
READS: list[tuple[Any, str, Any]] = [
    *((str, text, text) for text in ("1.10", "NO", "0755", "true", "1", "abc")),
    *((kind, "1.10", "1.10") for kind in (StrictStr, str | None, int | str | None, Version | str)),
    (Literal[1, 2, 4, 8], "4", 4),
    (Literal[True, False], "true", True),
    (Literal[1, "auto"], "1", 1),
    (Literal[1, "auto"], "auto", "auto"),
    (Literal["1.10", "true"], "1.10", "1.10"),
    (Literal["1.10", "true"], "true", "true"),
    *((kind, "1", kind.ONE) for kind in (Number, Small)),
    (Version, "1.10", Version.OLD),
    (StrictInt, "3", 3),
    (StrictBool, "true", True),
    (int, "0x10", 16),
    (int, "1e3", 1000),
    (int, "'3'", 3),
    (int | str, "4", 4),
    (int | str, "'4'", "4"),
    (int | str, "1.0", "1.0"),
    (int | str, "true", "true"),
    (bool | str, "true", True),
    (bool | str, "'true'", "true"),
    (bool | str, "1", "1"),
    (float | str, "1.50", 1.5),
    (float | str, "abc", "abc"),
    (str | int | None, "4", 4),
    (bool | int | None, "1", 1),
    (bool | int | None, "true", True),
    (int | list[int], "[1]", [1]),
    (Decimal, "1.10", Decimal("1.10")),
    (bytes, "123", b"123"),
    *((kind, OPEN_TEXT, OPEN) for kind in (Any, JsonValue, object, dict, dict[str, Any])),
    (list, "[1, true, abc]", [1, True, "abc"]),
    (dict[str, int | str], "{a: 1, b: x}", {"a": 1, "b": "x"}),
    (Hashable, "1.10", 1.1),
    (set[str], "[1.10]", {"1.10"}),
    (tuple[int, str], "[1, 1.10]", (1, "1.10")),
    (Sequence[str], "[1.10]", ["1.10"]),
    (Mapping[str, str], "{1: 1.10}", {"1": "1.10"}),
    (Iterable[str], "[1.10, a]", ["1.10", "a"]),
    (Data, f"{{names: [1.10], open: {OPEN_TEXT}}}", Data(["1.10"], OPEN)),
    (Model, f"{{name: 1.10, open: {OPEN_TEXT}, count: 2}}", Model(name="1.10", open=OPEN, count=2)),
    (Model, "{inner: [{name: 1, open: 1}]}", Model(inner=[Model(name="1", open=1)])),
    (list[Model], "[{open: 1}]", [Model(open=1)]),
    (Model | str, "1.10", "1.10"),
    (Loose, "{name: 1, more: 1}", Loose(name="1", more=1)),  # type: ignore[call-arg]  # an open form
    (Typed, f"{{name: true, open: {OPEN_TEXT}}}", {"name": "true", "open": OPEN}),
]


@pytest.mark.parametrize(
    ("annotation", "written", "expected"), READS, ids=lambda value: str(value)[:40]
)
def test_the_type_reads_the_text(annotation: Any, written: str, expected: Any) -> None:
    found = reading(annotation, written)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("annotation", "written"),
    [(a, w) for a, w, _ in READS if a not in (Decimal, bytes, Hashable) and w != "'3'"],
    ids=lambda value: str(value)[:40],
)
def test_the_schema_takes_what_a_config_takes(annotation: Any, written: str) -> None:
    plugins = Plugins()
    plugins.transformers["t.f"] = taking(annotation)
    schema = config_schema(plugins, Catalogue())
    given = read_core(Source(f"v: {written}".encode(), "f").data)  # as an editor reads it
    config = {"chains": {"default": {"steps": [{"use": "t.f", "with": given}]}}}
    jsonschema.Draft202012Validator(schema).validate(config)


@pytest.mark.parametrize(
    ("annotation", "written", "message"),
    [
        (Literal[1, 2], "3", r"v: Input should be 1 or 2 \(found 3\)"),
        (StrictInt, "1.5", r"v: Input should be a valid integer"),
        (int, "abc", r"v: .*valid integer.* \(found 'abc'\)"),
        (float, "nan", r"v: Input should be a finite number"),
        (Sequence[str], "abc", r"v: 'str' instances are not allowed as a Sequence value"),
        (int | list[int], "abc", r"v: Input should be a valid integer"),
    ],
)
def test_a_fault_names_the_parameter_and_what_was_written(
    annotation: Any, written: str, message: str
) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        reading(annotation, written)
    assert caught.value.path == ("v",)


def test_an_iterable_is_there_for_every_object() -> None:
    found = reading(Iterable[str], "[a, b]")
    assert [list(found), list(found)] == [["a", "b"], ["a", "b"]]
    assert json_schema(taking(Iterable[str]))["properties"]["v"]["type"] == "array"
