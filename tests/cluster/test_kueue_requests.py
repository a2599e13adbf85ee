"""What `kueue` and `pod_group` write is taken by the real Kueue, and read as it is meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from .conftest import MakeWebhook
from .objects import BUILDERS
from .queues import Queues, is_held
from .stack.client import Client
from .stack.process import wait_for

pytestmark = pytest.mark.usefixtures("kueue")

SECONDS: Final = 120
LEVEL: Final = "example.com/rack"
CONFIG: Final = """
phases: [admit]
chains:
  default:
    steps:
      - use: kueue
        with:
          queue: team
          topology: {worker: {required: example.com/rack}, "*": {preferred: example.com/rack}}
          max_execution_time: 10m
          suspend: true
"""
GROUPED: Final = """
phases: [admit]
chains:
  default:
    steps:
      - {use: kueue, with: {queue: team}}
      - {use: pod_group, with: {name: together, count: 2}}
"""


@pytest.fixture
def queues(client: Client, namespace: str) -> Iterator[Queues]:
    """A queue from which nothing is let go."""
    found = Queues(client, namespace, gpus=0, flavors={namespace: {}})
    found.hold()
    yield found
    found.forget()


@pytest.mark.parametrize("kind", ["Pod", "Job", "PyTorchJob"])
def test_topology_and_execution_time_reach_the_workload(
    kind: str, client: Client, webhook: MakeWebhook, queues: Queues
) -> None:
    webhook(CONFIG, queues.namespace)
    made = client.create(BUILDERS[kind](queues.namespace, "one"))
    assert is_held(made)
    spec = workload_of(queues, made)["spec"]
    assert spec["maximumExecutionTimeSeconds"] == 600
    asked = {found["name"]: found["topologyRequest"] for found in spec["podSets"]}
    for name, request in asked.items():
        word = "required" if name == "worker" else "preferred"
        assert {key: request[key] for key in ("required", "preferred") if key in request} == {
            word: LEVEL
        }
    assert ("worker" in asked) is (kind == "PyTorchJob")


def test_pods_of_a_group_are_one_workload(
    client: Client, webhook: MakeWebhook, queues: Queues
) -> None:
    webhook(GROUPED, queues.namespace)
    first = client.create(BUILDERS["Pod"](queues.namespace, "one"))
    second = client.create(BUILDERS["Pod"](queues.namespace, "two"))
    assert is_held(first)
    assert is_held(second)
    found = workload_of(queues, second)
    assert found["metadata"]["name"] == "together"
    assert workload_of(queues, first) == found
    assert sum(part["count"] for part in found["spec"]["podSets"]) == 2


def workload_of(queues: Queues, obj: Any) -> Any:
    """Kueue's own object for it, once it has made one."""

    def made() -> bool:
        return bool(queues.workload(obj))

    wait_for(f"the Workload of {obj['metadata']['name']}", made, seconds=SECONDS)
    return queues.workload(obj)
