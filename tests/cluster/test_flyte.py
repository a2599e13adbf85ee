"""Flyte for real: flytekit's commands, FlytePropeller, operators, and pods that run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .conftest import MakeWebhook
from .stack.client import Client
from .stack.kubelet import KUBELET
from .stack.kwok import node
from .stack.process import Process, wait_for
from .stack.pyflyte import PROJECT, Pyflyte

ZOO: Final = Path(__file__).parent / "project"
POOL: Final = {"key": "example.com/batch", "value": "yes", "effect": "NoSchedule"}

EVERY_PHASE: Final = """
phases: [serialize, launch, admit]
chains:
  default:
    defaults:
      - {use: priority_class, with: {name: batch-low}}
    steps:
      - {use: labels, with: {set: {team: audio, cost-centre: speech}}}
      - {use: node_selector, with: {set: {kubetailor.dev/kubelet: process}}}
      - use: tolerations
        with: {add: [{key: example.com/batch, operator: Exists, effect: NoSchedule}]}
"""


@pytest.fixture(scope="module")
def nodes(client: Client, kwok: Process, kubelet: Process) -> Iterator[None]:
    """Where what runs runs, and GPUs; both taint what they do not want."""
    gpus = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    made = [
        node("batch", labels=KUBELET, taints=[POOL]),
        node(
            "h100",
            gpus=64,
            labels={"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
            taints=[gpus],
        ),
    ]
    for obj in made:
        client.create(obj)
    client.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "batch-low"},
            "value": 100,
        }
    )
    yield
    for obj in made:
        client.delete("v1", "Node", None, obj["metadata"]["name"])
    client.delete("scheduling.k8s.io/v1", "PriorityClass", None, "batch-low")


# to the end ------------------------------------------------------------------------------------


def test_map_dynamic_subworkflow_and_child_run_to_their_end_on_the_pool(
    client: Client, pyflyte: Pyflyte, nodes: None, webhook: MakeWebhook, tmp_path: Path
) -> None:
    """Nothing here tolerates the pool's taint but the chain, in every phase."""
    config = tmp_path / "kubetailor.yaml"
    config.write_text(EVERY_PHASE)
    namespace = f"{PROJECT}-development"
    webhook(EVERY_PHASE, namespace)

    pyflyte(
        *("run", "--remote", "--project", PROJECT, "--domain", "development"),
        *("--name", "to-the-end", "--labels", "team=vision", "--destination-dir", "."),
        *("zoo/to_the_end.py", "to_the_end", "--n", "2"),
        folder=ZOO,
        env={"KUBETAILOR_CONFIG": str(config)},
    )
    remote = pyflyte.remote("development")
    execution = remote.fetch_execution(name="to-the-end")

    def ended() -> bool:
        return bool(remote.sync_execution(execution).is_done)

    wait_for("the execution", ended, seconds=300, every=1)
    assert execution.error is None
    # 0 + 2, and doubled once more by the dynamic task.
    assert execution.outputs == {"o0": 4, "o1": 2, "o2": 2}

    pods = client.list("v1", "Pod", namespace)
    tasks = sorted(_env(pod, "FLYTE_INTERNAL_TASK_NAME").rpartition(".")[2] for pod in pods)
    mapped = [name for name in tasks if name.startswith("map_double")]
    assert len(mapped) == 2
    # `total` runs in the dynamic task, the subworkflow and the child.
    others = [name for name in tasks if name not in mapped]
    assert others == ["double", "double", "fan_out", "split", "total", "total", "total"]
    for pod in pods:
        name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
        # The execution's label beats the task's and the chain's.
        assert (labels["team"], labels["cost-centre"]) == ("vision", "speech"), name
        assert pod["spec"]["nodeName"] == "batch", name
        assert pod["spec"]["priorityClassName"] == "batch-low", name
        assert pod["spec"]["priority"] == 100, name


def _env(pod: Any, name: str) -> str:
    for container in pod["spec"]["containers"]:
        for entry in container.get("env", ()):
            if entry["name"] == name:
                return str(entry["value"])
    raise AssertionError(f"{pod['metadata']['name']} has no {name}")


