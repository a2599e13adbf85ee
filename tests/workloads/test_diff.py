"""`diff` and what is made of it, with the library jsonpatch as the oracle."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.workloads import apply_ops, diff, dotted, json_patch, same
from kubetailor.workloads.diff import pointer
from kubetailor.workloads.identity import IDENTITY

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, 0.5])
    | st.sampled_from(["", "a", "b", "1", "a/b", "m~n"])
)
KEYS = st.sampled_from(["a", "b", "spec", "a/b", "~", "m~0n", "x y", "", "0"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)

NAMED = st.fixed_dictionaries(
    {"name": st.sampled_from("abcd")},
    optional={"value": st.sampled_from(["1", "2"]), "image": st.sampled_from(["x", "y"])},
)
KEYED = st.fixed_dictionaries(
    {"spec": st.fixed_dictionaries({"containers": st.lists(NAMED, max_size=6)})}
)


@given(OBJECTS, OBJECTS)
def test_a_patch_applied_to_the_input_equals_the_output(old: Any, new: Any) -> None:
    given_old, given_new = copy.deepcopy(old), copy.deepcopy(new)
    patch = json_patch(old, new)
    assert same(jsonpatch.apply_patch(copy.deepcopy(old), patch), new)
    assert same(apply_ops(old, diff(old, new)), new)
    assert same(apply_ops(old, diff(old, new, whole_lists=True)), new)
    assert same(apply_ops(new, diff(new, old)), old), "the way back"
    assert (old, new) == (given_old, given_new), "neither is changed"
    assert bool(patch) is not same(old, new)


@given(KEYED, KEYED)
def test_the_same_for_lists_whose_entries_have_names(old: Any, new: Any) -> None:
    ops = diff(old, new)
    assert same(jsonpatch.apply_patch(copy.deepcopy(old), json_patch(old, new)), new)
    assert same(apply_ops(old, ops), new)
    for op in ops:
        if op.op == "replace":
            assert op.path[-1] != "name", "an entry is never changed into another by its parts"


@given(
    st.lists(st.sampled_from("abcdef"), unique=True),
    st.lists(st.sampled_from("abcdef"), unique=True),
)
def test_one_operation_for_each_named_entry_that_comes_or_goes(old: Any, new: Any) -> None:
    kept = [name for name in old if name in new]
    if kept != [name for name in new if name in old]:
        return  # moved: no fewest number is promised
    before = {"env": [{"name": name, "value": "x"} for name in old]}
    after = {"env": [{"name": name, "value": "x"} for name in new]}
    gone, come = len(old) - len(kept), len(new) - len(kept)
    assert max(gone, come) <= len(diff(before, after)) <= gone + come


@given(OBJECTS)
def test_what_is_equal_needs_no_operation(value: Any) -> None:
    assert diff(value, copy.deepcopy(value)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [(1, True), (True, 1), (1.0, 1), (0, False), ("1", 1), (None, False), ([], {}), (0.0, 0)],
)
def test_a_change_of_type_alone_is_a_change(old: Any, new: Any) -> None:
    for before, after in (({"a": old}, {"a": new}), ({"a": [old]}, {"a": [new]})):
        (op,) = diff(before, after)
        assert op.op == "replace"
        assert same(apply_ops(before, [op]), after)


def test_null_and_absent_are_different() -> None:
    assert json_patch({"a": None}, {}) == [{"op": "remove", "path": "/a"}]
    assert json_patch({}, {"a": None}) == [{"op": "add", "path": "/a", "value": None}]


@pytest.mark.parametrize(
    ("old", "new", "ops"),
    [
        pytest.param("ab", "abc", ["add /2"], id="append"),
        pytest.param("bc", "abc", ["add /0"], id="insert"),
        pytest.param("abc", "bc", ["remove /0"], id="remove the first"),
        pytest.param("abc", "ac", ["remove /1"], id="remove one between"),
        pytest.param("abcd", "cd", ["remove /0", "remove /0"], id="remove two"),
        pytest.param("a", "b", ["replace /0"], id="another in its place"),
        pytest.param("ab", "xb", ["replace /0"], id="another beside one that stays"),
    ],
)
@pytest.mark.parametrize("field", ["containers", "tolerations", "env", "volumeMounts", "words"])
def test_the_fewest_operations(field: str, old: str, new: str, ops: list[str]) -> None:
    def entries(letters: str) -> list[Any]:
        if field == "words":
            return list(letters)
        own = (
            "key" if field == "tolerations" else "mountPath" if field == "volumeMounts" else "name"
        )
        return [{own: letter, "x": f"of {letter}"} for letter in letters]

    patch = json_patch({field: entries(old)}, {field: entries(new)})
    assert [f"{op['op']} {op['path'].removeprefix('/' + field)}" for op in patch] == ops


def test_an_entry_that_moves_up_while_it_changes_is_still_known_by_its_name() -> None:
    old = {"containers": [{"name": "istio-proxy", "image": "i"}, {"name": "main", "image": "a"}]}
    new = {"containers": [{"name": "main", "image": "b"}]}
    assert json_patch(old, new) == [
        {"op": "remove", "path": "/containers/0"},
        {"op": "replace", "path": "/containers/0/image", "value": "b"},
    ]


def test_an_entry_inserted_before_one_that_changes() -> None:
    old = {"env": [{"name": "URL", "value": "a"}]}
    new = {"env": [{"name": "IP", "value": "1"}, {"name": "URL", "value": "b"}]}
    assert json_patch(old, new) == [
        {"op": "add", "path": "/env/0", "value": {"name": "IP", "value": "1"}},
        {"op": "replace", "path": "/env/1/value", "value": "b"},
    ]


def test_lists_whole_for_the_way_back() -> None:
    old, new = {"a": [1, 2], "b": {"c": 1}}, {"a": [1], "b": {"c": 2}}
    assert [(op.op, op.path, op.new) for op in diff(old, new, whole_lists=True)] == [
        ("replace", ("a",), [1]),
        ("replace", ("b", "c"), 2),
    ]


def test_shared_parts_are_not_walked() -> None:
    class Guarded(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("walked a part that both share")

    shared = Guarded(a=1)
    assert diff({"x": shared, "y": 1}, {"x": shared, "y": 2})[0].path == ("y",)


def test_long_lists_take_linear_time() -> None:
    # 20,000 entries that differ in all: a quadratic look-ahead would take minutes.
    old = {"args": [f"a{i}" for i in range(20_000)]}
    new = {"args": [f"b{i}" for i in range(20_001)]}
    assert len(diff(old, new)) == 20_001


@given(st.lists(st.sampled_from(["a", "b/c", "~", "~1", "", 0, 7]), max_size=4))
def test_pointers_are_as_rfc_6901_says(path: Any) -> None:
    assert jsonpatch.JsonPointer(pointer(tuple(path))).parts == [str(key) for key in path]


def test_paths_are_written_as_people_write_them() -> None:
    assert dotted(("spec", "containers", 0, "env")) == "spec.containers[0].env"
    assert dotted(("metadata", "labels", "a/b")) == "metadata.labels['a/b']"
    assert dotted(("x-vendor", "under_score")) == "x-vendor.under_score"
    assert dotted(()) == ""


def test_every_list_identity_takes_an_empty_entry() -> None:
    for key in IDENTITY.values():
        key({})
