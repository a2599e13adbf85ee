"""The phase `launch`, and `admit` after it: executions of the real FlytePropeller."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from kubetailor.plugins.execution.marks import EXECUTION_KEYS
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.undo import UNDO
from kubetailor.plugins.webhook.reload import load_tailor
from kubetailor.registry.overrides.document import OVERRIDE

from .conftest import MakeLauncher, MakeWebhook, RegisterOnce
from .executions import FOLDER, Launcher, Run, creations, register
from .launched import (
    DOMAIN,
    FILES,
    HEAD,
    NAMESPACE,
    NESTED,
    TEAM,
    VERSION,
    ZOO,
    container,
    in_pool,
    tolerated,
)
from .objects import pods_of
from .stack.client import Client
from .stack.core import Core
from .stack.kubelet import KUBELET
from .stack.kwok import node
from .stack.process import Process, wait_for
from .stack.pyflyte import PROJECT, Pyflyte

BAKED: Final = "staging"
"""Where the same project is registered with a chain on."""

OLD: Final = f"""
plugins: [./team.py]
phases: [serialize, launch, admit]
chains:
  default:
    defaults: [{{use: node_selector, with: {{set: {{old: pool}}}}}}]
    steps:
      - {{use: tolerations, with: {{add: [{{key: old, operator: Exists}}]}}}}
      - {{use: labels, with: {{set: {{old: "yes"}}}}}}
      - {{use: team.counted}}
      - name: late
        use: labels
        with: {{set: {{late: "yes"}}}}
        when: {{task: {ZOO}.other, node: n1}}
"""


@pytest.fixture(scope="module")
def baked(pyflyte: Pyflyte, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The project, registered with a chain."""
    folder = tmp_path_factory.mktemp("old")
    (folder / "team.py").write_text(TEAM)
    (folder / "kubetailor.yaml").write_text(OLD)
    register(pyflyte, ZOO, domain=BAKED, KUBETAILOR_CONFIG=str(folder / "kubetailor.yaml"))


@pytest.fixture
def launch(register_once: RegisterOnce, launcher: MakeLauncher) -> Launcher:
    """Launches the project, as its authors wrote it; `baked` registers another."""
    register_once(ZOO, DOMAIN)
    return launcher(ZOO)


@pytest.fixture(scope="module")
def pools(client: Client, kwok: Process, kubelet: Process) -> Iterator[None]:
    """A node where pods run as processes, and one where they only say so."""
    taint = {"key": "example.com/launch", "value": "yes", "effect": "NoSchedule"}
    nodes = [
        node("launch-process", labels={"pool": "process", **KUBELET}, taints=[taint]),
        node("launch-idle", labels={"pool": "idle"}, taints=[taint]),
    ]
    for obj in nodes:
        client.create(obj)
    yield
    for obj in nodes:
        client.delete("v1", "Node", None, obj["metadata"]["name"])


def by_node(pods: list[Any]) -> dict[str, Any]:
    return {pod["metadata"]["labels"]["node-id"]: pod for pod in pods}


# nodes that say otherwise than their task ------------------------------------------------------

GPUS: Final = f"""{HEAD}
accelerators:
  acme:
    resource: nvidia.com/gpu
    device: nvidia-h100-80gb
    node_selector: {{acme.io/gpu: h100, acme.io/size: "a3-{{count}}g"}}
    tolerations: [{{key: acme.io/gpu, operator: Exists, effect: NoSchedule}}]
chains:
  default:
    steps:
      - {{use: gpu, with: {{type: acme}}, when: {{requests: nvidia.com/gpu}}}}
"""


