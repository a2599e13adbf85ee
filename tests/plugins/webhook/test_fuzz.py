"""Real reviews, damaged: no crash, no patch that does not apply, no answer to another request."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.decision import Decision
from kubetailor.plugins.webhook.reviews import MalformedReviewError, dump, parse
from kubetailor.registry.tailor import Tailor

from . import fuzz
from .conftest import NAMES, patch_of, review_of


@given(
    chance=st.randoms(use_true_random=False, note_method_calls=False),
    config=st.sampled_from(sorted(fuzz.CONFIGS)),
)
def test_every_object_gets_an_answer_and_every_patch_applies(
    chance: random.Random, config: str
) -> None:
    fuzz.check(fuzz.damaged(chance), fuzz.tailors()[config])


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
def test_the_rest_of_a_request_may_be_anything(field: str, junk: Any) -> None:
    review = review_of("pod-n0-0")
    request = {**review["request"], field: junk}
    again_parsed = parse(dump({**review, "request": request}))
    assert decide(again_parsed, fuzz.tailors()["whole"]).outcome == "patched"


# the command -----------------------------------------------------------------------------------


def test_a_run_is_the_same_for_a_seed_however_it_is_shared_out(tmp_path: Path) -> None:
    script = [sys.executable, str(Path(fuzz.__file__)), "--reviews", "600", "--seed", "7"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ended = []
    for processes in ("1", "2"):
        done = subprocess.run(
            [*script, "--processes", processes],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        ended.append(re.sub("[0-9]+ a second", "", done.stdout.splitlines()[-1]))
    assert ended[0] == ended[1]
    assert ended[0].startswith("600 reviews, ")
    for outcome in ("patched", "denied", "malformed", "ignored"):
        assert outcome in ended[0]
    assert not list(tmp_path.iterdir())


def test_a_run_ends_in_time(tmp_path: Path) -> None:
    done = fuzz.run(10**9, 0.5, 7, 1, tmp_path / "f.json")
    assert done is not None
    assert 0 < done.total() < 10**6


def with_patch(decision: Decision, *operations: dict[str, Any]) -> Decision:
    text = base64.b64encode(dump([*patch_of(decision), *operations])).decode()
    response: Any = {**decision.response, "patchType": "JSONPatch", "patch": text}
    return replace(decision, response=response, outcome="patched")


Damage = Callable[[Any, Decision], Decision]


def crash(review: Any, decision: Decision) -> Decision:
    raise ZeroDivisionError


def mistake(review: Any, decision: Decision) -> Decision:
    response: Any = {**decision.response, "uid": "another"}
    return replace(decision, response=response)


def scribble(review: Any, decision: Decision) -> Decision:
    review["request"]["object"] = {}
    return decision


def forbid(review: Any, decision: Decision) -> Decision:
    status: Any = {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}
    response: Any = {"uid": review["request"]["uid"], "allowed": False, "status": status}
    return replace(decision, response=response, outcome="denied")


FAULTS: list[tuple[str, Damage]] = [
    ("ZeroDivisionError", crash),
    ("another request", mistake),
    ("the review itself", scribble),
    ("a denial of", forbid),
    ("JsonPatchPathNotFound", lambda r, d: with_patch(d, {"op": "remove", "path": "/nowhere"})),
    ("kind was", lambda r, d: with_patch(d, {"op": "add", "path": "/kind", "value": "X"})),
    ("status was", lambda r, d: with_patch(d, {"op": "add", "path": "/status", "value": 1})),
    (
        "metadata.uid was",
        lambda r, d: with_patch(d, {"op": "add", "path": "/metadata/uid", "value": "1"}),
    ),
    ("the second time", lambda r, d: with_patch(d, {"op": "add", "path": "/x", "value": 1})),
]


@pytest.mark.parametrize(("reason", "damage"), FAULTS)
def test_a_fault_is_found_and_can_be_run_again(
    reason: str, damage: Damage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(review: Any, tailor: Tailor) -> Decision:
        decision = decide(review, tailor)
        return damage(review, decision) if decision.response["allowed"] else decision

    file = tmp_path / "failure.json"
    with monkeypatch.context() as patch:
        patch.setattr(fuzz, "decide", faulty)
        found = ["--reviews", "500", "--seed", "1", "--reproducer", str(file)]
        assert fuzz.main(found) == 1
        assert reason in json.loads(file.read_text())["reason"]
        assert fuzz.main(["--reproduce", str(file)]) == 1
    assert fuzz.main(["--reproduce", str(file)]) == 0


def test_a_patch_of_what_is_not_created_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    review = review_of("pod-n0-0")
    request: Any = {**review["request"], "operation": "UPDATE"}

    def faulty(review: Any, tailor: Tailor) -> Decision:
        return with_patch(decide(review, tailor), {"op": "add", "path": "/x", "value": 1})

    monkeypatch.setattr(fuzz, "decide", faulty)
    with pytest.raises(fuzz.Fault, match="not created"):
        fuzz.check(dump({**review, "request": request}), fuzz.tailors()["whole"])
