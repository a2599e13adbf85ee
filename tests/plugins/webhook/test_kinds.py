"""Objects of every kind of the table, as the webhook decides them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.webhook.reviews import AdmissionReview, parse
from kubetailor.workloads import BUILTIN_KINDS, KindTable, Workload

from .conftest import answer_of, patch_of, patched

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "reference" / "examples" / "kinds"
TABLE = KindTable(BUILTIN_KINDS)
OBJECTS = {
    f"{obj['kind']}-{obj['apiVersion'].partition('/')[0]}": obj
    for path in sorted(FOLDER.glob("*.yaml"))
    if "apiVersion" in (obj := yaml.safe_load(path.read_text()))
}
CHAIN = """
    steps:
    - {use: tolerations, with: {add: [{key: spot, operator: Exists}]}}
    - {use: kueue, with: {queue: team}, optional: true}
    enforce: [{use: node_selector, with: {set: {pool: speech}}}]
"""
QUEUE = "kueue.x-k8s.io/queue-name"


def review_of(obj: Any, **metadata: Any) -> AdmissionReview:
    group, _, version = obj["apiVersion"].rpartition("/")
    request = {
        "uid": "u",
        "operation": "CREATE",
        "namespace": "speech",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "object": {**obj, "metadata": {**obj["metadata"], "namespace": "speech", **metadata}},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return parse(json.dumps(review).encode())


def workload_of(obj: Any) -> Workload:
    kind = TABLE.of(obj)
    assert kind is not None
    return Workload(obj, kind)


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_tailored_once(name: str, decide_with: Any) -> None:
    review = review_of(OBJECTS[name])
    decision = decide_with(review, CHAIN)
    assert (decision.outcome, answer_of(decision)["allowed"]) == ("patched", True)
    after = patched(review, decision)
    workload = workload_of(after)
    for pod in workload.pods():
        assert pod.node_selector == {"pool": "speech"}
        if pod.has_metadata:
            assert STAMP in pod.annotations
    if (owner := workload.queue_owner) is not None:
        assert owner.labels[QUEUE] == "team"
    assert patch_of(decide_with(review_of(after), CHAIN)) == []


@pytest.mark.parametrize("name", OBJECTS)
def test_a_child_gets_no_queue(name: str, decide_with: Any) -> None:
    owner = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "name": "a"}
    review = review_of(OBJECTS[name], ownerReferences=[{**owner, "uid": "1", "controller": True}])
    decision = decide_with(review, CHAIN)
    assert decision.outcome == "patched"
    after = patched(review, decision)
    assert QUEUE not in json.dumps(after)
    assert patch_of(decide_with(review_of(after), CHAIN)) == []


def test_what_is_wrapped_and_not_known_is_denied(decide_with: Any) -> None:
    run = {"apiVersion": "acme.io/v1", "kind": "Run", "spec": {"containers": [{"name": "c"}]}}
    obj = {
        **OBJECTS["AppWrapper-workload.codeflare.dev"],
        "spec": {"components": [{"template": run}]},
    }
    decision = decide_with(review_of(obj), CHAIN)
    status = answer_of(decision)["status"]
    assert decision.outcome == "denied"
    assert "the kind Run of acme.io/v1 is not known" in status["message"]
    assert status["code"] in (400, 422)
