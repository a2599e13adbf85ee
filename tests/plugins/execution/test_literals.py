"""What a condition on `inputs` looks at."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

import pytest
from flytekit.core.context_manager import FlyteContextManager
from flytekit.core.type_engine import TypeEngine
from flytekit.types.file import FlyteFile
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.plugins.execution.identity import bound_inputs
from kubetailor.plugins.execution.literals import literal_of, plain_inputs, plain_values


@dataclass
class Optimizer:
    lr: float = 0.1
    nesterov: bool = True
    betas: list[float] = field(default_factory=lambda: [0.9])


@dataclass
class Model:
    name: str = "large"
    optimizer: Optimizer = field(default_factory=Optimizer)


class Size(Enum):
    LARGE = "large"


MODEL = {"name": "large", "optimizer": {"lr": 0.1, "nesterov": True}}


def literal(value: Any, type_: Any) -> Any:
    """What flytekit makes of an input, in JSON form."""
    context = FlyteContextManager.current_context()
    found = TypeEngine.to_literal(context, value, type_, TypeEngine.to_literal_type(type_))
    return MessageToDict(found.to_flyte_idl())


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (3, int, 3),
        (0.5, float, 0.5),
        ("a", str, "a"),
        (True, bool, True),
        ({"a": 1}, dict[str, int], {"a": 1}),
        ({"a": {"b": False}}, dict[str, dict[str, bool]], {"a": {"b": False}}),
        ({"a": 1, "b": {"c": "d"}, "e": [1], "f": None}, dict, {"a": 1, "b": {"c": "d"}}),
        (Model(), Model, MODEL),
        (3, int | None, 3),
        (None, int | None, None),
        (Model(), Model | None, MODEL),
        (Size.LARGE, Size, "large"),
        ([1], list[int], None),
        ({"a": [1]}, dict[str, list[int]], {}),
        (datetime(2026, 1, 1), datetime, None),
        (FlyteFile("https://example.com/x"), FlyteFile, None),
    ],
)
def test_scalars_and_maps_are_seen(value: Any, type_: Any, expected: Any) -> None:
    found = plain_inputs({"x": literal(value, type_)})
    assert found == ({} if expected is None else {"x": expected})
    again = plain_inputs({name: literal_of(each) for name, each in found.items()})
    assert again == found
    assert {type(each) for each in again.values()} == {type(each) for each in found.values()}


def test_what_is_bound_to_a_task_is_seen_as_far_as_it_is_written() -> None:
    promise = {"promise": {"nodeId": "n0", "var": "o0"}}
    bindings = {"a": literal(1, int), "b": promise}
    spec = {"inputBindings": [{"var": "x", "binding": {"map": {"bindings": bindings}}}]}
    assert bound_inputs(spec) == {"x": {"a": 1}}


def test_without_the_library_a_dataclass_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgpack", None)
    assert plain_inputs({"x": literal(Model(), Model), "y": literal(1, int)}) == {"y": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)
KEYS = st.sampled_from(["scalar", "primitive", "map", "literals", "bindings", "binary", "tag"])
FORMS = st.recursive(JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=3))


def binary(value: Any) -> Any:
    return {"scalar": {"binary": {"tag": "msgpack", "value": value}}}


@given(literals=FORMS | st.dictionaries(st.text(max_size=3), FORMS, max_size=3))
def test_any_form_has_an_answer(literals: Any) -> None:
    json.dumps(plain_inputs(literals))


@given(text=st.binary(max_size=60).map(base64.b64encode).map(bytes.decode) | JSON)
def test_any_bytes_have_an_answer(text: Any) -> None:
    json.dumps(plain_inputs({"x": binary(text)}))


@pytest.mark.parametrize("code", [b"\x81\xa1a", b"\x91"])
def test_bytes_that_are_nested_deep_have_an_answer(code: bytes) -> None:
    text = base64.b64encode(code * 100_000 + b"\xc0").decode()
    assert plain_inputs({"x": binary(text), "y": literal(1, int)}) == {"y": 1}


def test_values_of_other_types_are_left_out() -> None:
    assert plain_values({"a": 1, "b": [1], "c": {"d": None, 3: 4, "e": "f"}, "g": object()}) == {
        "a": 1,
        "c": {"e": "f"},
    }
