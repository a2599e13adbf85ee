"""What other operators make of a job that the chain has cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kubetailor.plugins.flyte.stamp import STAMP

from .conftest import MakeWebhook
from .objects import BUILDERS, pods_of
from .stack.client import Client
from .stack.kwok import node
from .stack.process import wait_for

pytestmark = pytest.mark.usefixtures("kwok")

TAINT: Final = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
CONFIG: Final = """
phases: [admit]
chains:
  default:
    steps:
      - use: gpu
        with: {type: nvidia-l4, count: 2}
        when: {requests: nvidia.com/gpu}
      - use: node_selector
        with: {set: {example.com/pool: POOL}}
      - use: tolerations
        with: {add: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}
    enforce:
      - use: labels
        with: {set: {cost-centre: speech}}
"""

KINDS: Final = {
    "PyTorchJob": ("training_operator", {"pytorch": 2}),
    "RayCluster": ("kuberay", {"ray-head": 1, "ray-worker": 1}),
    "RayJob": ("kuberay", {"ray-head": 1, "ray-worker": 1, "ray-job-submitter": 1}),
    "JobSet": ("jobset", {"main": 1}),
}
"""The operator's fixture, and how many pods it makes with which container."""
NOT_OF_THE_CORE: Final = ("RayCluster", "RayJob", "JobSet")
WITHOUT_GPUS: Final = ("ray-head", "ray-job-submitter")


@pytest.fixture
def pool(client: Client, namespace: str) -> Iterator[str]:
    """A node with GPUs of the test's own."""
    labels = {"example.com/pool": namespace, "cloud.google.com/gke-accelerator": "nvidia-l4"}
    client.create(node(namespace, gpus=8, labels=labels, taints=[TAINT]))
    yield namespace
    client.delete("v1", "Node", None, namespace)


@pytest.mark.parametrize(
    "kind",
    ["PyTorchJob", *(pytest.param(kind, marks=pytest.mark.all_tools) for kind in NOT_OF_THE_CORE)],
)
def test_its_operator_makes_the_pods_that_the_chain_asks_for(
    kind: str, request: pytest.FixtureRequest, client: Client, webhook: MakeWebhook, pool: str
) -> None:
    operator, containers = KINDS[kind]
    request.getfixturevalue(operator)
    server = webhook(CONFIG.replace("POOL", pool), pool)

    made = client.create(BUILDERS[kind](pool, "one", gpus=1))

    def bound() -> list[Any]:
        pods = pods_of(client, made)
        return pods if all("nodeName" in pod["spec"] for pod in pods) else []

    wait_for("the pods", lambda: len(bound()) == sum(containers.values()), seconds=120)
    pods = bound()
    assert Counter(_container(pod)["name"] for pod in pods) == containers
    for pod in pods:
        assert pod["spec"]["nodeName"] == pool
        assert pod["metadata"]["labels"]["cost-centre"] == "speech"
        # It is the parent's: the webhook has seen it and left the pod alone.
        assert pod["metadata"]["annotations"][STAMP] == made["metadata"]["annotations"][STAMP]
        limits = _container(pod)["resources"].get("limits", {})
        wanted = None if _container(pod)["name"] in WITHOUT_GPUS else "2"
        assert limits.get("nvidia.com/gpu") == wanted
    assert '"outcome":"denied"' not in server.log()


def _container(pod: Any) -> Any:
    return pod["spec"]["containers"][0]
