"""What the API server and its admission plugins put into a pod, before the chain and after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from .objects import TAILORED
from .plain import pod
from .stack.client import ApiError, Client
from .stack.core import Core
from .stack.process import wait_for
from .stack.webhook import Webhook

PLUGIN: Final = '''
"""Sets what no built-in sets."""

from kubetailor.registry import Pod, transformer


@transformer
def field(pod: Pod, *, name: str, value: str) -> None:
    """Set a field of the pod spec."""
    pod.set_field(name, value)
'''

CHAINS: Final = ("filled", "priority", "nowhere", "runtime", "trainer", "silent", "scheduler")
CONFIG: Final = f"""
plugins: [./probe.py]
phases: [admit]
chains:
  filled:
    defaults:
      - {{use: priority_class, with: {{name: low}}}}
      - {{use: probe.field, name: scheduler, with: {{name: schedulerName, value: gang}}}}
      - {{use: probe.field, name: account, with: {{name: serviceAccountName, value: trainer}}}}
      - {{use: patch, with: {{pod: {{securityContext: {{runAsUser: 1000}}}}}}}}
      - use: tolerations
        with: {{add: [{{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}}]}}
      - {{use: node_affinity, with: {{require: [{{key: zone, operator: In, values: [a]}}]}}}}
  priority:
    steps: [{{use: priority_class, with: {{name: low}}}}]
  nowhere:
    steps: [{{use: priority_class, with: {{name: lowest}}}}]
  runtime:
    steps: [{{use: probe.field, with: {{name: runtimeClassName, value: gpu}}}}]
  trainer:
    steps: [{{use: probe.field, with: {{name: serviceAccountName, value: trainer}}}}]
  silent:
    steps: [{{use: probe.field, with: {{name: serviceAccountName, value: silent}}}}]
  scheduler:
    steps: [{{use: probe.field, with: {{name: schedulerName, value: gang}}}}]
