"""What is too long, too large or no review at all, and what a team's code does wrong."""

from __future__ import annotations

import http.client
import json
import ssl
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from .conftest import MakeWebhook
from .executions import Run
from .objects import TAILORED
from .plain import pod
from .stack.client import ApiError, Client
from .stack.core import Core
from .stack.process import wait_for
from .stack.pyflyte import PROJECT, Pyflyte
from .stack.webhook import Webhook

PLUGIN: Final = '''
"""Transformers that a platform team should not have written."""

import time

from kubetailor.registry import Pod, Workload, transformer


@transformer
def hangs(pod: Pod) -> None:
    """Never come back."""
    while True:
        pass


@transformer
def dawdles(pod: Pod) -> None:
    """Come back when nobody waits any longer, but within the time limit of a chain."""
    time.sleep(3)


@transformer
def raises(pod: Pod) -> None:
    """Fail as code does."""
    raise KeyError("no such team")


@transformer
def hoards(pod: Pod) -> None:
    """Never have enough."""
    kept = []
    while True:
        kept.append(b"x" * (1 << 22))


@transformer
def forgets(workload: Workload) -> dict:
    """Return what is no object of this kind."""
    return {"kind": "Pod"}


@transformer
def misnames(pod: Pod) -> None:
    """Set what Kubernetes would refuse."""
    pod.label("team", "speech & vision")
'''

DENIED: Final = {
    "hangs": (504, "it took longer than 5 s"),
    "raises": (422, "KeyError: 'no such team'"),
    "hoards": (500, "emory"),
    "forgets": (422, "forgets"),
    "misnames": (422, "metadata.labels: label team: the value 'speech & vision' must"),
}
CONFIG: Final = """
plugins: [./probe.py]
phases: [admit]
chains:
  default:
    steps:
      - {use: node_selector, with: {set: {pool: a}}}
""" + "".join(
    f"      - {{name: its-{use}, use: probe.{use}, when: {{labels: {{use: {use}}}}}}}\n"
    for use in (*DENIED, "dawdles")
)
NAMESPACE: Final = "limits"
DOMAIN: Final = "staging"
FLYTE: Final = """
from flytekit import task

@task(container_image="example.com/one:1")
def one(x: int) -> int:
    return x + 1
"""
JSON: Final = "application/json"


@pytest.fixture(scope="module")
def served(core: Core) -> Iterator[Webhook]:
    """A webhook with a step for each of the transformers."""
    core.client.namespace(NAMESPACE)
    with ExitStack() as ending:
        yield Webhook(core, ending, CONFIG, NAMESPACE, name="limits", files={"probe.py": PLUGIN})
    core.client.delete("v1", "Namespace", None, NAMESPACE)


# code of a team --------------------------------------------------------------------------------


@pytest.mark.parametrize("use", DENIED)
def test_what_a_step_does_wrong_denies_and_is_named(
    use: str, client: Client, served: Webhook
) -> None:
    code, why = DENIED[use]
    asked = pod(NAMESPACE, use, labels={**TAILORED, "use": use})

    with pytest.raises(ApiError) as error:
        client.create(asked)

    said = error.value.message
    assert error.value.code == code
    assert said.startswith('admission webhook "labelled.kubetailor.dev" denied the request: ')
    assert "kubetailor, chain 'default': " in said
    assert f"step 'its-{use}' (plugin probe) on Pod {use}: " in said
    assert why in said
    with pytest.raises(ApiError, match="not found"):
        client.get("v1", "Pod", NAMESPACE, use)
    # The server goes on.
    after = client.create(pod(NAMESPACE, f"after-{use}"))
    assert after["spec"]["nodeSelector"] == {"pool": "a"}