def test_each_node_has_the_pod_that_its_overrides_and_the_chain_say(
    client: Client, webhook: MakeWebhook, launch: Launcher
) -> None:
    webhook(GPUS, NAMESPACE, files=FILES)
    run = launch("overridden", "launch-nodes")
    pods = by_node(run.wait_for_pods(5))

    for name, count in (("plain", "1"), ("too", "1"), ("own-pod", "1"), ("four", "4")):
        pod = pods[name]
        selector = {"acme.io/gpu": "h100", "acme.io/size": f"a3-{count}g"}
        assert pod["spec"]["nodeSelector"] == selector, name
        assert "acme.io/gpu" in tolerated(pod), name
        # The chain's selector is all that places it: Propeller adds no requirement.
        assert not pod["spec"].get("affinity"), name
        limits = container(pod)["resources"]["limits"]
        assert limits["nvidia.com/gpu"] == count, name
        assert (limits["cpu"], limits["memory"]) == ("4", "16Gi"), name

    # A node's accelerator keeps the step off, at `admit` too; Propeller places it.
    def of_the_job() -> list[Any]:
        job = client.get("kubeflow.org/v1", "PyTorchJob", NAMESPACE, "launch-nodes-job-0")
        return pods_of(client, job)

    wait_for("the pods of the job", lambda: len(of_the_job()) == 2)
    for pod in (pods["other-type"], *of_the_job()):
        name = pod["metadata"]["name"]
        assert "nodeSelector" not in pod["spec"], name
        assert "acme.io/gpu" not in tolerated(pod), name
        places = [("cloud.google.com/gke-accelerator", "In", ["nvidia-tesla-t4"])]
        assert required(pod) == places, name
        assert container(pod)["resources"]["limits"]["nvidia.com/gpu"] == "1", name

    # A node's pod template is its author's text, and the chain ran over it.
    pod = pods["own-pod"]
    assert sorted(tolerated(pod)) == ["acme.io/gpu", "own"]
    assert pod["metadata"]["labels"]["template"] == "own"
    assert container(pod)["name"] == "main"
    assert container(pod, 1)["image"] == "side:1"

    workflow = run.flyte_workflow
    nodes, tasks = workflow["spec"]["nodes"], workflow["tasks"]
    keys = {name: nodes[name]["task"] for name in pods}
    assert keys["plain"] == keys["too"]
    assert len(set(keys.values())) == 4
    assert len(tasks) == 5, "and that of the job"
    ids = [tasks[key]["id"] for key in keys.values()]
    assert all(found == ids[0] for found in ids)
    assert ids[0]["name"] == f"{ZOO}.train"


def required(pod: Any) -> list[tuple[str, str, list[str]]]:
    """What is required of its node by expressions."""
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [(e["key"], e["operator"], e["values"]) for e in term["matchExpressions"]]


# what is compiled into nodes -------------------------------------------------------------------


def hurried(task: str, **said: str) -> str:
    words = ", ".join(f"{name}: {value}" for name, value in said.items())
    return f"""
      - use: team.hurry
        with: {{{words}}}
        when: {{task: "{ZOO}.{task}", phase: launch}}
"""


def test_retries_deadlines_and_being_interruptible_are_the_chains(
    pools: None, core: Core, webhook: MakeWebhook, launch: Launcher
) -> None:
    steps = (
        hurried("*flaky*", retries="1", interruptible="true"),
        in_pool("process", "*flaky*"),
        hurried("slow", timeout="3s"),
        in_pool("idle", "slow"),
        hurried("one", interruptible="true"),
    )
    webhook(f"{HEAD}chains:\n  default:\n    steps:{''.join(steps)}", NAMESPACE, files=FILES)
    flaky = launch("flaky", "launch-flaky", is_task=True)
    mapped = launch("flaky_map", "launch-mapped")
    slow = launch("slow", "launch-slow", is_task=True)
    spot = launch("both", "launch-spot")

    assert only_node(flaky)["retry"] == {"minAttempts": 2}
    assert only_node(slow)["executionDeadline"] == "3s"
    (pod,) = mapped.wait_for_pods(1)
    assert pod["metadata"]["labels"]["interruptible"] == "true"
    pods = by_node(spot.wait_for_pods(2))
    found = {name: pod["metadata"]["labels"]["interruptible"] for name, pod in pods.items()}
    assert found == {"n0": "true", "n1": "false"}

    runs = (flaky, mapped, slow)
    message = slow.wait_for_failure()
    assert "timeout" in message.lower(), message
    message = flaky.wait_for_failure()
    assert "try again" in message, message
    message = mapped.wait_for_failure()
    assert "try again" in message, message
    created = [{name for name, code in creations(core, run) if code == 201} for run in runs]
    assert [len(names) for names in created] == [2, 2, 1]


