"""Manifests in and out, as kubectl reads them."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.workloads import DocumentError, dump_json, dump_yaml, load_documents, same


def load(text: str) -> list[Any]:
    return [document.obj for document in load_documents(text.encode(), "f.yaml")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON")),
        *((word, False) for word in ("false", "no", "No", "NO", "off", "Off")),
        *((word, None) for word in ("null", "Null", "NULL", "~", "")),
        *(
            (word, word)
            for word in ("y", "n", "Y", "N", "tRue", "nO", "12:30", "2026-01-01", "1.2.3")
        ),
        *((word, word) for word in ("1Gi", "500m", "0x", "=", "NaN", "inf", "+", ".", "1_")),
        ("'yes'", "yes"),
        ('"1"', "1"),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("0755", 493),
        ("0o755", 493),
        ("0x1F", 31),
        ("-0x1F", -31),
        ("0b11", 3),
        ("1_000", 1000),
        ("1.10", 1.1),
        ("1e3", 1000),
        (".5", 0.5),
        ("-.5", -0.5),
        ("!!str 1", "1"),
        ("!!int '1'", 1),
        ("|\n    a\n    b\n", "a\nb\n"),
    ],
)
def test_scalars_are_read_as_kubectl_reads_them(text: str, value: Any) -> None:
    if text == "1_":
        value = 1
    (obj,) = load(f"x:\n  a: {text}\n")
    assert same(obj, {"x": {"a": value}})


def test_keys_are_text() -> None:
    assert load("1: a\ntrue: b\nnull: c\n1.10: d\n'2': e\n") == [
        {"1": "a", "true": "b", "null": "c", "1.10": "d", "2": "e"}
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2", r"f.yaml:2:2: not YAML: did not find expected"),
        ("a:\n  b: 1\n c: 2", r"f.yaml:3:\d: not YAML"),
        ("a: 1\nb: 2\na: 3", r"f.yaml:3:1: not YAML: the key 'a' is there twice"),
        ("a: {b: 1, b: 2}", r"f.yaml:1:11: not YAML: the key 'b' is there twice"),
        ("? [a]\n: b", r"f.yaml:1:3: not YAML: a key must be a string"),
        ("a: *nope", r"f.yaml:1:4: not YAML: found undefined alias"),
        ("a: .inf", r"f.yaml:1:4: not YAML: .inf has no form in JSON"),
        ("a: .NaN", r"f.yaml:1:4: not YAML: .NaN has no form in JSON"),
        ("a: 1e999", r"f.yaml:1:4: not YAML: 1e999 has no form in JSON"),
        ('{"a": 1e999}', r"f.yaml:1:7: not YAML: 1e999 has no form in JSON"),
        ("a: !!binary aGk=", r"f.yaml:1:4: the tag .*binary' has no form in JSON"),
        ("a: !Ref x", r"f.yaml:1:4: the tag '!Ref' has no form in JSON"),
        ("a: !!python/object/apply:os.system [true]", r"f.yaml:1:4: "),
        ("<<: 1", r"f.yaml:1:5: not YAML: `<<` takes a map or a list of maps"),
        ("- a", r"f.yaml:1: expected an object, found a list"),
        ("a", r"f.yaml:1: expected an object, found a string"),
        ("---\na: 1\n---\n7", r"f.yaml:4: expected an object, found a number"),
        (
            "kind: List\nitems: [1]",
            r"f.yaml:1: item 0 of the List: expected an object, found a number",
        ),
        (
            "kind: List\nitems: {a: b}",
            r"f.yaml:1: `items` of a List: expected a list, found an object",
        ),
        (
            '{"kind": "List", "items": null}',
            r"f.yaml:1: `items` of a List: expected a list, found nothing",
        ),
        (
            "kind: List\nitems: [{kind: List, items: [1]}]",
            r"f.yaml:1: item 0.0 of the List: expected an object, found a number",
        ),
        (
            "kind: List\nitems: [{kind: PodList, items: a}]",
            r"f.yaml:1: item 0 of the List: `items` of a PodList: expected a list, found a string",
        ),
        ("\x00", r"f.yaml: not YAML"),
        ("&a {x: *a}", r"f.yaml:1:1: nested more than 100 deep"),
        ("{a: " * 101 + "1" + "}" * 101, r"f.yaml:1:\d+: nested more than 100 deep"),
        (json.dumps({"a": eval("[" * 101 + "]" * 101)}), r"f.yaml: nested more than 100 deep"),
        ("[" * 100_000, r"f.yaml"),
        ("a: " + "[" * 5_000, r"f.yaml"),
        (
            "a: " + "9" * 5_000,
            r"f.yaml:1:4: not YAML: an integer of 5000 digits; at most 64 bits are read$",
        ),
        ("a: -0x" + "f" * 5_000, r"f.yaml:1:4: not YAML: an integer of 5003 digits"),
        ('{"a": ' + "9" * 5_000 + "}", r"f.yaml:1:7: not YAML: an integer of 5000 digits"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        load(text)


def test_bytes_that_are_not_utf_8() -> None:
    with pytest.raises(DocumentError, match=r"f.yaml:2: not UTF-8 \(byte 0xff\)"):
        load_documents(b"a: 1\nb: \xff", "f.yaml")
    assert load_documents(b"\xef\xbb\xbfa: 1", "-")[0].obj == {"a": 1}


def test_a_file_that_is_too_large() -> None:
    with pytest.raises(DocumentError, match="at most 16777216"):
        load_documents(b" " * (16 * 1024 * 1024 + 1), "f.yaml")


@pytest.mark.parametrize("merge", [False, True])
def test_billion_laughs(merge: bool) -> None:
    lines = ["x0: &x0 {" + ", ".join(f"k{i}: lol" for i in range(10)) + "}"]
    for depth in range(1, 10):
        aliases = ", ".join([f"*x{depth - 1}"] * 10)
        value = f"{{<<: [{aliases}]}}" if merge else f"[{aliases}]"
        lines.append(f"x{depth}: &x{depth} {value}")
    with pytest.raises(DocumentError, match="once aliases are expanded"):
        load("\n".join(lines))


def test_anchors_and_merges_share_nothing() -> None:
    (obj,) = load(
        "base: &b {name: main, res: &r {cpu: 1}}\n"
        "other: {<<: *b, name: helper}\n"
        "late: {name: late, <<: [{name: x, own: 1}, *b], own: 2}\n"
        "again: *r\n"
        "quoted: {'<<': 1}\n"
    )
    assert obj == {
        "base": {"name": "main", "res": {"cpu": 1}},
        "other": {"name": "helper", "res": {"cpu": 1}},
        "late": {"name": "late", "own": 2, "res": {"cpu": 1}},
        "again": {"cpu": 1},
        "quoted": {"<<": 1},
    }
    obj["again"]["cpu"] = 2
    assert obj["base"]["res"] == obj["other"]["res"] == {"cpu": 1}


def test_streams_lists_and_json() -> None:
    text = "# nothing\n---\na: 1\n---\n---\nkind: List\nitems:\n- {kind: Pod}\n- {kind: Job}\n"
    found = load_documents(text.encode(), "f.yaml")
    assert [(d.obj, d.where) for d in found] == [
        ({"a": 1}, "f.yaml:3"),
        ({"kind": "Pod"}, "f.yaml:6 (item 0 of the List)"),
        ({"kind": "Job"}, "f.yaml:6 (item 1 of the List)"),
    ]
    assert load('{"a": [1, 1.0, true, null, "yes"]}') == [{"a": [1, 1.0, True, None, "yes"]}]
    assert load('{"kind": "PodList", "items": [{"kind": "Pod"}]}') == [{"kind": "Pod"}]
    assert load("{a: yes}") == [{"a": True}], "YAML's flow style starts as JSON does"
    assert load("") == load("# c") == load("---\n---\n") == []


def test_lists_in_lists_are_flattened_as_kubectl_does() -> None:
    """cli-runtime, pkg/resource/visitor.go, `FlattenListVisitor`: what is nested comes last."""
    empty: Any = {"kind": "List", "items": []}
    inner: Any = {
        "kind": "PodList",
        "items": [{"kind": "A"}, {"kind": "List", "items": [{"kind": "C"}]}],
    }
    whole = {
        "kind": "List",
        "items": [inner, {"kind": "B"}, {"kind": "List", "items": [empty, {"kind": "D"}]}],
    }
    found = load_documents(json.dumps(whole).encode(), "f")
    assert [(document.obj["kind"], document.where) for document in found] == [
        ("B", "f:1 (item 1 of the List)"),
        ("A", "f:1 (item 0.0 of the List)"),
        ("D", "f:1 (item 2.1 of the List)"),
        ("C", "f:1 (item 0.1.0 of the List)"),
    ]
    # An object of a kind that is called so, and one that has items of its own.
    assert load("{kind: AllowList, spec: {}}") == [{"kind": "AllowList", "spec": {}}]
    (own,) = load("{kind: List, items: [{kind: Own, items: {a: 1}}]}")
    assert own == {"kind": "Own", "items": {"a": 1}}


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["yes", "no", "on", "off", "true", "null", "~", "y", "n", "0755", "0o17", "0x1f", "1_000", "1e3", "1.10", ".5", "5.", "12:30:45", "2026-01-01", "<<", "=", "-", ".inf", ".NaN", "#", ":", "?", "|", ">", "&", "*", "!", "%", "@", "`", "0b1", "+1", "-1", "+.5", "1E5", "0.", "NULL", "True"]
) | st.sampled_from(["", " ", "a: b", "a #b", "- x", "\n", "a\n", "\na", " a\nb ", "a\tb", "x\r\ny", "\u2028", "\x85", "\ufeff", "a" * 200 + " " + "b" * 2000])  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


class Core12(yaml.SafeLoader):
    """YAML 1.2's core schema (https://yaml.org/spec/1.2.2/#103-core-schema), written down anew."""


