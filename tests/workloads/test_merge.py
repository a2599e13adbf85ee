"""Laying a patch over a pod."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.workloads import CannotChangeError, ConflictError, Draft
from kubetailor.workloads.merge import merge


def merged(obj: Any, patch: Any, *, replace: bool = False) -> Any:
    given_obj, given_patch = copy.deepcopy(obj), copy.deepcopy(patch)
    draft = Draft(obj)
    merge(draft, (), patch, replace=replace)
    after = draft.checkpoint()
    assert (obj, patch) == (given_obj, given_patch), "neither is changed"
    merge(draft, (), patch, replace=replace)
    assert draft.checkpoint() is after, "a second time changes nothing"
    return after


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="maps"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null deletes"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="null in what is new"),
        pytest.param({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}, id="args are atomic"),
        pytest.param({"a": 1}, {"a": True}, {"a": True}, id="types"),
        pytest.param({"a": None}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="over null"),
        pytest.param(
            {"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}, id="an empty map changes nothing"
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
            {"containers": [{"name": "b", "image": "y"}]},
            {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]},
            id="containers by name",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "b", "image": "y", "tty": None}]},
            {"containers": [{"name": "a"}, {"name": "b", "image": "y"}]},
            id="a new container",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "value": "v"}]},
            {"tolerations": [{"key": "a", "operator": "Equal", "value": "v"}, {"key": "b"}]},
            {"tolerations": [{"key": "a", "value": "v"}, {"key": "b"}]},
            id="a toleration in another spelling",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "v", "mountPath": "/v/"}]},
            {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            {"volumeMounts": [{"name": "v", "mountPath": "/v/"}]},
            id="a mount in another spelling",
        ),
        pytest.param(
            {"env": [{"name": "U", "value": "$(N)"}, {"name": "P", "value": "x"}]},
            {
                "env": [
                    {"name": "N", "value": "1"},
                    {"name": "P", "value": None, "valueFrom": {"a": 1}},
                ]
            },
            {
                "env": [
                    {"name": "N", "value": "1"},
                    {"name": "U", "value": "$(N)"},
                    {"name": "P", "valueFrom": {"a": 1}},
                ]
            },
            id="env: order and union",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80}]},
            {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}]},
            {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}]},
            id="ports",
        ),
    ],
)
def test_the_rules(before: Any, patch: Any, after: Any) -> None:
    assert merged(before, patch) == after


@pytest.mark.parametrize(
    ("field", "there", "other"),
    [
        ("volumes", {"name": "v", "emptyDir": {}}, {"name": "v", "hostPath": {"path": "/"}}),
        ("volumeMounts", {"name": "v", "mountPath": "/d"}, {"name": "w", "mountPath": "/d/"}),
        (
            "tolerations",
            {"key": "k", "effect": "NoExecute", "tolerationSeconds": 1},
            {"key": "k", "effect": "NoExecute", "tolerationSeconds": 2},
        ),
    ],
)
def test_other_content_is_a_conflict_unless_replace_is_asked_for(
    field: str, there: Any, other: Any
) -> None:
    with pytest.raises(ConflictError, match=rf"{field}\[0\].*ask for `replace`"):
        merged({field: [there]}, {field: [other]})
    assert merged({field: [there]}, {field: [other]}, replace=True) == {field: [other]}


def test_a_container_that_is_not_there_is_no_new_one() -> None:
    with pytest.raises(CannotChangeError, match="no container 'b' to patch; the containers are a"):
        merged({"containers": [{"name": "a"}]}, {"containers": [{"name": "b", "tty": True}]})


MAPS = st.recursive(
    st.none() | st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict))


def rfc_7386(target: Any, patch: Any) -> Any:
    """JSON Merge Patch, which maps and lists without identity follow."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and not value and isinstance(found.get(key), dict):
            continue
        else:
            found[key] = rfc_7386(found.get(key), value)
    return found


@given(MAPS, MAPS)
def test_maps_merge_as_a_json_merge_patch_does(obj: Any, patch: Any) -> None:
    assert merged(obj, patch) == rfc_7386(obj, patch)