select: [{", ".join(f"{{when: {{labels: {{chain: {name}}}}}, chain: {name}}}" for name in CHAINS)}]
"""
NAMESPACE: Final = "derived"
TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module", autouse=True)
def stack(core: Core) -> Iterator[None]:
    """Classes, accounts, and a webhook with all the chains."""
    client = core.client
    client.namespace(NAMESPACE)
    made = [
        _priority("low", -10, "Never"),
        _priority("high", 1000, "PreemptLowerPriority"),
        _runtime("plain", "1m", {}),
        _runtime("other", "1m", {"nodeSelector": {"runtime": "other"}}),
        _runtime(
            "gpu",
            "250m",
            {
                "nodeSelector": {"runtime": "gpu"},
                "tolerations": [{"key": "runtime", "operator": "Exists", "effect": "NoSchedule"}],
            },
        ),
    ]
    for obj in (*made, _account("trainer", "registry"), _account("own"), _account("silent")):
        client.create(obj)
    client.patch(
        "v1", "ServiceAccount", NAMESPACE, "silent", {"automountServiceAccountToken": False}
    )
    quiet = pod(NAMESPACE, labels={}, serviceAccountName="silent")
    wait_for(
        "the plugin to know it",
        lambda: not tokens_of(client.create(quiet, dryRun="All")["spec"]),
    )
    with ExitStack() as ending:
        Webhook(core, ending, CONFIG, NAMESPACE, name="derived", files={"probe.py": PLUGIN})
        yield
    client.delete("v1", "Namespace", None, NAMESPACE)
    for obj in made:
        client.delete(obj["apiVersion"], obj["kind"], None, obj["metadata"]["name"])


def _priority(name: str, value: int, policy: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


def _runtime(name: str, cpu: str, scheduling: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": name,
        "overhead": {"podFixed": {"cpu": cpu}},
        **({"scheduling": scheduling} if scheduling else {}),
    }


def _account(name: str, *secrets: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "imagePullSecrets": [{"name": secret} for secret in secrets],
    }


def made_by(client: Client, chain: str, **spec: Any) -> Any:
    """What a chain makes of a pod: its spec."""
    asked = pod(NAMESPACE, "one-", labels={**TAILORED, "chain": chain}, **spec)
    return client.create(asked)["spec"]


def tokens_of(spec: dict[str, Any]) -> list[str]:
    """The names of the volumes that hold a token; each is mounted where clients look for it."""
    found = [v["name"] for v in spec.get("volumes", ()) if v["name"].startswith("kube-api-access")]
    for container in spec["containers"]:
        mounts = {m["name"]: m["mountPath"] for m in container.get("volumeMounts", ())}
        assert mounts == dict.fromkeys(found, TOKEN)
    return found


def test_what_the_api_server_filled_in_counts_as_unset(client: Client) -> None:
    """Defaults run over what nobody wrote."""
    unseen = pod(NAMESPACE, labels={}, schedulerName=None)
    filled = client.create(unseen, dryRun="All")["spec"]
    assert (filled["priority"], filled["schedulerName"]) == (0, "default-scheduler")
    assert (filled["serviceAccountName"], filled["securityContext"]) == ("default", {})
    assert len(filled["tolerations"]) == 2

    spec = made_by(client, "filled", schedulerName=None)

    assert spec["priorityClassName"] == "low"
    assert (spec["priority"], spec["preemptionPolicy"]) == (-10, "Never")
    assert spec["schedulerName"] == "gang"
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "trainer"
    assert spec["securityContext"] == {"runAsUser": 1000}
    ready, unreachable = filled["tolerations"]
    del ready["tolerationSeconds"]
    assert spec["tolerations"] == [ready, unreachable]
    assert spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
        ]
    }
    assert len(tokens_of(spec)) == 1


def test_what_the_author_wrote_stays(client: Client) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    spec = made_by(
        client,
        "filled",
        priorityClassName="high",
        serviceAccountName="own",
        securityContext={"runAsUser": 7},
        tolerations=[{**own, "tolerationSeconds": 9}],
    )

    assert (spec["priorityClassName"], spec["priority"]) == ("high", 1000)
    assert spec["schedulerName"] == "nobody"
    assert spec["serviceAccountName"] == "own"
    assert spec["securityContext"] == {"runAsUser": 7}
    assert spec["tolerations"][0] == {**own, "tolerationSeconds": 9}


@pytest.mark.parametrize("author", [{}, {"priorityClassName": "high"}], ids=["none", "own"])
def test_priority_is_derived_again(author: dict[str, str], client: Client) -> None:
    spec = made_by(client, "priority", **author)

    assert spec["priorityClassName"] == "low"
    assert (spec["priority"], spec["preemptionPolicy"]) == (-10, "Never")


def test_a_priority_class_that_is_not_there_is_refused_by_name(client: Client) -> None:
    with pytest.raises(ApiError, match="no PriorityClass with name lowest"):
        made_by(client, "nowhere")


@pytest.mark.parametrize("author", [{}, {"runtimeClassName": "plain"}], ids=["none", "own"])
def test_overhead_and_scheduling_of_a_runtime_class_are_derived_again(
    author: dict[str, str], client: Client
) -> None:
    spec = made_by(client, "runtime", **author)

    assert spec["runtimeClassName"] == "gpu"
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"runtime": "gpu"}
    assert {"key": "runtime", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]


def test_what_another_runtime_class_asked_of_nodes_is_the_authors(client: Client) -> None:
    """Nothing tells it from what the author wrote; where the two contradict, nothing comes in."""
    with pytest.raises(ApiError, match=r"conflict: runtimeClass\.scheduling\.nodeSelector"):
        made_by(client, "runtime", runtimeClassName="other")


@pytest.mark.parametrize("author", [{}, {"serviceAccountName": "own"}], ids=["none", "own"])
def test_token_and_pull_secrets_of_a_service_account_are_derived_again(
    author: dict[str, str], client: Client
) -> None:
    spec = made_by(client, "trainer", volumes=[{"name": "scratch", "emptyDir": {}}], **author)

    assert spec["serviceAccountName"] == spec["serviceAccount"] == "trainer"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    [token] = tokens_of(spec)
    assert [volume["name"] for volume in spec["volumes"]] == ["scratch", token]


def test_pull_secrets_of_another_account_are_the_authors(client: Client) -> None:
    """Nothing tells them from what the author wrote."""
    spec = made_by(client, "silent", serviceAccountName="trainer")

    assert spec["serviceAccountName"] == "silent"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert tokens_of(spec) == []


def test_an_account_without_a_token_leaves_none(client: Client) -> None:
    """The volume of the account before it would be a token of the one after it."""
    assert tokens_of(made_by(client, "silent")) == []


def test_the_scheduler_of_a_step_is_the_pods(client: Client) -> None:
    assert made_by(client, "scheduler")["schedulerName"] == "gang"
