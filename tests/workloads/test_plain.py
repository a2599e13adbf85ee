"""What code that is not ours may leave in an object: plain JSON data, and the same object."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable
from typing import Any

import pytest

from kubetailor.workloads import BUILTIN_KINDS, InvalidObjectError, KindTable, Workload, check_json


class Text(str, enum.Enum):
    A = "a"


def itself() -> Any:
    found: dict[str, Any] = {}
    found["x"] = [found]
    return found


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1, 2}, r"spec\.x: expected JSON data .*found set"),
        ((1, 2), r"spec\.x: .*found tuple"),
        (b"a", r"spec\.x: .*found bytes"),
        (object(), r"spec\.x: .*found object"),
        (Text.A, r"spec\.x: .*found Text"),
        (collections.OrderedDict(), r"spec\.x: .*found OrderedDict"),
        (float("nan"), r"spec\.x: nan is no number"),
        ([{"y": float("inf")}], r"spec\.x\[0\]\.y: inf is no number"),
        (2**64, r"spec\.x: an integer of 65 bits"),
        (-(2**63) - 1, r"spec\.x: an integer of 64 bits"),
        (10**5000, r"spec\.x: an integer of 16610 bits"),
        ({1: 2}, r"spec\.x: the key 1 is no str, but of type int"),
        ("\ud800", r"spec\.x: '\\ud800' in a text is no Unicode"),
        ({"\ud800": 1}, r"spec\.x: '\\ud800' in a text is no Unicode"),
        (itself(), r"spec\.x.*nested more than 100 deep, or in itself"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_json_data_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(InvalidObjectError, match=message):
        check_json({"spec": {}}, {"spec": {"x": value}})


def test_json_data_and_what_was_there_before_pass() -> None:
    odd = {"x": (1, 2), "y": [float("nan"), {3}]}
    good: Any = {"a": [1, 1.5, True, None, "ä🎉", {"b": []}]}
    check_json({"spec": odd, "list": odd["y"]}, {"spec": odd, "list": [*odd["y"], 1], **good})
    check_json(None, good)


POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "n", "labels": {"a": "b"}},
    "spec": {"containers": []},
}
TASK: dict[str, Any] = {"id": {"name": "t"}, "type": "spark", "container": {"image": "i"}}


@pytest.mark.parametrize(
    ("obj", "field", "change"),
    [
        (POD, "apiVersion", lambda o: o.clear()),
        (POD, "apiVersion", lambda o: o.update(apiVersion="v2")),
        (POD, "kind", lambda o: o.pop("kind")),
        (POD, "metadata.name", lambda o: o["metadata"].update(name="q")),
        (POD, "metadata.name", lambda o: o.pop("metadata")),
        (POD, "metadata.namespace", lambda o: o["metadata"].pop("namespace")),
        (POD, "metadata.generateName", lambda o: o["metadata"].update(generateName="p-")),
        (TASK, "id", lambda o: o["id"].update(name="u")),
        (TASK, "id", lambda o: o.clear()),
        (TASK, "type", lambda o: o.update(type="ray")),
    ],
)
def test_no_step_changes_what_the_object_is(
    obj: dict[str, Any], field: str, change: Callable[[Any], None]
) -> None:
    kind = KindTable(BUILTIN_KINDS).of(obj)
    assert kind is not None
    workload = Workload(obj, kind)
    change(workload.edit())
    with pytest.raises(InvalidObjectError, match=r"may not change what the object is") as caught:
        workload.commit()
    assert caught.value.field == field
    workload.reset(obj)
    workload.label("c", "d")
    assert workload.commit() != obj
