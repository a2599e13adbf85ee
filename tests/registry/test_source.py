"""YAML with places, and plain scalars that stay text."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry import ConfigError
from kubetailor.registry.source import Plain, Source, canonical, read_core, text


def read(content: str) -> Any:
    return Source(content.encode(), "k.yaml").data


def test_plain_scalars_stay_text_and_null_is_null() -> None:
    found = read("a: true\nb: 1.10\nc: 'x'\nd: null\ne: ~\nf:\ng: ''\nh: NULL\ni: 0755\n")
    assert found == {
        "a": "true", "b": "1.10", "c": "x", "d": None, "e": None, "f": None, "g": "", "h": None, "i": "0755"
    }  # fmt: skip
    assert isinstance(found["a"], Plain)
    assert type(found["c"]) is str


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("FALSE", False), ("yes", "yes"), ("12", 12), ("-3", -3), ("0755", 755), ("0o17", 15),
        ("0x1f", 31), ("1.10", 1.1), (".5", 0.5), ("1e3", 1000.0), ("'true'", "true"), ("'1'", "1"),
        ("12:30", "12:30"), ("1_000", "1_000"), (".inf", ".inf"), ("1e999", "1e999"), ("~", None),
    ],
)  # fmt: skip
def test_open_types_are_read_by_the_core_schema_of_yaml_1_2(written: str, value: Any) -> None:
    found = read_core(read(f"a: [{written}]"))
    assert found == {"a": [value]}
    assert type(found["a"][0]) is type(value)


def test_text_takes_the_marker_off() -> None:
    found = text(read("a: [b, {c: d}]"))
    assert found == {"a": ["b", {"c": "d"}]}
    assert type(found["a"][0]) is str


def test_places() -> None:
    source = Source(
        b"plugins: [a]\nchains:\n  use:\n    steps:\n    - use: labels\n      with: {set: {a: b}}\n"
        b"    - {use: env, with: {}}\n",
        "k.yaml",
    )
    places = {
        (): "1:1",
        ("plugins",): "1:1",
        ("plugins", 0): "1:11",
        ("chains", "use"): "3:3",
        ("chains", "use", "steps", 0): "5:7",
        ("chains", "use", "steps", 0, "use"): "5:7",
        ("chains", "use", "steps", 0, "with", "set", "a"): "6:20",
        ("chains", "use", "steps", 1, "use"): "7:8",
        ("chains", "use", "steps", 1, "when"): "7:7",
        ("chains", "use", "steps", 9): "5:5",
        ("nothing",): "1:1",
        ("plugins", "x"): "1:10",
    }
    assert {path: str(source.mark(path)).removeprefix("k.yaml:") for path in places} == places


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "k.yaml: the file is empty"),
        (b"# only a comment\n", "k.yaml: the file is empty"),
        (b"a: [1", "k.yaml:2:1: not YAML: did not find expected"),
        (b"a: b: c", "k.yaml:1:5: not YAML: mapping values"),
        (b"a: 1\na: 2", "k.yaml:2:1: the key 'a' is there twice"),
        (b"a: 1\n---\nb: 2", "k.yaml:2:1: not YAML: but found another document"),
        (b"? [a]\n: b", "k.yaml:1:3: a key must be a string"),
        (b"a: !Ref x", "k.yaml:1:4: the tag '!Ref' is not known here"),
        (b"a: !Ref {x: y}", "k.yaml:1:4: the tag '!Ref' is not known here"),
        (b"a: *b", "k.yaml:1:4: not YAML: found undefined alias"),
        (b"<<: 1", "k.yaml:1:5: `<<` takes a map or a list of maps"),
        (b"a: 1\nb: \xff", r"k.yaml:2:4: not UTF-8 \(byte 0xff\)"),
        (b"&a [*a]", "k.yaml:1:1: nested too deep"),
        (b"[" * 60 + b"]" * 60, "k.yaml:1:52: nested too deep"),
        (b"a: " + b"[" * 20_000, "k.yaml"),
        (b" " * (1024 * 1024 + 1), "at most 1048576"),
        (
            b"\n".join([b"a0: &a0 [x]"] + [b"a%d: &a%d [%s]" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 9)]),
            "too large",
        ),
        (
            b"\n".join([b"a0: &a0 {x: y}"] + [b"a%d: &a%d {<<: [%s]}" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 9)]),
            "too large",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(content: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Source(content, "k.yaml")


def test_merges_and_aliases_are_copies() -> None:
    found = read("a: &a {x: [1]}\nb: {<<: *a, y: 2}\nc: *a\n")
    assert found == {"a": {"x": ["1"]}, "b": {"x": ["1"], "y": "2"}, "c": {"x": ["1"]}}
    found["c"]["x"].append("z")
    assert found["a"] == {"x": ["1"]}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nope.yaml: No such file"):
        Source.read(tmp_path / "nope.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        Source.read(tmp_path)


def test_canonical_text_does_not_know_the_order_of_keys() -> None:
    assert canonical({"b": [1], "a": "é"}) == canonical({"a": "é", "b": [1]}) == '{"a":"é","b":[1]}'


@pytest.mark.parametrize(
    "value", ["!foo 'x'", "!foo x", "!!binary 'aGk='", "{!foo 'k': v}", "!foo |\n  x"]
)
def test_a_tag_on_a_scalar_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"the tag .* is not known here"):
        Source(f"a: {value}\n".encode(), "f")
