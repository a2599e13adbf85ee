"""What a node says otherwise than its task: above `steps`, below `enforce`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.tailoring import tailor_pod_template, tailor_template
from kubetailor.plugins.flyte.undo import UNDO
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.decision import Decision
from kubetailor.plugins.webhook.reviews import AdmissionReview
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import deep_copy

from .conftest import again, object_of, patch_of, patched, review_of

DecideWith = Callable[..., Decision]
TailorOf = Callable[[str], Tailor]

CATALOGUE = """
accelerators:
  a: {resource: nvidia.com/gpu, device: a, node_selector: {gpu: a, size: "a-{count}"}}
  b:
    resource: nvidia.com/gpu
    device: b
    node_selector: {gpu: b}
    tolerations: [{key: b, operator: Exists}]
  amd: {resource: amd.com/gpu, node_selector: {gpu: amd}}
  there:
    resource: nvidia.com/gpu
    device: nvidia-tesla-a100
    node_selector: {k8s.amazonaws.com/accelerator: nvidia-tesla-a100}
"""
POD = {
    "metadata": {"labels": {"pod": "own"}},
    "pod_spec": {
        "containers": [
            {"name": "main", "image": "own:1", "resources": {"limits": {"cpu": "3"}}},
            {"name": "side", "image": "side:1"},
        ],
        "tolerations": [{"key": "own", "operator": "Exists"}],
    },
    "primary_container_name": "main",
}
SPOT = {"key": "spot", "operator": "Exists"}
TOLERATE = "{use: tolerations, with: {add: [{key: spot, operator: Exists}]}}"


@pytest.fixture
def review() -> AdmissionReview:
    return review_of("flyteworkflow")


def big(review: AdmissionReview, **spec: Any) -> dict[str, Any]:
    """The node `big`, which runs `zoo.train`, with what it states; the node's spec."""
    node: dict[str, Any] = object_of(review)["spec"]["nodes"]["big"]
    node["resources"] = {}
    node.update(spec)
    return node


def quantities(*values: str, name: str = "cpu") -> dict[str, Any]:
    return {part: {name: v} for part, v in zip(("requests", "limits"), values, strict=False)}


def run_at(obj: dict[str, Any], node: str = "big") -> dict[str, Any]:
    """The task as FlytePropeller runs it at a node, so far as a node can say something of it.

    flyteplugins, flytek8s/pod_helper.go, `BuildRawPod` and `ApplyFlytePodConfiguration`.
    """
    spec = obj["spec"]["nodes"][node]
    task = obj["tasks"][spec["task"]]
    if "container" in task:
        container = task["container"]
        resources = {
            part: {
                {"CPU": "cpu", "MEMORY": "memory", "GPU": "nvidia.com/gpu"}[e["name"]]: e["value"]
                for e in container.get("resources", {}).get(part, [])
            }
            for part in ("requests", "limits")
        }
        pod = {"containers": [{**container, "name": "task", "resources": resources}]}
        primary, metadata = "task", {}
    else:
        pod, metadata = task["k8sPod"]["podSpec"], task["k8sPod"].get("metadata", {})
        primary = task["config"]["primary_container_name"]
    pod, own = deep_copy(pod), spec.get("podTemplate")
    metadata = {name: dict(metadata.get(name, {})) for name in ("labels", "annotations")}
    if own and own.get("pod_spec"):
        pod, primary = deep_copy(own["pod_spec"]), own["primary_container_name"]
        for name, values in metadata.items():
            values.update(own.get("metadata", {}).get(name, {}))
    (main,) = (c for c in pod["containers"] if c["name"] == primary)
    for part, values in main.setdefault("resources", {}).items():
        main["resources"][part] = {
            {"gpu": "nvidia.com/gpu"}.get(name, name): value for name, value in values.items()
        }
    for part, values in (spec.get("resources") or {}).items():
        main["resources"].setdefault(part, {}).update(values)
    main["image"] = spec.get("containerImage") or main["image"]
    extended = {**task.get("extendedResources", {}), **(spec.get("extendedResources") or {})}
    metadata["labels"].update(task["metadata"]["metadata"].get("labels", {}))
    return {
        "pod": pod,
        "main": main,
        "resources": main["resources"],
        "device": extended.get("gpuAccelerator", {}).get("device"),
        "shared_memory": extended.get("sharedMemory"),
        "labels": metadata["labels"],
    }


def admitted(review: AdmissionReview, decision: Decision) -> dict[str, Any]:
    return patched(review, decision)