# every kind ------------------------------------------------------------------------------------

CHAIN: Final = """
flyte:
  device_label: cloud.google.com/gke-accelerator
  partition_label: cloud.google.com/gke-gpu-partition-size
chains:
  default:
    steps:
      - {use: labels, with: {set: {team: audio}}}
      - {use: annotations, with: {set: {example.com/cut-by: kubetailor}}}
      - {use: env, with: {set: {TEAM: audio}}}
      - use: tolerations
        with: {add: [{key: example.com/batch, operator: Exists, effect: NoSchedule}]}
      - use: gpu
        with: {type: nvidia-h100-80gb}
        when: {requests: nvidia.com/gpu}
      - use: shared_memory
        when: {requests: nvidia.com/gpu}
      - use: tolerations
        with: {add: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}
        when: {requests: nvidia.com/gpu}
      - use: kueue
        with: {queue: speech}
        when: {kind: [PyTorchJob, MPIJob, TFJob, RayJob]}
"""
WAYS: Final = {
    "development": ("serialize",),
    "staging": ("launch", "admit"),
    "production": ("admit",),
}
"""Where each is tailored: by flytekit, as an execution, as objects alone."""

KINDS: Final = (
    ("v1", "Pod"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("kubeflow.org/v1", "MPIJob"),
    ("kubeflow.org/v1", "TFJob"),
    ("ray.io/v1", "RayJob"),
    ("kubernetes.dask.org/v1", "DaskJob"),
)
EXPECTED: Final = 24
TOLERATED: Final = '{"effect": "NoSchedule", "key": "example.com/batch", "operator": "Exists"}'
QUEUE: Final = "kueue.x-k8s.io/queue-name"
QUEUED: Final = ("PyTorchJob", "MPIJob", "TFJob", "RayJob")


def test_every_kind_comes_out_equal_whichever_phase_cut_it(
    client: Client, pyflyte: Pyflyte, nodes: None, webhook: MakeWebhook, tmp_path: Path
) -> None:
    for domain, (phase, *later) in WAYS.items():
        text = f"phases: [{', '.join([phase, *later])}]\n{CHAIN}"
        config = tmp_path / f"{phase}.yaml"
        config.write_text(text)
        env = {"KUBETAILOR_CONFIG": str(config)} if phase == "serialize" else {}
        pyflyte(
            *("register", "--project", PROJECT, "--domain", domain, "--version", "three-ways"),
            *("--destination-dir", ".", "zoo/every_kind.py"),
            folder=ZOO,
            env=env,
        )
        if phase != "serialize":
            webhook(text, f"{PROJECT}-{domain}", name=f"kubetailor-{phase}")
    executions = {}
    for domain in WAYS:
        remote = pyflyte.remote(domain)
        plan = remote.fetch_launch_plan(name="zoo.every_kind.every_kind", version="three-ways")
        executions[domain] = remote.execute(plan, inputs={"x": 3}, execution_name="every-kind")
    for domain in WAYS:
        _wait_for_objects(client, pyflyte, domain, executions[domain])
    found = {domain: _objects(client, domain) for domain in WAYS}
    for name, obj in found["development"].items():
        _is_cut(name, obj)
    for domain in ("staging", "production"):
        assert found[domain].keys() == found["development"].keys()
        for name, obj in found[domain].items():
            assert obj == found["development"][name], (name, WAYS[domain])


def _is_cut(name: str, obj: Any) -> None:
    """What the chain says is there; the rest of the test would be content with nothing."""
    kind, metadata = obj["kind"], obj["metadata"]
    assert metadata["labels"]["team"] == "audio", name
    assert (QUEUE in metadata["labels"]) == (kind in QUEUED), name
    assert metadata["annotations"]["example.com/cut-by"] == "kubetailor", name
    specs = list(_pod_specs(obj))
    assert specs, name
    for spec in specs:
        text = _text(spec)
        assert TOLERATED in text, name
        assert '{"name": "TEAM", "value": "audio"}' in text, name
        if '"nvidia.com/gpu": "' in text:
            assert "nvidia-h100-80gb" in text, name
            assert "nvidia-tesla-a100" not in text, name
            assert '"medium": "Memory"' in text, name


def _pod_specs(value: Any) -> Iterator[Any]:
    """Every pod spec in an object."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for item in value.values():
            yield from _pod_specs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _pod_specs(item)


def _wait_for_objects(client: Client, pyflyte: Pyflyte, domain: str, execution: Any) -> None:
    """Wait until all is there; it stays, since most of it never ends."""
    remote = pyflyte.remote(domain)

    def goes_on() -> None:
        remote.sync_execution(execution)
        assert not execution.is_done, (domain, execution.error)

    def all_there() -> bool:
        there = _objects(client, domain)
        assert len(there) == EXPECTED, sorted(there)
        return True

    wait_for(f"the objects of {domain}", all_there, while_=goes_on, seconds=180, every=1)


def _objects(client: Client, domain: str) -> dict[str, Any]:
    """All that an execution made, by kind and name, without what differs between two runs."""
    namespace = f"{PROJECT}-{domain}"
    # What a child execution makes has its parent's.
    selector = "execution-id=every-kind"
    workflows = client.list(
        "flyte.lyft.com/v1alpha1", "FlyteWorkflow", namespace, labelSelector=selector
    )
    names = sorted(workflow["metadata"]["name"] for workflow in workflows)
    words = {name: "every-kind" if name == "every-kind" else "child" for name in names}
    found = {}
    for api, kind in KINDS:
        for obj in client.list(api, kind, namespace, labelSelector=selector):
            if "deletionTimestamp" in obj["metadata"]:
                continue
            plain = _plain(obj, {**words, domain: "DOMAIN"})
            found[f"{kind} {plain['metadata']['name']}"] = plain
    return found


_OURS: Final = "kubetailor.dev/"
_UNORDERED: Final = ("tolerations", "matchExpressions", "env", "volumes", "volumeMounts")
_OF_A_RUN: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
)


def _plain(obj: Any, words: dict[str, str]) -> Any:
    """What is compared; what is not is what docs/explanation/semantics.md says."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, str):
            value = re.sub(r"kube-api-access-\w+", "kube-api-access", value)
            value = re.sub(r"s3://\S+", "s3://...", value)
            for word, instead in words.items():
                value = re.sub(rf"\b{re.escape(word)}\b", instead, value)
        return value

    found = walk(obj)
    found.pop("status", None)
    if found["kind"] == "DaskJob":
        # Dask's operator reads the labels and annotations of the DaskJob alone.
        del found["spec"]["cluster"]["metadata"]
    _unnamed(found)
    return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _unnamed(value: Any) -> None:
    """Take off what differs, wherever it is."""
    if isinstance(value, list):
        for item in value:
            _unnamed(item)
    if not isinstance(value, dict):
        return
    for key in _OF_A_RUN:
        value.pop(key, None)
    annotations = value.get("annotations")
    if isinstance(annotations, dict):
        for key in list(annotations):
            if key.startswith(_OURS) or key == "primary_container_name":
                del annotations[key]
        if not annotations:
            del value["annotations"]
    for key in _UNORDERED:
        if isinstance(value.get(key), list):
            value[key] = sorted(value[key], key=_text)
    if isinstance(value.get("containers"), list):
        value.pop("nodeName", None)
        for number, container in enumerate(value["containers"]):
            for entry in container.get("env", ()):
                if entry["name"] == "_F_SS_C":  # packed, with the domain in it
                    entry["value"] = "settings"
            if container["name"] not in ("main", "sidecar"):
                container["name"] = str(number)
        # Go writes the settings of copilot, which carries a raw container's data, in any order.
        for container in value.get("initContainers", ()):
            container["command"] = sorted(container.get("command", ()))
    for item in value.values():
        _unnamed(item)
