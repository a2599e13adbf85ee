"""A review in, an answer out, in one process; against parsing it and saying yes with orjson."""

from __future__ import annotations

from typing import Any

import orjson

from benchmarks.measure import Plan, batch, ratio
from benchmarks.objects import CONFIG, config, training_pod
from benchmarks.rows import Row
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.reviews import answer, dump, parse
from kubetailor.registry.tailor import Tailor

__all__ = ["ROWS", "noop", "review", "webhook_config"]

_FLYTE_ENV = {
    "FLYTE_INTERNAL_EXECUTION_ID": "ahfk2p5kdl4tq",
    "FLYTE_INTERNAL_EXECUTION_PROJECT": "speech",
    "FLYTE_INTERNAL_EXECUTION_DOMAIN": "development",
    "FLYTE_INTERNAL_EXECUTION_WORKFLOW": "speech:development:pipelines.speech.nightly",
    "FLYTE_INTERNAL_TASK_NAME": "pipelines.speech.train_acoustic_model",
    "FLYTE_INTERNAL_TASK_VERSION": "v42",
}
"""What FlytePropeller puts into every container: by it the webhook knows the task."""


def review() -> bytes:
    """The review of the training pod, as the API server sends it."""
    pod = training_pod()
    env = pod["spec"]["containers"][0]["env"]
    env[-len(_FLYTE_ENV) :] = [{"name": n, "value": v} for n, v in _FLYTE_ENV.items()]
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return orjson.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
                "kind": kind,
                "resource": resource,
                "requestKind": kind,
                "requestResource": resource,
                "name": pod["metadata"]["name"],
                "namespace": pod["metadata"]["namespace"],
                "operation": "CREATE",
                "userInfo": {"username": "system:serviceaccount:flyte:flytepropeller"},
                "object": pod,
                "oldObject": None,
                "dryRun": False,
                "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
            },
        }
    )


def noop(body: bytes) -> bytes:
    """The answer of a webhook that says yes to everything."""
    uid = orjson.loads(body)["request"]["uid"]
    response = {"uid": uid, "allowed": True}
    return orjson.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    )


def webhook_config() -> str:
    """The benchmarks' config as a webhook has it: the ten steps that match, for every object."""
    head, _, _ = CONFIG.read_text().partition("select:")
    return f"phases: [admit]\n{head}select: [{{chain: matching}}]\n"


def decided(tailor: Tailor, body: bytes) -> Any:
    """What the server does with a review, without HTTP, metrics and log."""
    return dump(answer(decide(parse(body), tailor).response))


def _review(plan: Plan) -> float:
    body, tailor = review(), Tailor(config(), forced="matching")
    return ratio(
        batch(lambda: decided(tailor, body), plan), batch(lambda: noop(body), plan), plan.rounds
    )


ROWS = (
    Row(
        "review",
        "review in to answer out, 10 steps, against a no-op review by orjson",
        3.0,
        4.0,
        _review,
    ),
)
