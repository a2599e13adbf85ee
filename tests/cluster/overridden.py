"""What is overridden: two pools of GPUs, the config that knows them, and where pods have gone."""

from __future__ import annotations

from typing import Any, Final

from kubetailor.registry import Override
from kubetailor.registry.overrides.document import OVERRIDE

from .executions import Run
from .stack.client import Client
from .stack.kubelet import KUBELET
from .stack.kwok import node
from .stack.process import wait_for
from .stack.pyflyte import PROJECT

__all__ = [
    "A100",
    "CONFIG",
    "DOMAIN",
    "H100",
    "NAMESPACE",
    "ON_H100",
    "SWAP",
    "ZOO",
    "annotation",
    "labels_of",
    "nodes",
    "placed",
    "pods_of",
]

ZOO: Final = "zoo.to_override"
DOMAIN: Final = "development"
NAMESPACE: Final = f"{PROJECT}-{DOMAIN}"

A100: Final = "overrides-a100"
H100: Final = "overrides-h100"

_POOL: Final = "example.com/overrides"
"""The key of a label and of a taint that no other test's nodes have."""

CONFIG: Final = f"""
phases: [launch, admit]
accelerators:
  a100-pool:
    extends: nvidia-a100-80gb
    node_selector: {{{_POOL}: a100}}
    tolerations: [{{key: {_POOL}, operator: Equal, value: a100, effect: NoSchedule}}]
  h100-pool:
    extends: nvidia-h100-80gb
    node_selector: {{{_POOL}: h100}}
    tolerations: [{{key: {_POOL}, operator: Equal, value: h100, effect: NoSchedule}}]
chains:
  default:
    steps:
      - {{use: gpu, with: {{type: a100-pool}}, when: {{requests: nvidia.com/gpu}}}}
      - use: kueue
        with: {{queue: team}}
        when: {{task: "*.queued_job"}}
      - use: node_selector
        with: {{set: {{{_POOL}: process}}}}
        when: {{task: ["*.cached", "*.flaky"]}}
      - use: tolerations
        with: {{add: [{{key: {_POOL}, operator: Equal, value: process, effect: NoSchedule}}]}}
        when: {{task: ["*.cached", "*.flaky"]}}
overridable:
  - use: gpu
    allow: {{type: {{in: [a100-pool, h100-pool]}}, count: {{max: 4}}}}
  - use: cache
  - use: retries
  - use: spark_conf
"""
ON_H100: Final = CONFIG.replace("{type: a100-pool}", "{type: h100-pool}")
SWAP: Final = Override().step("gpu", type="h100-pool")

_DEVICES: Final = {"a100": "nvidia-a100-80gb", "h100": "nvidia-h100-80gb"}


def labels_of(pool: str) -> dict[str, str]:
    """The labels of a pool's node: `a100` or `h100` as GKE has them, or `process`."""
    device = _DEVICES.get(pool)
    return {_POOL: pool, **({"cloud.google.com/gke-accelerator": device} if device else KUBELET)}


def nodes() -> list[dict[str, Any]]:
    """A node for each pool; each has a taint of its own."""
    return [
        node(
            f"overrides-{pool}",
            gpus=64 if pool in _DEVICES else 0,
            labels=labels_of(pool),
            taints=[{"key": _POOL, "value": pool, "effect": "NoSchedule"}],
        )
        for pool in (*_DEVICES, "process")
    ]


def annotation(override: Override) -> dict[str, str]:
    """The override as any client can give it to an execution."""
    return {OVERRIDE: override.annotation()}


def pods_of(client: Client, run: Run, count: int) -> list[Any]:
    """All pods of an execution, of its jobs and of its children, once each has a node."""

    def found() -> list[Any]:
        return client.list("v1", "Pod", run.namespace, labelSelector=f"execution-id={run.name}")

    def bound() -> bool:
        places = [(pod["metadata"]["name"], pod["spec"].get("nodeName")) for pod in found()]
        assert len(places) == count, places
        assert all(place for _, place in places), places
        return True

    def goes_on() -> None:
        assert not run.sync().is_done, run.execution.error

    wait_for(f"the pods of {run.name}", bound, while_=goes_on, seconds=120, every=0.3)
    return found()


def placed(client: Client, run: Run, count: int) -> dict[str, set[str]]:
    """Node of the workflow, or `child` for all of a child execution -> nodes of the cluster."""
    where: dict[str, set[str]] = {}
    for pod in pods_of(client, run, count):
        # Not by the label `node-id`: that of a map's pods is the element's, and no id twice is one.
        name = pod["metadata"]["name"]
        own = name.startswith(f"{run.name}-")
        key = name.removeprefix(f"{run.name}-").partition("-")[0] if own else "child"
        where.setdefault(key, set()).add(pod["spec"]["nodeName"])
    return where
