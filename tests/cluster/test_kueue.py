"""What gets its queue from the chain is held, admitted and started by the real Kueue."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import pytest

from kubetailor.plugins.webhook.objects import NAME

from .conftest import MakeWebhook
from .objects import BUILDERS, TAILORED, pods_of
from .queues import QUEUE, Queues, is_held
from .stack.client import Client
from .stack.kwok import node
from .stack.process import wait_for

pytestmark = pytest.mark.usefixtures("kwok", "kueue")

SECONDS: Final = 120
"""How long anything may take: several controllers in turn, each on a busy machine."""

ADMISSION: Final = "admissionregistration.k8s.io/v1"
KUEUES: Final = "kueue-mutating-webhook-configuration"
ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
A100: Final = {ACCELERATOR: "nvidia-a100-80gb"}
TAINT: Final = {"key": "example.com/team", "value": "speech", "effect": "NoSchedule"}
TOLERATION: Final = {**TAINT, "operator": "Equal"}

CONFIG: Final = """
phases: [admit]
chains:
  default:
    steps:
      - {use: kueue, with: {queue: team}}
      - use: gpu
        with: {type: nvidia-a100-80gb}
        when: {requests: nvidia.com/gpu}
      - use: tolerations
        with:
          add: [{key: example.com/team, operator: Equal, value: speech, effect: NoSchedule}]
"""

OWNERS: Final = (
    "PyTorchJob",
    pytest.param("RayJob", marks=pytest.mark.all_tools),
    pytest.param("JobSet", marks=pytest.mark.all_tools),
)
KINDS: Final = ("Pod", "Job", *OWNERS)
DENIED: Final = "its parent was made without what `enforce` asks for: metadata.labels"

OPERATORS: Final = {"RayJob": "kuberay", "JobSet": "jobset"}
PODS: Final = {"PyTorchJob": 2, "RayJob": 3}
"""How many pods one has; the others have one."""
ENDED_BY_KWOK: Final = ("Job", "JobSet")
"""What gives its quota back by itself."""

AddNode: TypeAlias = Callable[[], None]


@pytest.fixture
def queues(client: Client, namespace: str) -> Iterator[Queues]:
    """Quota for two GPUs, on nodes of the test's own."""
    nodes = {**A100, "example.com/pool": namespace}
    found = Queues(client, namespace, gpus=2, flavors={namespace: nodes})
    yield found
    found.forget()


@pytest.fixture
def add_node(client: Client, queues: Queues) -> Iterator[AddNode]:
    """Adds the one node of the flavour."""
    name = queues.namespace

    def add() -> None:
        client.create(node(name, gpus=2, labels=_labels(queues), taints=[TAINT]))

    yield add
    client.delete("v1", "Node", None, name)


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_are_held_and_started_one_after_the_other(
    kind: str,
    request: pytest.FixtureRequest,
    client: Client,
    webhook: MakeWebhook,
    queues: Queues,
    add_node: AddNode,
) -> None:
    _start_operator(kind, request)
    namespace = queues.namespace
    webhook(CONFIG, namespace)

    # No node is there, so that the first has the quota until we let it run, however fast it is.
    first = client.create(_asking(kind, namespace, "first"))
    assert is_held(first)
    assert first["metadata"]["labels"][QUEUE] == "team"
    _wait_until(queues.is_admitted, first)
    second = client.create(_asking(kind, namespace, "second"))
    _wait_until(queues.waits_for_quota, second)
    assert is_held(_now(client, second))
    assert kind == "Pod" or not pods_of(client, second)
    wait_for("the first to be let go", lambda: not is_held(_now(client, first)), seconds=SECONDS)

    add_node()
    _assert_started(client, first, namespace)
    if kind not in ENDED_BY_KWOK:
        client.delete(first["apiVersion"], kind, namespace, "first")
    _wait_until(queues.is_admitted, second)
    _assert_started(client, second, namespace)


@pytest.fixture
def asked_again(client: Client) -> Iterator[None]:
    """Kueue asks for reinvocation, which it does not as it comes."""

    def reinvoke(policy: str) -> None:
        found = client.get(ADMISSION, "MutatingWebhookConfiguration", None, KUEUES)
        for each in found["webhooks"]:
            each["reinvocationPolicy"] = policy
        client.replace(found)

    reinvoke("IfNeeded")
    yield
    reinvoke("Never")


@pytest.mark.usefixtures("asked_again")
@pytest.mark.parametrize("kind", KINDS)
def test_who_is_asked_first_makes_no_difference(
    kind: str,
    request: pytest.FixtureRequest,
    client: Client,
    webhook: MakeWebhook,
    queues: Queues,
    add_node: AddNode,
) -> None:
    _start_operator(kind, request)
    other = client.namespace(f"{queues.namespace}-before")
    webhook(CONFIG, other, name="kubetailor")
    webhook(CONFIG, queues.namespace, name="zz-kubetailor")

    before = client.create(_asking(kind, other, "one"), dryRun="All")
    after = client.create(_asking(kind, queues.namespace, "one"))

    assert is_held(before)
    assert _content(before) == _content(after)
    add_node()
    _assert_started(client, after, queues.namespace)
    client.delete("v1", "Namespace", None, other)


def test_what_is_asked_after_kueue_runs_ungated_unless_kueue_is_asked_again(
    client: Client, webhook: MakeWebhook, queues: Queues
) -> None:
    """Why the name of our configuration is one that sorts before Kueue's."""
    assert NAME < KUEUES
    webhook(CONFIG, queues.namespace, name="zz-kubetailor")

    pod = client.create(_asking("Pod", queues.namespace, "pod"))
    job = client.create(_asking("PyTorchJob", queues.namespace, "job"))

    # The queue is known too late for the gate; a job is suspended by Kueue's controller.
    assert pod["metadata"]["labels"][QUEUE] == "team"
    assert not is_held(pod)
    assert not is_held(job)
    _wait_until(queues.is_admitted, job)