def test_a_denial_that_is_retried_reaches_the_user_of_flyte(
    client: Client, pyflyte: Pyflyte, webhook: MakeWebhook, tmp_path: Path
) -> None:
    """400 and 422 fail a task at once; after a 500 (or a 504, which takes longer here) Propeller
    tries eleven times in all."""
    _, why = DENIED["hoards"]
    namespace = f"{PROJECT}-{DOMAIN}"
    (tmp_path / "one.py").write_text(FLYTE)
    server = webhook(CONFIG, namespace, name="limits-flyte", files={"probe.py": PLUGIN})
    pyflyte(
        *("run", "--remote", "--project", PROJECT, "--domain", DOMAIN, "--destination-dir", "."),
        *("--name", "limits-hoards", "--labels", "use=hoards", "one.py", "one", "--x", "1"),
        folder=tmp_path,
    )
    with ExitStack() as ending:
        remote = pyflyte.remote(DOMAIN)
        said = Run.started(client, remote, DOMAIN, "limits-hoards", ending).wait_for_failure()

    assert "step 'its-hoards' (plugin probe) on Pod limits-hoards-" in said
    assert why in said
    denied = server.decisions()
    assert len(denied) > 1
    assert {line["outcome"] for line in denied} == {"denied"}
    assert client.list("v1", "Pod", namespace, labelSelector="use=hoards") == []


