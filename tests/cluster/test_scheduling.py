"""The real scheduler, on nodes as GKE makes them: who gets where, and who gets nowhere."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import pytest

from .conftest import MakeWebhook
from .objects import BUILDERS, TAILORED, condition, pods_of
from .stack.client import Client
from .stack.kwok import node
from .stack.process import Process, wait_for

ZONE: Final = {"topology.kubernetes.io/zone": "europe-west4-a"}
"""Every pod here asks for it, so that no other test's nodes will do."""

# https://cloud.google.com/kubernetes-engine/docs/how-to/gpus
GPU_TAINT: Final = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
SPOT_TAINT: Final = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}

CONFIG: Final = """
phases: [admit]
chains:
  default:
    steps:
      - name: accelerator
        use: gpu
        with: {type: nvidia-a100-80gb}
        when: {requests: nvidia.com/gpu}
      - use: tolerations
        with: {add: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}
        when: {requests: nvidia.com/gpu}
      - use: node_selector
        with: {set: {cloud.google.com/gke-nodepool: cpu}}
        when: {not: {requests: nvidia.com/gpu}}
  large:
    extends: default
    steps:
      - name: accelerator
        use: gpu
        with: {type: nvidia-h100-80gb, count: 8}
        when: {requests: nvidia.com/gpu}
      - use: tolerations
        with:
          add:
            - {key: cloud.google.com/gke-spot, operator: Equal, value: "true", effect: NoSchedule}
select:
  - {when: {labels: {size: large}}, chain: large}
  - {chain: default}
"""

KINDS: Final = ("Pod", "Job", "PyTorchJob")


@pytest.fixture(scope="module", autouse=True)
def pools(client: Client, kwok: Process, training_operator: Process) -> Iterator[None]:
    """A pool each of A100s, of H100s on spot nodes, and without GPUs."""
    nodes = [
        _node("a100", "nvidia-a100-80gb", 8, [GPU_TAINT]),
        _node("h100", "nvidia-h100-80gb", 16, [GPU_TAINT, SPOT_TAINT]),
        _node("cpu", None, 0, []),
    ]
    for each in nodes:
        client.create(each)
    for each in nodes:
        name = each["metadata"]["name"]
        wait_for(f"the node {name}", functools.partial(_is_ready, client, name))
    yield
    for each in nodes:
        client.delete("v1", "Node", None, each["metadata"]["name"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_chain_brings_the_pods_to_their_pool(
    kind: str, client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    webhook(CONFIG, namespace)

    made = {
        pool: client.create(_asking(kind, namespace, size, gpus, name=pool))
        for pool, size, gpus in (("a100", "small", 1), ("h100", "large", 1), ("cpu", "small", 0))
    }

    for pool, count in (("a100", "1"), ("h100", "8"), ("cpu", None)):
        pods = _bound(client, made[pool])
        assert {pod["spec"]["nodeName"] for pod in pods} == {f"scheduling-{pool}"}
        # The node holds back what the pods asked for: it is the resource, not just the label.
        assert {_gpus(pod) for pod in pods} == {count}


def test_without_the_chain_they_fit_on_no_node(client: Client, namespace: str) -> None:
    made = [
        client.create(_asking(kind, namespace, "small", 1, name=kind.lower())) for kind in KINDS
    ]

    for obj in made:
        # The taints of two nodes, and the third has no GPU; others are in another zone.
        _assert_unschedulable(client, obj, "untolerated taint", "Insufficient nvidia.com/gpu")


def test_a_full_pool_is_waited_for_though_another_has_room(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    """`gpu` says which, so eight that are taken are not made up for by H100s."""
    webhook(CONFIG, namespace)
    first = client.create(_asking("Pod", namespace, "small", 8, name="first"))
    _bound(client, first)

    second = client.create(_asking("Pod", namespace, "small", 1, name="second"))

    _assert_unschedulable(client, second, "Insufficient nvidia.com/gpu")
    client.delete("v1", "Pod", namespace, "first")
    (placed,) = _bound(client, second)
    assert placed["spec"]["nodeName"] == "scheduling-a100"


def _gpus(pod: Any) -> str | None:
    limits = pod["spec"]["containers"][0]["resources"].get("limits", {})
    found: str | None = limits.get("nvidia.com/gpu")
    return found


def _asking(kind: str, namespace: str, size: str, gpus: int, *, name: str) -> Any:
    labels = {**TAILORED, "size": size}
    return BUILDERS[kind](namespace, name, labels=labels, gpus=gpus, nodeSelector=dict(ZONE))


def _node(pool: str, accelerator: str | None, gpus: int, taints: list[dict[str, str]]) -> Any:
    labels = {**ZONE, "cloud.google.com/gke-nodepool": pool}
    if accelerator:
        labels["cloud.google.com/gke-accelerator"] = accelerator
        labels["cloud.google.com/gke-accelerator-count"] = str(gpus)
    return node(f"scheduling-{pool}", gpus=gpus, labels=labels, taints=taints)


def _is_ready(client: Client, name: str) -> bool:
    """Ready, and the taint that said otherwise taken off by the controller manager."""
    found = client.get("v1", "Node", None, name)
    taints = {taint["key"] for taint in found["spec"].get("taints", ())}
    ready: bool = condition(found, "Ready").get("status") == "True"
    return ready and "node.kubernetes.io/not-ready" not in taints


def _expected(obj: Any) -> int:
    return 2 if obj["kind"] == "PyTorchJob" else 1


def _bound(client: Client, obj: Any, *, seconds: float = 60) -> list[Any]:
    """Its pods, once each has a node."""

    def bound() -> bool:
        nodes = [pod["spec"].get("nodeName") for pod in pods_of(client, obj)]
        return len(nodes) == _expected(obj) and all(nodes)

    wait_for(f"the pods of {obj['kind']}", bound, seconds=seconds)
    return pods_of(client, obj)


def _assert_unschedulable(client: Client, obj: Any, *reasons: str) -> None:
    """The scheduler has judged each of its pods, and says why it fits on no node."""

    def judged() -> bool:
        pods = pods_of(client, obj)
        assert not [pod for pod in pods if "nodeName" in pod["spec"]]
        said = [condition(pod, "PodScheduled") for pod in pods]
        if any(reason not in each.get("message", "") for each in said for reason in reasons):
            raise AssertionError(said)
        return [each.get("reason") for each in said] == ["Unschedulable"] * _expected(obj)

    wait_for(f"the scheduler's word on {obj['kind']}", judged, seconds=90)