@pytest.mark.parametrize("kind", OWNERS)
@pytest.mark.parametrize("queued_by_the_chain", [True, False])
def test_a_child_of_what_no_chain_made_gets_what_is_of_pods_alone(
    queued_by_the_chain: bool,
    kind: str,
    request: pytest.FixtureRequest,
    client: Client,
    webhook: MakeWebhook,
    queues: Queues,
    add_node: AddNode,
) -> None:
    """The job is older than the webhook, but not its pods, for which Kueue has chosen the nodes."""
    _start_operator(kind, request)
    queues.hold()
    labels = {**TAILORED, QUEUE: "team"}
    made = client.create(_asking(kind, queues.namespace, "one", labels=labels))
    assert is_held(made)
    config = CONFIG.replace("nvidia-a100-80gb", "nvidia-h100-80gb").replace("team}", "another}")
    if not queued_by_the_chain:
        config = config.replace("      - {use: kueue, with: {queue: another}}\n", "")
    webhook(config, queues.namespace)

    add_node()
    queues.release()

    _assert_started(client, made, queues.namespace)
    for pod in pods_of(client, made):
        assert pod["spec"]["nodeSelector"] == _labels(queues)
    if kind == "RayJob":
        # KubeRay copies the labels of the job to its cluster.
        (cluster,) = client.list("ray.io/v1", "RayCluster", queues.namespace)
        assert cluster["metadata"]["labels"][QUEUE] == "team"
        assert not cluster["spec"].get("suspend")


def test_a_job_that_waits_is_not_cut_anew_when_the_config_changes(
    client: Client, webhook: MakeWebhook, queues: Queues, add_node: AddNode
) -> None:
    server = webhook(CONFIG, queues.namespace)
    queues.hold()
    made = client.create(_asking("PyTorchJob", queues.namespace, "one"))

    new = CONFIG.replace("nvidia-a100-80gb", "nvidia-h100-80gb").replace("speech", "vision")
    server.reload(new)
    add_node()
    queues.release()

    _assert_started(client, made, queues.namespace)
    for pod in pods_of(client, made):
        assert pod["spec"]["nodeSelector"] == _labels(queues)
        assert "vision" not in json.dumps(pod)


def test_a_job_that_waits_is_held_to_what_is_enforced_now(
    client: Client, webhook: MakeWebhook, queues: Queues, add_node: AddNode
) -> None:
    server = webhook(CONFIG, queues.namespace)
    queues.hold()
    made = client.create(_asking("PyTorchJob", queues.namespace, "one"))

    enforced = "    enforce: [{use: labels, with: {set: {cost-centre: speech}}}]\n"
    server.reload(CONFIG + enforced)
    add_node()
    queues.release()

    def denied() -> bool:
        events = client.list("v1", "Event", queues.namespace)
        return any(DENIED in event["message"] for event in events)

    wait_for("the operator's word on it", denied, seconds=SECONDS)
    assert not pods_of(client, made)
    # Nothing is lost: the operator tries again.
    server.reload(CONFIG)
    _assert_started(client, made, queues.namespace)


def _start_operator(kind: str, request: pytest.FixtureRequest) -> None:
    if kind in OPERATORS:
        request.getfixturevalue(OPERATORS[kind])


def _assert_started(client: Client, obj: Any, node_name: str) -> None:
    """All its pods are on the flavour's node, and none has the queue label that is the owner's."""

    def bound() -> bool:
        pods = pods_of(client, obj)
        nodes = [pod["spec"].get("nodeName") for pod in pods]
        if len(nodes) != PODS.get(obj["kind"], 1) or not all(nodes):
            raise AssertionError([(pod["metadata"]["name"], pod["status"]) for pod in pods])
        return True

    wait_for(f"the pods of {obj['metadata']['name']}", bound, seconds=SECONDS)
    for pod in pods_of(client, obj):
        assert pod["spec"]["nodeName"] == node_name
        assert TOLERATION in pod["spec"]["tolerations"]
        assert (QUEUE in pod["metadata"]["labels"]) is (obj["kind"] == "Pod")


def _asking(kind: str, namespace: str, name: str, **more: Any) -> Any:
    """Two GPUs in all: all of the quota."""
    return BUILDERS[kind](namespace, name, gpus=1 if kind == "PyTorchJob" else 2, **more)


def _labels(queues: Queues) -> dict[str, str]:
    """Those of the nodes of the one flavour."""
    return dict(queues.flavors[queues.namespace])


def _now(client: Client, obj: Any) -> Any:
    metadata = obj["metadata"]
    return client.get(obj["apiVersion"], obj["kind"], metadata["namespace"], metadata["name"])


def _wait_until(what: Any, obj: Any) -> None:
    name = f"{obj['kind']} {obj['metadata']['name']}: {what.__name__}"
    wait_for(name, lambda: what(obj), seconds=SECONDS)


def _content(obj: Any) -> Any:
    """What was asked for, without what is of this one object and names that are made up."""
    text = json.dumps(obj).replace(obj["metadata"]["uid"], "uid")
    found = json.loads(re.sub(r"kube-api-access-\w+", "kube-api-access", text))
    own = ("namespace", "creationTimestamp", "managedFields", "resourceVersion")
    metadata = {key: value for key, value in found["metadata"].items() if key not in own}
    return {"metadata": metadata, "spec": found["spec"]}