def test_a_step_slower_than_the_api_server_waits_lets_nothing_in(
    core: Core, client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    server = webhook(CONFIG, namespace, files={"probe.py": PLUGIN})
    api = "admissionregistration.k8s.io/v1"
    found = client.get(api, "MutatingWebhookConfiguration", None, server.name)
    for one in found["webhooks"]:
        one["timeoutSeconds"] = 1
    client.replace(found)
    asked = pod(namespace, "slow-", labels={**TAILORED, "use": "dawdles"})
    said: list[ApiError] = []

    def refused() -> bool:
        # The API server takes a moment to notice how long it is to wait.
        try:
            client.create(asked, dryRun="All")
        except ApiError as error:
            said.append(error)
        return bool(said)

    wait_for("the time to be over", refused)
    assert said[0].code in (500, 504)
    assert 'failed calling webhook "labelled.kubetailor.dev"' in said[0].message
    assert "deadline exceeded" in said[0].message
    assert client.list("v1", "Pod", namespace) == []
    # Nobody hears the answer to that one any more, and the next is decided.
    wait_for("the next", lambda: client.create(pod(namespace, "quick-")))


# sizes -----------------------------------------------------------------------------------------


def _sized(name: str, size: int) -> dict[str, Any]:
    """A pod of about that many bytes."""
    made: dict[str, Any] = pod(NAMESPACE, name)
    value = "x" * 1000
    env = [{"name": f"V{number}", "value": value} for number in range(size // 1037)]
    made["spec"]["containers"][0]["env"] = env
    return made


def test_an_object_near_the_limit_is_tailored(client: Client, served: Webhook) -> None:
    """etcd takes 1.5 MiB, and what the API server adds counts too."""
    made = client.create(_sized("large", 1_450_000))

    assert made["spec"]["nodeSelector"] == {"pool": "a"}
    assert len(made["spec"]["containers"][0]["env"]) == 1_450_000 // 1037


@pytest.mark.parametrize(
    ("size", "code", "said"),
    [
        (2_500_000, 500, "larger than max"),
        (3_500_000, 413, "limit is 3145728"),
    ],
)
def test_what_is_too_large_is_the_api_servers_to_refuse(
    size: int, code: int, said: str, client: Client, served: Webhook
) -> None:
    with pytest.raises(ApiError, match=said) as error:
        client.create(_sized("huge", size))
    assert error.value.code == code
    made = client.create(pod(NAMESPACE, f"after-{size}"))
    assert made["spec"]["nodeSelector"] == {"pool": "a"}


# reviews ---------------------------------------------------------------------------------------


def _post(webhook: Webhook, body: bytes, kind: str = JSON) -> tuple[int, str]:
    """POST to the server itself, as the API server does."""
    [port] = webhook.replicas
    trust = ssl.create_default_context(cadata=webhook.authority.pem.decode())
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=trust)
    try:
        connection.request("POST", "/mutate", body, {"Content-Type": kind} if kind else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def _review(**request: Any) -> dict[str, Any]:
    """The review of a pod that is about to be created."""
    asked = {
        "uid": str(uuid.uuid4()),
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": NAMESPACE,
        "operation": "CREATE",
        "object": pod(NAMESPACE, "some-"),
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def test_a_review_without_a_name_is_answered(served: Webhook) -> None:
    review = _review()
    code, text = _post(served, json.dumps(review).encode())

    assert code == 200
    response = json.loads(text)["response"]
    assert (response["uid"], response["allowed"]) == (review["request"]["uid"], True)
    assert response["patchType"] == "JSONPatch"


@pytest.mark.parametrize(
    ("body", "kind", "code", "said"),
    [
        (b"", JSON, 400, "no JSON"),
        (b"{", JSON, 400, "no JSON"),
        (b"\xff\xfe", JSON, 400, "no JSON"),
        (b"[" * 100_000, JSON, 400, "no JSON"),
        (b"[]", JSON, 400, "expected kind AdmissionReview, found 'list'"),
        (b"{}", JSON, 400, "expected kind AdmissionReview"),
        ({**_review(), "apiVersion": "admission.k8s.io/v1beta1"}, JSON, 400, "v1beta1"),
        ({**_review(), "apiVersion": "admission.k8s.io/v2"}, JSON, 400, "admission.k8s.io/v2"),
        ({**_review(), "request": None}, JSON, 400, "`request` is missing"),
        (_review(uid=7), JSON, 400, "`request.uid`"),
        (_review(name=[]), JSON, 400, "`request.name`"),
        (_review(object=None), JSON, 400, "`request.object` is missing"),
        (_review(), "application/yaml", 415, "application/yaml"),
        (_review(), "", 415, "expected content-type application/json"),
        (b"x" * (9 * 1024 * 1024), JSON, 413, "bytes"),
    ],
)
def test_what_is_no_review_is_refused_with_the_reason(
    body: bytes | dict[str, Any], kind: str, code: int, said: str, served: Webhook
) -> None:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()

    found, text = _post(served, sent, kind)

    assert (found, said in text) == (code, True), text
    assert text.count("\n") == 1
    assert _post(served, json.dumps(_review()).encode())[0] == 200, "the server goes on"


@pytest.mark.usefixtures("training_operator")
@pytest.mark.parametrize(
    "replicas",
    [
        None,
        [],
        "Master",
        {"Master": 7},
        {"Master": {"template": []}},
        {"Master": {"template": {"spec": {"containers": "main"}}}},
        {"Master": {"template": {"spec": {"containers": [7]}}}},
        {"Master": {"template": {"metadata": {"labels": []}, "spec": {"containers": []}}}},
    ],
)
def test_a_custom_resource_of_no_form_is_refused_by_the_field(
    replicas: Any, client: Client, served: Webhook
) -> None:
    """The API server holds it to its schema only after webhooks."""
    metadata = {"name": "formless", "namespace": NAMESPACE, "labels": TAILORED}
    with pytest.raises(ApiError) as error:
        client.create(
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "metadata": metadata,
                "spec": {"pytorchReplicaSpecs": replicas},
            }
        )
    assert error.value.code in (400, 422)
    assert "pytorchReplicaSpecs" in error.value.message


def test_a_version_that_is_not_known_is_tailored_all_the_same(served: Webhook) -> None:
    """The table of kinds goes by group and kind."""
    review = _review(
        object={**pod(NAMESPACE, "new"), "apiVersion": "v9"},
        kind={"group": "", "version": "v9", "kind": "Pod"},
    )
    code, text = _post(served, json.dumps(review).encode())
    assert code == 200
    assert json.loads(text)["response"]["allowed"]
