"""Copy on write: a version that was handed out never changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.workloads import Draft, InvalidObjectError, deep_copy, same

KEYS = st.sampled_from(["a", "b", "c"])
OBJECT = st.recursive(
    st.none() | st.integers(0, 2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict))
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["put", "drop", "edit", "deep", "checkpoint"]),
        st.lists(KEYS | st.integers(0, 2), min_size=1, max_size=3).map(tuple),
        st.integers(10, 12),
    ),
    max_size=12,
)


@given(OBJECT, EDITS)
def test_no_version_that_was_handed_out_changes(root: Any, edits: Any) -> None:
    draft = Draft(root)
    versions = [(root, copy.deepcopy(root))]
    for verb, path, value in edits:
        try:
            if verb == "put":
                draft.put(path, value)
            elif verb == "drop":
                draft.drop(path)
            elif verb == "checkpoint":
                version = draft.checkpoint()
                versions.append((version, copy.deepcopy(version)))
            else:
                edit = draft.edit if verb == "edit" else draft.edit_deep
                found = edit(path, dict if value % 2 else list)
                if isinstance(found, dict):
                    found["new"] = value
                    if verb == "deep":
                        for child in found.values():
                            if isinstance(child, dict):
                                child["below"] = value
                else:
                    found.append(value)
        except (InvalidObjectError, IndexError):
            continue  # no such place: it must be refused, and it must change no version either
    assert all(same(version, was) for version, was in versions)


def test_what_is_not_changed_is_shared_and_what_is_edited_twice_is_copied_once() -> None:
    root: Any = {"spec": {"a": {}, "b": {"c": 1}}, "metadata": {}}
    draft = Draft(root)
    first = draft.edit(("spec", "a"))
    first["x"] = 1
    assert draft.edit(("spec", "a")) is first
    new = draft.checkpoint()
    assert new["metadata"] is root["metadata"]
    assert new["spec"]["b"] is root["spec"]["b"]
    assert root["spec"]["a"] == {}
    assert draft.edit(("spec", "a")) is not first, "a closed version is not edited"


def test_missing_and_null_parents_are_made() -> None:
    draft = Draft({"spec": None})
    draft.edit(("spec", "template", "list"), list).append(1)
    assert draft.root == {"spec": {"template": {"list": [1]}}}


@pytest.mark.parametrize(
    ("root", "path", "message"),
    [
        ({"spec": 5}, ("spec", "a"), "spec: expected an object, found a number"),
        ({"spec": "x"}, ("spec", "a"), "spec: expected an object, found a string"),
        ({"spec": True}, ("spec", "a"), "spec: expected an object, found a boolean"),
        ({"spec": {"l": {}}}, ("spec", "l", 0), "spec.l: expected a list, found an object"),
        ({"spec": {"l": []}}, ("spec", "l", "k"), "spec.l: expected an object, found a list"),
    ],
)
def test_a_part_of_another_form_is_refused_with_its_path(
    root: Any, path: Any, message: str
) -> None:
    with pytest.raises(InvalidObjectError) as caught:
        Draft(root).edit(path)
    assert str(caught.value) == message


def test_reads_of_what_is_not_there_are_none() -> None:
    draft = Draft({"a": [{"b": 1}], "n": None})
    for path in (("x",), ("a", 1), ("a", -1), ("a", "b"), ("a", 0, "b", "c"), ("n", "x")):
        assert draft.get(path) is None
    assert draft.get(("a", 0, "b")) == 1


def test_keep_and_drop() -> None:
    draft = Draft({"a": [1, 2], "b": 1})
    draft.keep(("a",), [2])
    draft.drop(("b",))
    draft.drop(("b",))
    draft.drop(("x", "y"))
    assert draft.root == {"a": [2]}
    draft.keep(("a",), [])
    assert draft.root == {}


def test_a_closed_draft_refuses_changes_that_would_be_lost() -> None:
    draft = Draft({})
    draft.close()
    with pytest.raises(RuntimeError, match="out of date"):
        draft.edit(("a",))


def test_copies_share_nothing_and_break_aliases() -> None:
    shared: Any = {"x": [1]}
    copied = deep_copy({"a": shared, "b": shared})
    copied["a"]["x"].append(2)
    assert copied["b"] == {"x": [1]}
    assert shared == {"x": [1]}


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, True, False),
        (1, 1.0, False),
        ({"a": 1}, {"a": True}, False),
        ([1.0], [1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([{"a": None}], [{"a": None}], True),
        ({"a": None}, {}, False),
        ("1", 1, False),
    ],
)
def test_same_is_equal_in_type_too(a: Any, b: Any, equal: bool) -> None:
    assert same(a, b) is equal
    assert same(b, a) is equal