def only_node(run: Run) -> Any:
    """The node of a single task."""
    (found,) = [n for n in run.flyte_workflow["spec"]["nodes"].values() if n["kind"] == "task"]
    return found


# registered with a chain -----------------------------------------------------------------------

TODAY: Final = f"""{HEAD}
chains:
  default:
    defaults: [{{use: node_selector, with: {{set: {{today: pool}}}}}}]
    steps:
      - {{use: tolerations, with: {{add: [{{key: today, operator: Exists}}]}}}}
      - {{use: labels, with: {{set: {{today: "yes"}}}}}}
      - {{use: team.counted}}
"""


def test_nothing_of_an_older_chain_is_left(
    baked: None, webhook: MakeWebhook, launch: Launcher
) -> None:
    webhook(TODAY, f"{PROJECT}-{BAKED}", files=FILES)
    run = launch("both", "launch-today", domain=BAKED)

    for pod in run.wait_for_pods(2):
        assert pod["spec"]["nodeSelector"] == {"today": "pool"}
        assert tolerated(pod) == ["today"]
        labels = pod["metadata"]["labels"]
        assert labels["today"] == "yes"
        assert not {"old", "late"} & labels.keys()
        assert pod["metadata"]["annotations"]["example.com/times"] == "1"
    assert UNDO not in json.dumps(run.flyte_workflow)


def test_the_chain_that_it_was_registered_with_only_goes_on(
    baked: None, webhook: MakeWebhook, launch: Launcher
) -> None:
    asked = webhook(OLD, f"{PROJECT}-{BAKED}", files=FILES)
    run = launch("both", "launch-same", domain=BAKED)
    pods = by_node(run.wait_for_pods(2))

    (said,) = asked.decisions(run.name)
    assert said["steps"] == ["late"]
    for name, pod in pods.items():
        assert pod["spec"]["nodeSelector"] == {"old": "pool"}
        assert tolerated(pod) == ["old"]
        labels = pod["metadata"]["labels"]
        assert labels["old"] == "yes"
        assert ("late" in labels) == (name == "n1")
        assert pod["metadata"]["annotations"]["example.com/times"] == "1"
        (said,) = asked.decisions(pod["metadata"]["name"])
        assert said["outcome"] == "unchanged"

    alone = launch("inner", "launch-unchanged", domain=BAKED)
    (said,) = asked.decisions(alone.name)
    assert said["outcome"] == "unchanged"


# graphs in graphs ------------------------------------------------------------------------------


