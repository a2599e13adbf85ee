"""What signatures say, how parameters are read, and every way in which a function is no transformer."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from annotated_types import Gt
from kubernetes.client import V1Pod, V1PodSpec
from pydantic import AfterValidator, BaseModel
from typing_extensions import NotRequired, TypedDict

from kubetailor.registry import Pod, Selection, TaskContext, Workload, transformer
from kubetailor.registry.parameters import ParameterError, json_schema, read_parameters
from kubetailor.registry.source import Source
from kubetailor.registry.transformer import Options, Transformer, TransformerError, options_of

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypes


def of(function: Any) -> Transformer:
    return Transformer.of(
        function, name=f"acme.{function.__name__}", plugin="acme", options=Options()
    )


def pod(pod: Pod) -> None:
    """One line.

    More.
    """


def workload(workload: Workload, task: TaskContext, *, size: int, name: str = "x") -> None: ...
def model(spec: V1PodSpec) -> V1PodSpec:
    return spec


def obj(obj: dict[str, Any], selection: Selection) -> None: ...
def bare_dict(obj: dict) -> None: ...  # type: ignore[type-arg]  # some authors write it bare


@pytest.mark.parametrize(
    ("function", "receiver", "injected", "parameters", "required"),
    [
        (pod, "pod", set(), [], set()),
        (workload, "workload", {"task"}, ["size", "name"], {"size"}),
        (model, "pod_spec", set(), [], set()),
        (obj, "dict", {"selection"}, [], set()),
        (bare_dict, "dict", set(), [], set()),
    ],
)
def test_signatures(
    function: Any, receiver: str, injected: set[str], parameters: list[str], required: set[str]
) -> None:
    found = of(function)
    assert found.receiver == receiver
    assert found.injected.keys() == injected
    assert list(found.annotations) == parameters
    assert found.required == required
    assert found.source.startswith(f"{__file__}:")


def test_docs() -> None:
    assert of(pod).summary == "One line."
    assert of(pod).doc == "One line.\n\nMore."
    assert of(model).doc == ""


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    def plain(pod: Pod) -> None: ...

    assert transformer(plain) is plain
    assert options_of(plain) == Options()
    assert transformer(name="other", atomic=True)(plain) is plain
    assert options_of(plain) == Options("other", atomic=True)
    transformer(queue=True, accelerator=True)(plain)
    assert options_of(plain) == Options(queue=True, accelerator=True)
    assert options_of(model) is None
    assert options_of(5) is None


def none() -> None: ...
def unannotated(pod) -> None: ...  # type: ignore[no-untyped-def]  # the fault under test
def text(pod: str) -> None: ...
def union(pod: Pod | None) -> None: ...
def whole(pod: V1Pod) -> None: ...
def keyword(*, pod: Pod) -> None: ...
def star(*pods: Pod) -> None: ...
def more(pod: Pod, **rest: Any) -> None: ...
def rest(pod: Pod, *rest: Any) -> None: ...
def by_position(pod: Pod, size: int, /) -> None: ...
def late(pod: Pod, x: OnlyForTypes) -> None: ...
def wrong(pod: "Nope") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037  # the fault
async def later(pod: Pod) -> None: ...
def yields(pod: Pod) -> Any:
    yield


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (none, "takes no parameter"),
        (unannotated, "the first parameter 'pod' has no annotation; it must be Pod, Workload"),
        (text, "the first parameter 'pod' has the annotation <class 'str'>"),
        (union, "the first parameter 'pod' has the annotation"),
        (whole, "the first parameter 'pod' has the annotation .*V1Pod"),
        (keyword, "is not given by position"),
        (star, "is not given by position"),
        (more, "parameter 'rest' cannot be given by name"),
        (rest, "parameter 'rest' cannot be given by name"),
        (by_position, "parameter 'size' cannot be given by name"),
        (late, "'OnlyForTypes' is not defined; .* not under TYPE_CHECKING"),
        (wrong, "'Nope' is not defined"),
        (later, "must be a plain function"),
        (yields, "must be a plain function"),
    ],
)
def test_a_function_that_is_no_transformer_is_named_with_its_file(
    function: Any, message: str
) -> None:
    with pytest.raises(TransformerError, match=message) as caught:
        of(function)
    assert f"transformer 'acme.{function.__name__}' ({__file__}:" in str(caught.value)


# --------------------------------------------------------------------------------------- parameters


class Part(TypedDict):
    key: str
    flag: NotRequired[bool]
    open: NotRequired[dict[str, Any]]


def _no_blanks(key: str) -> str:
    if " " in key:
        raise ValueError("no blanks")
    return key


class Size(BaseModel):
    cpu: str
    count: int = 1


def takes(
    pod: Pod,
    *,
    text: str = "",
    number: int = 0,
    ratio: float = 0.0,
    flag: bool = False,
    choice: Literal["a", "b"] = "a",
    texts: dict[str, str] | None = None,
    names: list[str] | None = None,
    either: str | dict[str, Any] = "",
    anything: Any = None,
    whatever: dict[str, Any] | None = None,
    bare: dict | None = None,  # type: ignore[type-arg]  # as above
    parts: list[Part] | None = None,
    size: Size | None = None,
    positive: Annotated[int, Gt(0)] = 1,
    keyed: dict[Annotated[str, AfterValidator(_no_blanks)], str] | None = None,
) -> None: ...


TAKES = of(takes)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("text: true", {"text": "true"}),
        ("text: 1.10", {"text": "1.10"}),
        ("text: 0755", {"text": "0755"}),
        ("text: NO", {"text": "NO"}),
        ("number: 12", {"number": 12}),
        ("number: '12'", {"number": 12}),
        ("ratio: 1", {"ratio": 1.0}),
        ("flag: true", {"flag": True}),
        ("choice: b", {"choice": "b"}),
        (
            "texts: {a: true, 1: 1.10, yes: null_}",
            {"texts": {"a": "true", "1": "1.10", "yes": "null_"}},
        ),
        ("texts: ~", {"texts": None}),
        ("names: [1, no]", {"names": ["1", "no"]}),
        ("either: true", {"either": "true"}),
        ("either: {a: true, b: 'true'}", {"either": {"a": True, "b": "true"}}),
        ("anything: 1.10", {"anything": 1.1}),
        ("anything: [1, 0x10, yes, '1', null]", {"anything": [1, 16, "yes", "1", None]}),
        ("whatever: {a: {b: 0o17, c: 1e3}}", {"whatever": {"a": {"b": 15, "c": 1000.0}}}),
        ("bare: {a: false}", {"bare": {"a": False}}),
        (
            "parts: [{key: 1, flag: true, open: {optional: true}}]",
            {"parts": [{"key": "1", "flag": True, "open": {"optional": True}}]},
        ),
        ("size: {cpu: 1, count: 2}", {"size": Size(cpu="1", count=2)}),
        ("{}", {}),
    ],
)
def test_a_plain_scalar_is_read_by_its_type(written: str, read: Any) -> None:
    found = read_parameters(TAKES, Source(written.encode(), "f").data)
    assert found == read
    assert repr(found) == repr(read), "in type too, without a trace of how it was written"


@pytest.mark.parametrize(
    ("given", "message", "path"),
    [
        ({"txt": 1}, "acme.takes: no parameter 'txt'; did you mean text", ("txt",)),
        ({"number": "x"}, r"number: .*valid integer.* \(found 'x'\)", ("number",)),
        ({"choice": "c"}, r"choice: .*'a' or 'b' \(found 'c'\)", ("choice",)),
        ({"texts": {"a": []}}, r"texts.a: .*valid string \(found \[\]\)", ("texts", "a")),
        ({"parts": [{"key": "a"}, {}]}, "required|Field", ("parts", 1, "key")),
        (
            {"parts": [{"key": "a", "flg": True}]},
            r"acme.takes: parts.0: no key 'flg' here; did you mean flag\? \(keys: flag, key, open\)",
            ("parts", 0, "flg"),
        ),
        ({"keyed": {"a b": "c"}}, r"acme.takes: keyed.a b: no blanks \(found", ("keyed", "a b")),
        ({"keyed": {"[key]": []}}, r"keyed.\[key\]: .*valid string", ("keyed", "[key]")),
        ({"positive": 0}, "positive: .*greater than 0", ("positive",)),
        ({"size": {"cpu": "1", "count": "x" * 200}}, r"size.count.*\.\.\.\)", ("size", "count")),
        ([], "", None),
    ],
)
def test_what_a_parameter_does_not_take_is_refused(given: Any, message: str, path: Any) -> None:
    if path is None:
        assert read_parameters(TAKES, given) == {}
        return
    with pytest.raises(ParameterError, match=message) as caught:
        read_parameters(TAKES, given)
    assert caught.value.path == path


def test_a_required_parameter_is_asked_for() -> None:
    with pytest.raises(ParameterError, match=r"acme.workload: the parameter 'size' is required"):
        read_parameters(of(workload), None)


def test_a_json_schema_for_editors() -> None:
    schema = json_schema(TAKES)
    assert schema["properties"]["choice"]["enum"] == ["a", "b"]
    assert schema["additionalProperties"] is False
    assert json_schema(of(workload))["required"] == ["size"]
