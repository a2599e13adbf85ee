"""What is read as a review, and what an answer may hold."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from kubetailor.plugins.webhook import reviews
from kubetailor.plugins.webhook.reviews import MalformedReviewError, parse

GOOD: dict[str, Any] = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "1", "operation": "CREATE", "object": {}},
}


def sent(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def asked(**changes: Any) -> bytes:
    return sent(request={**GOOD["request"], **changes})


def test_a_review_is_read() -> None:
    assert parse(sent())["request"]["uid"] == "1"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"kind": NaN}', "no JSON"),
        (b'{"kind": -Infinity}', "no JSON"),
        (b'{"kind": "\xff"}', "no JSON"),
        (b"{} {}", "no JSON"),
        (b"\xef\xbb\xbf{}", "no JSON"),
        (b"[]", "found 'list'"),
        (b"{}", "found None"),
        (sent(kind="Pod"), "found 'Pod'"),
        (sent(apiVersion="admission.k8s.io/v1beta1"), "v1beta1"),
        (sent(request=None), "`request`"),
        (sent(request=[]), "`request`"),
        (asked(uid=""), "request.uid"),
        (asked(uid=7), "request.uid"),
        (asked(operation=None), "request.operation"),
        (asked(namespace=1), "request.namespace"),
        (asked(object=None), "request.object"),
        (asked(object="pod"), "request.object"),
    ],
)
def test_what_is_no_review_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(MalformedReviewError, match=r".") as raised:
        parse(body)
    assert reason in str(raised.value)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("1", 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615", 2**64 - 1),
        ("1.0", 1.0),
        ("1e2", 100.0),
        ('"\\u0000"', "\0"),
        ('"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        ('{"a": 1, "a": 2}', {"a": 2}),  # as the API server reads it
        ("[" * 200 + "]" * 200, None),
    ],
)
def test_values_are_read_as_they_are_written_with_and_without_orjson(
    value: str, read: Any, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = reviews
    if not fast:
        monkeypatch.setitem(sys.modules, "orjson", None)
        module = types.ModuleType("without_orjson")
        exec(Path(reviews.__file__).read_text(), module.__dict__)
    body = sent().replace(b'"object": {}', f'"object": {{"x": {value}}}'.encode())
    found = module.parse(body)["request"]["object"]["x"]
    if read is not None:
        assert (type(found), found) == (type(read), read)
    assert json.loads(module.dump(found)) == found
    with pytest.raises(module.MalformedReviewError, match="no JSON"):
        module.parse(body.replace(value.encode(), b"NaN"))


def test_what_is_nested_too_deep_to_be_written_is_told_apart() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(RecursionError):
        reviews.dump(deep)
    with pytest.raises(TypeError):
        reviews.dump({1, 2})


def test_only_what_is_created_needs_an_object() -> None:
    assert parse(asked(operation="DELETE", object=None))["request"]["operation"] == "DELETE"


def test_warnings_fit_what_the_api_server_takes() -> None:
    # https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
    many = [f"{number} " + "x" * 300 for number in range(30)] + ["two\nlines"]
    shown = reviews.allowed("1", warnings=many).get("warnings", [])
    assert all(len(text) <= 256 for text in shown)
    assert 3500 < sum(map(len, shown)) <= 4096
    twice = reviews.allowed("1", warnings=["two\nlines", "two\nlines"])
    assert twice.get("warnings") == ["two lines"]


def test_an_answer_without_a_change_has_no_patch() -> None:
    assert reviews.allowed("1") == {"uid": "1", "allowed": True}