Core12.yaml_implicit_resolvers = {}
for tag, pattern in {
    "null": r"null|Null|NULL|~|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN",
}.items():
    Core12.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}", __import__("re").compile(rf"^(?:{pattern})$"), None
    )
Core12.add_constructor(
    "tag:yaml.org,2002:int",
    lambda loader, node: int(node.value, 0) if node.value[:2] in ("0o", "0x") else int(node.value),
)
Core12.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


@given(VALUES)
def test_what_is_written_is_read_back_by_every_yaml(value: Any) -> None:
    obj = {"x": value}
    text = dump_yaml([obj])
    assert same(load(text), [obj]), text
    assert same(yaml.load(text, Core12), obj), text
    if "<<" not in str(value) and "=" not in str(value):  # PyYAML has no way to write them as keys
        assert same(yaml.safe_load(text), obj), text
    assert same(json.loads(dump_json([obj])), obj)


@given(st.lists(st.dictionaries(TEXT, VALUES, max_size=3), min_size=1, max_size=3))
def test_a_stream_is_read_back_as_a_stream(objects: Any) -> None:
    objects = [{"kind": "x", **obj} for obj in objects]
    assert same(load(dump_yaml(objects)), objects)


def test_no_anchors_are_written_and_the_order_of_keys_is_kept() -> None:
    shared = {"z": 1, "a": 2}
    text = dump_yaml([{"b": shared, "a": shared}, {"c": [shared]}])
    assert text == "b:\n  z: 1\n  a: 2\na:\n  z: 1\n  a: 2\n---\nc:\n- z: 1\n  a: 2\n"


def test_several_objects_as_json_are_a_list() -> None:
    assert json.loads(dump_json([{"a": 1}, {"b": 2}])) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": [{"a": 1}, {"b": 2}],
    }
    assert math.isclose(json.loads(dump_json([{"a": 0.1}]))["a"], 0.1)


def test_json_texts_one_after_another_are_objects_of_their_own() -> None:
    data = b'{"kind": "A"}\n{"kind":\n "B"} {"kind": "C"}\n'
    found = [(document.line, document.obj["kind"]) for document in load_documents(data, "f")]
    assert found == [(1, "A"), (2, "B"), (3, "C")]