# resources and image ---------------------------------------------------------------------------


def test_a_step_about_something_else_leaves_node_and_template_shared(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    node = big(
        review,
        resources=quantities("1", "2"),
        containerImage="own:1",
        extendedResources={"sharedMemory": {"sizeLimit": "1Gi"}},
    )
    before = object_of(review)
    after = admitted(review, decide_with(review, "{steps: [{use: labels, with: {set: {a: b}}}]}"))
    assert after["spec"]["nodes"]["big"] == node
    assert after["tasks"].keys() == before["tasks"].keys()
    one, two = run_at(before), run_at(after)
    assert two["labels"].pop("a") == "b"
    assert one == two


@pytest.mark.parametrize("pod", [False, True])
def test_a_node_beats_steps_and_enforce_beats_it(
    pod: bool, review: AdmissionReview, decide_with: DecideWith
) -> None:
    big(review, resources=quantities("1", "2"), containerImage="node:1")
    if pod:
        big(review, resources=quantities("1", "2"), containerImage="node:1", podTemplate=POD)
    when = "when: {task: zoo.train}"
    asked = "requests: {cpu: '7', memory: 9Gi}, limits: {cpu: '8', memory: 99Gi}"
    step = f"{{use: resources, with: {{{asked}}}, {when}}}"
    image = f"{{use: image, with: {{image: 'chain:1'}}, {when}}}"
    below = admitted(review, decide_with(review, f"{{steps: [{step}, {image}]}}"))
    found = run_at(below)
    assert found["resources"]["requests"] == {
        **run_at(object_of(review))["resources"]["requests"],
        "memory": "9Gi",
    }
    assert found["resources"]["limits"]["cpu"] == "2"
    assert found["main"]["image"] == "node:1"
    above = admitted(review, decide_with(review, f"{{enforce: [{step}, {image}]}}"))
    found = run_at(above)
    assert found["resources"]["requests"]["cpu"] == "7"
    assert found["resources"]["limits"]["cpu"] == "8"
    assert found["main"]["image"] == "chain:1"
    node = above["spec"]["nodes"]["big"]
    assert node.get("resources") == {}
    assert "containerImage" not in node
    for result, chain in ((below, "steps"), (above, "enforce")):
        second = decide_with(again(review, result), f"{{{chain}: [{step}, {image}]}}")
        assert patch_of(second) == []


def test_what_a_node_states_of_a_task_that_ignores_it_is_left(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    obj = object_of(review)
    node = big(review, resources=quantities("1", "2"))
    obj["tasks"][node["task"]] |= {"type": "spark", "custom": {"sparkConf": {}}}
    chain = "{steps: [{use: labels, with: {set: {a: b}, on: [object]}}]}"
    after = admitted(review, decide_with(review, chain))
    assert after["spec"]["nodes"]["big"] == node
    template = after["tasks"][node["task"]]
    assert template["container"] == obj["tasks"][node["task"]]["container"]
    assert template["metadata"]["metadata"]["labels"] == {"a": "b"}


def test_what_the_node_of_a_map_states_is_on_the_node_inside_of_it(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    inside = object_of(review)["spec"]["nodes"]["n1"]["array"]["SubNodeSpec"]
    inside |= {"containerImage": "own:1", "resources": quantities("1", "2")}
    for layer, image in (("steps", "example.com/train:1"), ("enforce", "chain:1")):
        step = "{use: image, with: {image: 'chain:1'}, when: {task: \"zoo.map_*\"}}"
        after = admitted(review, decide_with(review, f"{{{layer}: [{step}]}}"))
        found = after["spec"]["nodes"]["n1"]["array"]["SubNodeSpec"]
        assert found.get("containerImage") == ("own:1" if layer == "steps" else None)
        assert found["resources"] == inside["resources"]
        assert after["tasks"][found["task"]]["container"]["image"] == image


def test_what_was_registered_with_the_chain_of_today_is_left_as_it_is(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    tailor = tailor_of(f"chains: {{default: {{steps: [{TOLERATE}]}}}}")
    big(review, resources=quantities("1", "2"), containerImage="own:1")
    obj = object_of(review)
    del obj["metadata"]["labels"]["team"]
    tasks = {key: tailor_template(tailor, task).after for key, task in obj["tasks"].items()}
    assert all(UNDO in task["config"] for task in tasks.values())
    assert patch_of(decide(again(review, {**obj, "tasks": tasks}), tailor)) == []


# accelerators ----------------------------------------------------------------------------------


@pytest.mark.parametrize("counted", [", count: 1", ""])
def test_the_number_of_gpus_is_the_nodes_and_the_placement_is_for_it(
    counted: str, review: AdmissionReview, decide_with: DecideWith
) -> None:
    big(review, resources=quantities("4", "4", name="nvidia.com/gpu"))
    chain = f"{{steps: [{{use: gpu, with: {{type: a{counted}}}, when: {{task: zoo.train}}}}]}}"
    after = admitted(review, decide_with(review, chain, CATALOGUE))
    found = run_at(after)
    assert found["resources"]["limits"]["nvidia.com/gpu"] == "4"
    assert found["pod"]["nodeSelector"] == {"gpu": "a", "size": "a-4"}
    assert found["device"] is None
    (inner,) = after["subWorkflows"].values()
    other = after["tasks"][inner["nodes"]["n0"]["task"]]
    assert other["k8sPod"]["podSpec"]["nodeSelector"]["size"] == f"a-{1 if counted else 2}"


def test_a_nodes_gpus_are_of_the_resource_that_the_chain_chose(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    big(review, resources=quantities("4", "4", name="nvidia.com/gpu"))
    chain = "{steps: [{use: gpu, with: {type: amd}, when: {task: zoo.train}}]}"
    found = run_at(admitted(review, decide_with(review, chain, CATALOGUE)))
    for part in ("requests", "limits"):
        assert found["resources"][part] == {"cpu": "4", "memory": "16Gi", "amd.com/gpu": "4"}


@pytest.mark.parametrize("layer", ["steps", "enforce"])
@pytest.mark.parametrize("part", ["requests", "limits"])
def test_a_resource_that_a_node_states_in_part_has_one_name(
    layer: str, part: str, review: AdmissionReview, tailor_of: TailorOf
) -> None:
    """flytekit's `gpu` and the full name beside it would be two, and be written anew each time."""
    big(review, resources={part: {"nvidia.com/gpu": "4"}})
    chain = f"{{{layer}: [{{use: gpu, with: {{type: a}}, when: {{task: zoo.train}}}}]}}"
    tailor = tailor_of(f"chains:\n  default: {chain}\n{CATALOGUE}")
    decision = decide(review, tailor)
    if decision.outcome == "denied":  # 4 on one side and 2 on the other is for the author to mend
        assert "nvidia.com/gpu" in decision.reason
        return
    after = admitted(review, decision)
    for task in after["tasks"].values():
        for container in task.get("k8sPod", {}).get("podSpec", {}).get("containers", ()):
            names = {n for values in container.get("resources", {}).values() for n in values}
            assert not {"gpu", "nvidia.com/gpu"} <= names
    assert not patch_of(decide(again(review, after), tailor))


def test_a_nodes_accelerator_beats_a_step(review: AdmissionReview, decide_with: DecideWith) -> None:
    device = {"gpuAccelerator": {"device": "b", "unpartitioned": True}}
    node = big(review, extendedResources=device)
    chain = f"{{steps: [{{use: gpu, with: {{type: a}}, when: {{task: zoo.train}}}}, {TOLERATE}]}}"
    after = admitted(review, decide_with(review, chain, CATALOGUE))
    assert after["spec"]["nodes"]["big"]["extendedResources"] == device
    found = run_at(after)
    assert found["device"] == "b"
    assert "nodeSelector" not in found["pod"]
    assert found["pod"]["tolerations"] == [SPOT]
    (inner,) = after["subWorkflows"].values()
    other = after["tasks"][inner["nodes"]["n0"]["task"]]
    assert other["k8sPod"]["podSpec"]["nodeSelector"]["gpu"] == "a"
    assert "extendedResources" not in other
    assert other["id"] == after["tasks"][after["spec"]["nodes"]["big"]["task"]]["id"]
    assert after["spec"]["nodes"]["big"]["task"] != inner["nodes"]["n0"]["task"] or node


def test_a_nodes_accelerator_beats_that_of_a_teams_transformer(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    chain = f"{{steps: [{{use: probe.pooled, when: {{task: zoo.train}}}}, {TOLERATE}]}}"
    found = run_at(admitted(review, decide_with(review, chain, CATALOGUE)))
    assert found["pod"]["nodeSelector"] == {"example.com/gpu": "mine"}
    big(review, extendedResources={"gpuAccelerator": {"device": "b"}})
    found = run_at(admitted(review, decide_with(review, chain, CATALOGUE)))
    assert "nodeSelector" not in found["pod"]
    assert found["pod"]["tolerations"] == [SPOT]


def test_a_nodes_accelerator_beats_a_step_that_was_baked_in(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    chain = "{steps: [{use: gpu, with: {type: a}, when: {requests: nvidia.com/gpu}}]}"
    tailor = tailor_of(f"chains:\n  default: {chain}\n{CATALOGUE}")
    big(review, extendedResources={"gpuAccelerator": {"device": "b"}})
    obj = object_of(review)
    tasks = {key: tailor_template(tailor, task).after for key, task in obj["tasks"].items()}
    baked = again(review, {**obj, "tasks": tasks})
    assert run_at(object_of(baked))["pod"]["nodeSelector"]["gpu"] == "a"
    found = run_at(admitted(baked, decide(baked, tailor)))
    assert (found["device"], "nodeSelector" in found["pod"]) == ("b", False)


def test_enforce_beats_a_nodes_accelerator(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    shared = {"sharedMemory": {"sizeLimit": "1Gi"}}
    big(review, extendedResources={"gpuAccelerator": {"device": "b"}, **shared})
    chain = "{enforce: [{use: gpu, with: {type: a}, when: {task: zoo.train}}]}"
    after = admitted(review, decide_with(review, chain, CATALOGUE))
    found = run_at(after)
    assert found["device"] is None
    assert found["pod"]["nodeSelector"] == {"gpu": "a", "size": "a-2"}
    assert found["shared_memory"] == shared["sharedMemory"]
    assert after["spec"]["nodes"]["big"]["extendedResources"] == shared


@pytest.mark.parametrize(
    ("stated", "step"),
    [
        ({"extendedResources": {"gpuAccelerator": {"device": "b"}}}, "{use: gpu, with: {type: a}}"),
        (
            {"resources": quantities("4", "4", name="nvidia.com/gpu")},
            "{use: gpu, with: {type: there, count: 8}}",
        ),
        ({"containerImage": "own:1"}, "{use: image, with: {image: 'chain:1'}}"),
        (
            {"resources": quantities("2", "2")},
            "{use: resources, with: {requests: {cpu: 1}, limits: {cpu: 1}}}",
        ),
    ],
    ids=["accelerator", "count", "image", "resources"],
)
def test_what_a_node_kept_off_is_kept_off_at_admit_too(
    stated: dict[str, Any], step: str, review: AdmissionReview, decide_with: DecideWith
) -> None:
    """There the node's words are the pod's: only the stamp says that the step has had its turn."""
    big(review, **stated)
    chain = f"{{steps: [{step}]}}"
    after = admitted(review, decide_with(review, chain, CATALOGUE))
    template = after["tasks"][after["spec"]["nodes"]["big"]["task"]]
    said = json.loads(template["metadata"]["metadata"]["annotations"][STAMP])
    assert (said["done"], said["deferred"]) == (1, [])
    assert run_at(after) == run_at(object_of(review))


def test_a_step_that_waits_goes_on_from_its_place_in_the_whole_chain(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    big(review, extendedResources={"gpuAccelerator": {"device": "b"}}, containerImage="own:1")
    late = "{use: probe.said_by, with: {field: attempt}}"
    image = "{use: image, with: {image: 'chain:1'}}"
    chain = f"{{steps: [{{use: gpu, with: {{type: a}}}}, {image}, {late}], enforce: [{TOLERATE}]}}"
    after = admitted(review, decide_with(review, chain, CATALOGUE))
    template = after["tasks"][after["spec"]["nodes"]["big"]["task"]]
    said = json.loads(template["metadata"]["metadata"]["annotations"][STAMP])
    assert (said["done"], said["deferred"]) == (2, ["probe.said_by", "tolerations"])
    assert run_at(after)["main"]["image"] == "own:1"


# a pod template of its own ---------------------------------------------------------------------


def test_the_chain_runs_over_a_nodes_own_pod(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    big(review, podTemplate=deep_copy(POD))
    chain = f"{{steps: [{TOLERATE}, {{use: labels, with: {{set: {{a: b}}}}}}]}}"
    decision = decide_with(review, chain)
    after = admitted(review, decision)
    before, found = run_at(object_of(review)), run_at(after)
    before["pod"]["tolerations"].append(SPOT)
    before["labels"]["a"] = "b"
    assert found == before
    assert "podTemplate" not in after["spec"]["nodes"]["big"]
    (inner,) = after["subWorkflows"].values()
    other = after["tasks"][inner["nodes"]["n0"]["task"]]
    assert [c["name"] for c in other["k8sPod"]["podSpec"]["containers"]] == ["primary"]
    assert patch_of(decide_with(again(review, after), chain)) == []


def test_a_nodes_own_pod_that_needs_nothing_stays_on_the_node(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    pod = deep_copy(POD)
    pod["pod_spec"]["tolerations"].append(SPOT)
    node = big(review, podTemplate=pod)
    after = admitted(review, decide_with(review, f"{{steps: [{TOLERATE}]}}"))
    assert after["spec"]["nodes"]["big"]["podTemplate"] == node["podTemplate"]
    template = after["tasks"][after["spec"]["nodes"]["big"]["task"]]
    assert template == object_of(review)["tasks"][node["task"]]


@pytest.mark.parametrize("selected", [True, False])
def test_a_nodes_own_pod_is_what_its_author_wrote_whatever_was_baked_in(
    selected: bool, review: AdmissionReview, tailor_of: TailorOf
) -> None:
    node = big(review, podTemplate=deep_copy(POD))
    old = tailor_of(
        "chains: {default: {steps: ["
        "{use: tolerations, with: {add: [{key: old, operator: Exists}]}},"
        "{use: labels, with: {set: {old: 'yes'}}}]}}"
    )
    obj = object_of(review)
    task = tailor_template(old, obj["tasks"][node["task"]])
    given = {"podSpec": POD["pod_spec"], "primaryContainerName": "main"}
    made = tailor_pod_template(old, {**given, "metadata": POD["metadata"]}, task).after
    assert UNDO in made["metadata"]["annotations"]
    node["podTemplate"] = {
        "metadata": made["metadata"],
        "pod_spec": made["podSpec"],
        "primary_container_name": "main",
    }
    baked = again(review, {**obj, "tasks": {**obj["tasks"], node["task"]: task.after}})
    select = "" if selected else "select: [{chain: null}]"
    new = tailor_of(f"chains: {{default: {{steps: [{TOLERATE}]}}}}\n{select}")
    after = admitted(baked, decide(baked, new))
    found = run_at(after)
    own = [{"key": "own", "operator": "Exists"}]
    assert found["pod"]["tolerations"] == ([*own, SPOT] if selected else own)
    assert found["labels"] == {"pod": "own"}
    assert "old" not in json.dumps(after["tasks"])
    if not selected:
        assert after["spec"]["nodes"]["big"]["podTemplate"] == POD


# what is no form at all ------------------------------------------------------------------------


@pytest.mark.parametrize("junk", [None, 1, "x", [], [1], {}, {"a": 1}, True])
@pytest.mark.parametrize(
    "field",
    ["resources", "extendedResources", "containerImage", "podTemplate", "retry", "activeDeadline"],
)
def test_a_node_of_any_form_gets_an_answer(
    field: str, junk: Any, review: AdmissionReview, decide_with: DecideWith
) -> None:
    chain = f"{{steps: [{TOLERATE}], enforce: [{{use: labels, with: {{set: {{a: b}}}}}}]}}"
    for value in (junk, {"limits": junk, "gpuAccelerator": junk, "pod_spec": junk}):
        big(review, **{field: value})
        assert decide_with(review, chain).outcome in ("patched", "denied")
    pod = {**POD, "metadata": junk, "pod_spec": {"containers": junk}}
    big(review, podTemplate=pod)
    assert decide_with(review, chain).outcome in ("patched", "denied")


@pytest.mark.parametrize("parts", [("requests",), ("limits",), ("requests", "limits"), ()])
@pytest.mark.parametrize("junk", [None, 1, "x", [], [1], {}, {"a": 1}, True])
def test_resources_of_any_form_get_an_answer(
    junk: Any, parts: tuple[str, ...], review: AdmissionReview, decide_with: DecideWith
) -> None:
    """Beside a node that states resources, and a step that changes some."""
    node = big(review, resources=quantities("3", "3"))
    task = object_of(review)["tasks"][node["task"]]
    del task["container"]
    own = {"name": "main", "image": "i", "resources": dict.fromkeys(parts, junk) or junk}
    task["k8sPod"] = {"podSpec": {"containers": [own]}}
    task["config"] = {"primary_container_name": "main"}
    chain = "{enforce: [{use: resources, with: {limits: {cpu: 4}}, when: {task: zoo.train}}]}"
    assert decide_with(review, chain).outcome in ("patched", "denied")
