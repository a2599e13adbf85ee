"""Real reviews, damaged: no crash, no patch that does not apply, no answer to another request."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.marks import EXECUTION_KEYS
from kubetailor.plugins.webhook.reviews import MalformedReviewError, dump, parse
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import deep_copy

from .conftest import NAMES, again, answer_of, object_of, patch_of, patched, review_of

CONFIG = """
phases: [launch, admit]
accelerators:
  a: {resource: nvidia.com/gpu, node_selector: {example.com/gpu: a}}
chains:
  default:
    defaults:
      - {use: priority_class, with: {name: batch-low}}
      - {use: shared_memory, with: {size_limit: 1Gi}}
    steps:
      - use: tolerations
        with: {add: [{key: spot, operator: Exists}], remove: [{key: example.com/x}]}
      - {use: node_selector, with: {set: {pool: ml}}}
      - {use: node_affinity, with: {require: [{key: zone, operator: In, values: [a]}]}}
      - {use: labels, with: {set: {team: platform}}, when: {domain: development}}
      - {use: annotations, with: {set: {note: text}, remove: [pa]}}
      - {use: env, with: {set: {DEBUG: "1"}}, when: {role: [worker, primary, head]}}
      - {use: gpu, with: {type: a}, when: {requests: nvidia.com/gpu}}
      - {use: kueue, with: {queue: team}, when: {kind: [PyTorchJob, RayJob, Pod]}}
    enforce:
      - {use: labels, with: {set: {cost-centre: speech}}}
"""

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.just(2**53 + 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just([{}]),
    st.just([[]]),
    st.just({"": None}),
    st.just({"name": "x"}),
    st.just({"labels": None, "annotations": {}}),
    st.just("spec"),
)


@pytest.fixture(scope="module")
def tailor(tmp_path_factory: pytest.TempPathFactory) -> Tailor:
    path: Path = tmp_path_factory.mktemp("fuzz") / "kubetailor.yaml"
    path.write_text(CONFIG)
    found = Tailor.find(path, environ={})
    assert found is not None
    return found


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of some JSON data."""
    found: list[tuple[Any, Any]] = []
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, child in pairs:
        if key != "managedFields":
            found += [(value, key), *places(child)]
    return found


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """The object of a real review after a few accidents."""
    obj: dict[str, Any] = deep_copy(object_of(review_of(draw(st.sampled_from(NAMES)))))
    for _ in range(draw(st.integers(0, 5))):
        found = places(obj)
        holder, key = found[draw(st.integers(0, 2**16)) % len(found)]
        accident = draw(st.sampled_from(["remove", "junk", "junk", "twice", "move"]))
        if accident == "remove":
            del holder[key]
        elif accident == "junk":
            holder[key] = deep_copy(draw(JUNK))
        elif isinstance(holder, list):
            holder.append(deep_copy(holder[key]))
        else:
            holder[draw(st.sampled_from(["metadata", "spec", "containers", "env", "labels"]))] = (
                holder[key] if accident == "move" else deep_copy(holder[key])
            )
        if not places(obj):
            break
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and draw(st.booleans()):
        text = st.one_of(
            st.text(max_size=12),
            st.just('{"chain": "default", "digest": "x", "done": 1}'),
            st.just('{"labels": ["team"], "annotations": ["note"]}'),
        )
        metadata["annotations"] = {STAMP: draw(text), EXECUTION_KEYS: draw(text)}
    found_object: dict[str, Any] = deep_copy(obj)
    return found_object


@given(obj=damaged())
def test_every_object_gets_an_answer_and_every_patch_applies(
    obj: dict[str, Any], tailor: Tailor
) -> None:
    review = again(review_of("pod-n0-0"), obj)
    decision = decide(review, tailor)
    response = answer_of(decision)
    assert response["uid"] == review["request"]["uid"]
    assert response["allowed"] == (decision.outcome != "denied")
    if decision.outcome == "denied":
        assert response["status"]["code"] in (400, 422)
        assert response["status"]["message"]
        assert "patch" not in response
        return
    after = patched(review, decision)
    if decision.outcome == "patched":
        second = decide(again(review, after), tailor)
        assert patch_of(second) == [], second


@given(data=st.data())
def test_any_bytes_are_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(dump(review_of(data.draw(st.sampled_from(NAMES)))))
    chance = random.Random(data.draw(st.integers()))
    for _ in range(data.draw(st.integers(1, 20))):
        body[chance.randrange(len(body))] = chance.randrange(256)
    with contextlib.suppress(MalformedReviewError):
        assert parse(bytes(body))["request"]["uid"]


@pytest.mark.parametrize("junk", [None, 1, "x", [], [1], {"a": 1}, True])
@pytest.mark.parametrize(
    "field", ["kind", "resource", "userInfo", "dryRun", "options", "oldObject"]
)
def test_the_rest_of_a_request_may_be_anything(field: str, junk: Any, tailor: Tailor) -> None:
    review = review_of("pod-n0-0")
    request = {**review["request"], field: junk}
    again_parsed = parse(dump({**review, "request": request}))
    assert decide(again_parsed, tailor).outcome == "patched"