def test_each_pod_of_a_nested_execution_is_tailored_once(
    pools: None,
    client: Client,
    pyflyte: Pyflyte,
    webhook: MakeWebhook,
) -> None:
    asked = webhook(NESTED, NAMESPACE, files=FILES)
    name = "launch-nested"
    digest = load_tailor(asked.config).config.chains["default"].digest
    forged = json.dumps({"chain": "default", "digest": digest, "done": 99})
    pyflyte(
        *("run", "--remote", "--project", PROJECT, "--domain", DOMAIN, "--name", name),
        *("--labels", "team=vision", "--annotations", "example.com/note=mine"),
        *("--annotations", f"{STAMP}={forged}"),
        *("remote-launchplan", f"{ZOO}.nested:{VERSION}", "--x", "3"),
        folder=FOLDER,
    )
    remote = pyflyte.remote(DOMAIN)
    with ExitStack() as stack:
        run = Run.started(client, remote, DOMAIN, name, stack)
        child = Run.started(client, remote, DOMAIN, run.child("child"), stack)
        # map: 2, subworkflow: 1, dynamic: itself and what it makes, branch: 1
        pods = [*run.wait_for_pods(6), *child.wait_for_pods(1)]

        tasks = Counter(env(pod)["FLYTE_INTERNAL_TASK_NAME"].rpartition(".")[2] for pod in pods)
        mapped = [count for task, count in tasks.items() if task.startswith("map_one")]
        assert (mapped, tasks["fan_out"], tasks["one"]) == ([2], 1, 4)
        for pod in pods:
            metadata = pod["metadata"]
            assert metadata["annotations"]["example.com/times"] == "1", metadata["name"]
            assert tolerated(pod).count("batch") == 1, metadata["name"]
            names = [entry["name"] for entry in container(pod)["env"]]
            assert names.count("TEAM") == 1, metadata["name"]
            assert env(pod)["TEAM"] == "audio", metadata["name"]
            # What the execution was given beats the task and the chain's steps.
            assert metadata["labels"]["team"] == "vision", metadata["name"]
            assert metadata["annotations"]["example.com/note"] == "mine", metadata["name"]
            assert metadata["labels"]["cost-centre"] == "speech", metadata["name"]
            assert STAMP in metadata["annotations"], metadata["name"]
        for one in (run, child):
            annotations = one.flyte_workflow["metadata"]["annotations"]
            assert STAMP not in annotations
            keys = json.loads(annotations[EXECUTION_KEYS])
            assert keys == {"labels": ["team"], "annotations": ["example.com/note"]}


def env(pod: Any) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in container(pod)["env"]}


# overrides -------------------------------------------------------------------------------------

CHOSEN: Final = f"""
plugins: [./team.py]
chains:
  default:
    steps:
      - {{use: labels, with: {{set: {{chosen-by: chain, pays: chain}}}}}}
{in_pool("process", "fan_out")}
    enforce:
      - {{use: labels, with: {{set: {{pays: platform}}}}}}
"""


def override(*steps: Any) -> dict[str, str]:
    return {OVERRIDE: json.dumps({"steps": steps})}


@pytest.mark.parametrize("phases", ["launch, admit", "admit"])
def test_an_override_changes_each_pod_of_one_execution_alone(
    phases: str,
    pools: None,
    client: Client,
    pyflyte: Pyflyte,
    webhook: MakeWebhook,
    launch: Launcher,
) -> None:
    asked = webhook(f"phases: [{phases}]{CHOSEN}", NAMESPACE, files=FILES)
    name = f"override-{phases.partition(',')[0]}"
    set_ = {"chosen-by": "override", "pays": "override"}
    annotations = override({"use": "labels", "with": {"set": set_}})
    run = launch("nested", name, annotations=annotations)
    with ExitStack() as stack:
        remote = pyflyte.remote(DOMAIN)
        child = Run.started(client, remote, DOMAIN, run.child("child"), stack)
        pods = [*run.wait_for_pods(6), *child.wait_for_pods(1)]
        compiler = load_tailor(asked.config).config.overrides
        digest = compiler.read(annotations[OVERRIDE]).digest
        for pod in pods:
            metadata = pod["metadata"]
            assert metadata["labels"]["chosen-by"] == "override", metadata["name"]
            assert metadata["labels"]["pays"] == "platform", metadata["name"]
            assert json.loads(metadata["annotations"][STAMP])["override"] == digest
    plain = launch("inner", f"{name}-plain")
    (pod,) = plain.wait_for_pods(1)
    assert pod["metadata"]["labels"]["chosen-by"] == "chain"
    assert json.loads(pod["metadata"]["annotations"][STAMP])["override"] is None

    # A team's own transformer may be overridden by nobody, unless `overridable` says so.
    refused = launch("inner", f"{name}-refused", annotations=override({"use": "team.counted"}))
    assert "team.counted may not be overridden" in refused.wait_for_failure()
