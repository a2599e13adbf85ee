"""One execution's override: at `launch`, at `admit`, and what is refused of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kubetailor.plugins.execution.marks import EXECUTION_KEYS
from kubetailor.plugins.execution.override import JUDGED
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.tailoring import tailor_template
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.decision import Decision
from kubetailor.plugins.webhook.logs import log_decision
from kubetailor.plugins.webhook.reviews import AdmissionReview, dump
from kubetailor.registry.overrides.document import LIMITS, OVERRIDE
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Kind, Workload, deep_copy
from kubetailor.workloads.primary import PRIMARY_ANNOTATIONS

from .conftest import (
    again,
    answer_of,
    object_of,
    patch_of,
    patched,
    review_of,
    with_all_its_tasks,
)
from .test_node_overrides import CATALOGUE, run_at

JOBS = ["pytorchjob-n5-0", "mpijob-n6-0", "tfjob-n7-0", "rayjob-n8-0", "daskjob-n9-0"]
TailorOf = Callable[[str], Tailor]
Step = dict[str, Any]

CHAINS = """
chains:
  default:
    defaults: [{use: priority_class, with: {name: batch-low}}]
    steps:
      - {use: gpu, with: {type: a}, when: {requests: nvidia.com/gpu}}
      - {use: labels, with: {set: {who: steps, pays: steps}}}
    enforce: [{use: labels, with: {set: {pays: enforce}}}]
"""
CONFIG = CHAINS + CATALOGUE
H100: Step = {"use": "gpu", "with": {"type": "b"}, "when": {"node": "big"}}
LABELS: Step = {"use": "labels", "with": {"set": {"who": "override"}}}
STEPS_DO_IT: Step = {"use": "labels", "with": {"set": {"who": "steps"}}}


@pytest.fixture
def tailor(tailor_of: TailorOf) -> Tailor:
    return tailor_of(CONFIG)


@pytest.fixture
def review() -> AdmissionReview:
    return with_all_its_tasks(review_of("flyteworkflow"))


def annotated(review: AdmissionReview, **annotations: str) -> AdmissionReview:
    """The review of the object with more annotations."""
    obj = deep_copy(object_of(review))
    obj["metadata"]["annotations"] = {**obj["metadata"].get("annotations", {}), **annotations}
    return again(review, obj)


def text_of(*steps: Step) -> str:
    return json.dumps({"steps": steps})


def overridden(review: AdmissionReview, *steps: Step) -> AdmissionReview:
    """The review of an object of an execution with an override."""
    return annotated(review, **{OVERRIDE: text_of(*steps)})


def message(decision: Decision) -> str:
    """Why something may not come in; FlytePropeller takes it as final."""
    assert decision.outcome == "denied"
    status = answer_of(decision)["status"]
    assert status["code"] == 422
    return str(status["message"])


def template_at(obj: dict[str, Any], node: str) -> dict[str, Any]:
    spec = obj["spec"]["nodes"][node]
    found: dict[str, Any] = obj["tasks"][spec.get("array", {}).get("SubNodeSpec", spec)["task"]]
    return found


def inner(obj: dict[str, Any]) -> dict[str, Any]:
    """The node of the subworkflow; it runs the same task as `big`."""
    (graph,) = obj["subWorkflows"].values()
    found: dict[str, Any] = graph["nodes"]["n0"]
    return found


def labels(template: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = template["metadata"]["metadata"]["labels"]
    return found


def stamp_on(obj: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(obj["metadata"]["annotations"][STAMP])
    return found


# which container -------------------------------------------------------------------------------

ENFORCED = """
chains:
  default:
    enforce: [{use: resources, with: {limits: {cpu: 1}, requests: {cpu: 1}}}]
"""


@pytest.mark.parametrize("key", PRIMARY_ANNOTATIONS)
def test_nobody_who_launches_says_which_container_enforce_is_about(
    tailor_of: TailorOf, key: str
) -> None:
    tailor = tailor_of(ENFORCED)
    much = {"limits": {"cpu": "64"}, "requests": {"cpu": "64"}, "container": "main"}
    steps: list[Step] = [
        {"use": "annotations", "with": {"set": {key: "sidecar"}}, "when": {"phase": "admit"}},
        {"use": "resources", "with": much, "when": {"phase": "admit"}},
    ]
    pod = review_of("pod-n3-0")
    assert f"the key {key}; never by default" in message(decide(overridden(pod, *steps), tailor))
    after = patched(pod, decide(overridden(pod, steps[1]), tailor))
    assert after["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "1"
    given = annotated(review_of("flyteworkflow"), **{key: "sidecar"})
    assert f"metadata.annotations['{key}']" in message(decide(given, tailor))


# at launch -------------------------------------------------------------------------------------


def test_one_node_of_two_that_call_one_task_gets_another_gpu(
    review: AdmissionReview, tailor: Tailor
) -> None:
    plain = patched(review, decide(review, tailor))
    assert run_at(plain)["pod"]["nodeSelector"] == {"gpu": "a", "size": "a-4"}
    asked = overridden(review, H100)
    after = patched(asked, decide(asked, tailor))
    found = run_at(after)
    assert found["pod"]["nodeSelector"] == {"gpu": "b"}
    assert {"key": "b", "operator": "Exists"} in found["pod"]["tolerations"]
    assert found["resources"]["limits"]["nvidia.com/gpu"] == "4"
    task = after["tasks"][inner(after)["task"]]
    assert task["k8sPod"]["podSpec"]["nodeSelector"]["gpu"] == "a"
    others = after["spec"]["nodes"].keys() - {"big"}
    assert all(after["spec"]["nodes"][node] == plain["spec"]["nodes"][node] for node in others)


def test_it_stands_between_what_a_node_states_and_enforce(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    node = object_of(review)["spec"]["nodes"]["big"]
    node["resources"] = {part: {"cpu": "1", "memory": "1Gi"} for part in ("requests", "limits")}
    node["extendedResources"] = {"gpuAccelerator": {"device": "a"}}
    node["retry"] = {"minAttempts": 9}
    tailor = tailor_of(
        CONFIG.replace(
            "enforce: [",
            "enforce: [{use: resources, when: {task: zoo.train}, "
            "with: {requests: {memory: 3Gi}, limits: {memory: 3Gi}}}, ",
        )
    )
    cpu = {"cpu": "7", "memory": "7Gi"}
    review = overridden(
        review,
        H100,
        {"use": "resources", "with": {"requests": cpu, "limits": cpu}, "when": {"node": "big"}},
        {"use": "retries", "with": {"retries": 5}, "when": {"node": "big"}},
    )
    after = patched(review, decide(review, tailor))
    found = run_at(after)
    assert found["resources"]["limits"]["cpu"] == found["resources"]["requests"]["cpu"] == "7"
    assert found["resources"]["limits"]["memory"] == "3Gi"
    assert found["device"] in (None, "b")
    assert found["pod"]["nodeSelector"]["gpu"] == "b"
    node = after["spec"]["nodes"]["big"]
    assert node["retry"] == {"minAttempts": 6}
    assert patch_of(decide(again(review, after), tailor)) == []


def test_what_the_engine_reads_changes_for_all_nodes(
    review: AdmissionReview, tailor: Tailor
) -> None:
    object_of(review)["spec"]["nodes"]["n3"]["retry"] = {"minAttempts": 9}  # its own
    review = overridden(
        review,
        {"use": "retries", "with": {"retries": 5}},
        {"use": "cache", "with": {"cache": True, "version": "7"}},
        {"use": "timeout", "with": {"timeout": 90}},
        {"use": "interruptible", "with": {"interruptible": False}},
        {"use": "task_config", "with": {"replicas": 7}, "when": {"task_type": "pytorch"}},
    )
    after = patched(review, decide(review, tailor))
    nodes = [node for node in after["spec"]["nodes"].values() if node["kind"] == "task"]
    nodes += [inner(after), after["spec"]["nodes"]["n1"]["array"]["SubNodeSpec"]]
    for node in nodes:
        assert node["retry"] == {"minAttempts": 6}
        assert (node["executionDeadline"], node["activeDeadline"]) == ("90s", "180s")
        assert node["interruptible"] is False
        metadata = after["tasks"][node["task"]]["metadata"]
        assert (metadata["discoverable"], metadata["discoveryVersion"]) == (True, "7")
    assert template_at(after, "n5")["custom"]["workerReplicas"]["replicas"] == 7


def test_it_beats_steps_and_enforce_beats_it(review: AdmissionReview, tailor: Tailor) -> None:
    step = {"use": "labels", "with": {"set": {"who": "override", "pays": "override"}}}
    review = overridden(review, step)
    after = patched(review, decide(review, tailor))
    for template in after["tasks"].values():
        found = labels(template)
        assert (found["who"], found["pays"]) == ("override", "enforce")


def test_a_second_pass_changes_and_refuses_nothing(review: AdmissionReview, tailor: Tailor) -> None:
    retried = {"use": "retries", "with": {"retries": 5}, "when": {"node": "n0"}}
    review = overridden(review, H100, LABELS, retried)
    first = decide(review, tailor)
    second = decide(again(review, patched(review, first)), tailor)
    assert (second.outcome, patch_of(second)) == ("unchanged", [])


@pytest.mark.parametrize("name", ["pod-n0-0", "pod-n1-0-n2-0", "pod-n12-0-n0-0", *JOBS])
def test_the_stamp_names_registration_chain_and_override(name: str, tailor: Tailor) -> None:
    review = overridden(review_of(name), LABELS)
    after = patched(review, decide(review, tailor))
    said = stamp_on(after)
    env = next(
        {each["name"]: each.get("value") for each in container["env"]}
        for pod in Workload(after, kind_of(tailor, after)).pods()
        for container in pod.peek("containers")
        if container.get("env")
    )
    assert said["task"] == env["FLYTE_INTERNAL_TASK_NAME"]
    assert said["version"] == env["FLYTE_INTERNAL_TASK_VERSION"]
    assert said["digest"] == tailor.config.chain("default").digest
    assert said["override"] == tailor.config.overrides.read(text_of(LABELS)).digest
    # The same again, in any process, is the same byte for byte.
    assert dump(patched(review, decide(review, tailor))) == dump(after)


def kind_of(tailor: Tailor, obj: dict[str, Any]) -> Kind:
    found = tailor.config.plugins.kinds.of(obj)
    assert found is not None
    return found


def test_the_stamp_names_it(review: AdmissionReview, tailor: Tailor) -> None:
    review = overridden(review, LABELS)
    digest = tailor.config.overrides.read(text_of(LABELS)).digest
    template = template_at(patched(review, decide(review, tailor)), "n0")
    said = stamp_on(template["metadata"])
    assert (said["override"], said["deferred"]) == (digest, [])
    assert said["digest"] == tailor.config.chain("default").digest


@pytest.mark.parametrize("name", ["flyteworkflow", "pod-big-0", "pytorchjob-n5-0"])
def test_log_and_audit_name_it(name: str, tailor: Tailor, capfdbinary: Any) -> None:
    plain = decide(review_of(name), tailor)
    assert (plain.override, "override" in answer_of(plain)["auditAnnotations"]) == ("", False)
    asked = overridden(review_of(name), LABELS)
    decision = decide(asked, tailor)
    digest = tailor.config.overrides.read(text_of(LABELS)).digest
    assert decision.override == answer_of(decision)["auditAnnotations"]["override"] == digest
    log_decision(asked["request"], decision, 0.0)
    assert json.loads(capfdbinary.readouterr().out)["override"] == digest


def test_a_denial_names_it_too(review: AdmissionReview, tailor: Tailor) -> None:
    asked = overridden(review, STEPS_DO_IT)
    assert (
        decide(asked, tailor).override == tailor.config.overrides.read(text_of(STEPS_DO_IT)).digest
    )


def test_the_same_comes_out_whatever_was_registered(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    """Undo, then the chain of today, then the override: also where the chain is the same."""
    tailor = tailor_of(CONFIG)
    obj = object_of(review)
    asked = overridden(review, H100, LABELS)
    fresh = patched(asked, decide(asked, tailor))
    tasks = {key: tailor_template(tailor, task).after for key, task in obj["tasks"].items()}
    assert tasks != obj["tasks"]
    baked = overridden(again(review, {**obj, "tasks": tasks}), H100, LABELS)
    after = patched(baked, decide(baked, tailor))
    assert (after["spec"], after["tasks"]) == (fresh["spec"], fresh["tasks"])


def test_where_no_chain_is_selected_it_runs_alone(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    tailor = tailor_of(CONFIG + "select: [{chain: null}]")
    for each in (review, review_of("pod-n0-0")):
        assert decide(each, tailor).outcome in ("ignored", "unchanged", "patched")
        asked = overridden(each, LABELS)
        decision = decide(asked, tailor)
        after = patched(asked, decision)
        assert decision.steps == ("labels",)
        assert patch_of(decide(again(asked, after), tailor)) == []
    assert after["metadata"]["labels"]["who"] == "override"


def test_what_waits_for_admit_is_done_there(tailor: Tailor, review: AdmissionReview) -> None:
    step = {"use": "node_selector", "with": {"set": {"a": "b"}}, "when": {"role": "worker"}}
    asked = overridden(review, step)
    template = template_at(patched(asked, decide(asked, tailor)), "n5")
    said = template["metadata"]["metadata"]["annotations"][STAMP]
    assert json.loads(said)["deferred"] == ["node_selector", "labels"]
    job = overridden(annotated(review_of("pytorchjob-n5-0"), **{STAMP: said}), step)
    after = patched(job, decide(job, tailor))
    replicas = after["spec"]["pytorchReplicaSpecs"]
    found = {role: replicas[role]["template"]["spec"].get("nodeSelector") for role in replicas}
    assert found == {"Master": None, "Worker": {"a": "b"}}
    assert stamp_on(after)["deferred"] == []


@pytest.mark.parametrize(
    ("bindings", "matches"),
    [
        ([{"var": "size", "binding": {"scalar": {"primitive": {"integer": "3"}}}}], True),
        ([{"var": "size", "binding": {"scalar": {"primitive": {"integer": "4"}}}}], False),
        ([{"var": "size", "binding": {"promise": {"nodeId": "n0", "var": "o0"}}}], False),
        ([{"var": "x", "binding": {"scalar": {"primitive": {"integer": "9"}}}}], False),
        ([None, {}, {"var": 1}, {"var": "size"}, "junk"], False),
        ("junk", False),
    ],
)
def test_inputs_are_the_workflows_and_over_them_the_tasks(
    bindings: Any, matches: bool, review: AdmissionReview, tailor: Tailor
) -> None:
    object_of(review)["spec"]["nodes"]["big"]["inputBindings"] = bindings
    asked = overridden(review, {**LABELS, "when": {"inputs": {"size": 3, "x": 3}}})
    decision = decide(asked, tailor)
    if not matches:
        assert "matches no task" in message(decision)
        return
    after = patched(asked, decision)
    assert labels(template_at(after, "big"))["who"] == "override"
    assert labels(template_at(after, "n0"))["who"] == "steps"


# what is refused at launch ---------------------------------------------------------------------


def test_one_that_is_for_no_task_says_what_there_is(
    review: AdmissionReview, tailor: Tailor
) -> None:
    step = {**LABELS, "when": {"node": "bog"}}
    found = message(decide(overridden(review, LABELS, step), tailor))
    for part in (
        "step 'labels-2'",
        "matches no task",
        "bog",
        "did you mean big?",
        "`optional: true` allows",
    ):
        assert part in found, found
    allowed = overridden(review, {**step, "optional": True})
    assert decide(allowed, tailor).response["allowed"]


@pytest.mark.parametrize("step", [{**LABELS, "when": {"node": "bog"}}, STEPS_DO_IT])
def test_one_that_may_be_for_tasks_elsewhere_is_not_refused(step: Step, tailor: Tailor) -> None:
    decision = decide(overridden(review_of("flyteworkflow"), step), tailor)
    assert decision.response["allowed"]
    (warning,) = [each for each in decision.warnings if "not refused" in each]
    for part in ("'labels'", "node n13 launches zoo.child", "the task of node n11 makes tasks"):
        assert part in warning, warning
    optional = overridden(review_of("flyteworkflow"), {**step, "optional": True})
    assert not [each for each in decide(optional, tailor).warnings if "not refused" in each]


def test_what_is_in_it_is_judged_though_there_are_others(tailor: Tailor) -> None:
    step = {"use": "shared_memory", "with": {"container": "nobody"}, "when": {"node": "n0"}}
    assert "nobody" in message(decide(overridden(review_of("flyteworkflow"), step), tailor))


def test_one_that_changes_nothing_is_refused(review: AdmissionReview, tailor: Tailor) -> None:
    found = message(decide(overridden(review, STEPS_DO_IT), tailor))
    assert "it changes nothing" in found
    optional = {**STEPS_DO_IT, "optional": True}
    assert decide(overridden(review, optional), tailor).response["allowed"]


def test_what_has_no_place_is_an_error(review: AdmissionReview, tailor: Tailor) -> None:
    step = {"use": "shared_memory", "with": {"container": "nobody"}, "when": {"node": "n0"}}
    found = message(decide(overridden(review, step), tailor))
    for part in ("node n0", "'shared_memory'", "nobody"):
        assert part in found, found


def test_nothing_is_judged_where_the_chain_cannot_be_selected_yet(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    tailor = tailor_of(CONFIG + "select: [{when: {launch_plan: x}, chain: default}]")
    asked = overridden(review, {**LABELS, "when": {"node": "bog"}})
    assert decide(asked, tailor).response["allowed"]


# what is refused anywhere ----------------------------------------------------------------------

ANYWHERE = ["flyteworkflow", "flyteworkflow-child", "pod-n0-0", "pytorchjob-n5-0", "rayjob-n8-0"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "expected a map"),
        ("{", "kubetailor.dev/override:2:1: not YAML"),
        ("{}", "steps"),
        ("{steps: [{use: lables}]}", "labels"),
        (
            text_of({"use": "labels", "with": {"set": {"a": "x" * LIMITS.bytes}}}),
            f"at most {LIMITS.bytes}",
        ),
        (text_of(*[LABELS] * 33), "at most 32"),
        (text_of({"use": "image", "with": {"image": "mine:1"}}), "image may not be overridden"),
        (text_of({"use": "labels", "with": {"set": {"kubetailor.dev/x": "y"}}}), "never"),
        (text_of({"use": "env", "with": {"set": {"LD_PRELOAD": "y"}}}), "LD_PRELOAD"),
    ],
)
@pytest.mark.parametrize("name", ANYWHERE)
def test_what_cannot_be_or_may_not_be_is_denied(
    name: str, text: str, said: str, tailor: Tailor
) -> None:
    asked = annotated(review_of(name), **{OVERRIDE: text})
    assert said in message(decide(asked, tailor))


@pytest.mark.parametrize("name", ANYWHERE)
def test_one_that_is_no_text_is_denied(name: str, tailor: Tailor) -> None:
    review = review_of(name)
    object_of(review)["metadata"]["annotations"] = {OVERRIDE: {"steps": []}}
    assert OVERRIDE in message(decide(review, tailor))


OVERRIDABLE = """
overridable:
  - {use: gpu, when: {project: flytesnacks}, allow: {type: {in: [a]}}}
  - {use: labels, when: {domain: production}}
"""


@pytest.mark.parametrize("name", ["flyteworkflow", "pod-big-0"])
@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"use": "gpu", "with": {"type": "b"}}, "allowed: a"),
        (LABELS, "only where"),
        ({"use": "retries", "with": {"retries": 5}}, "retries may not be overridden"),
    ],
)
def test_the_rule_that_refuses_is_named(
    name: str, step: Step, said: str, tailor_of: TailorOf
) -> None:
    found = message(decide(overridden(review_of(name), step), tailor_of(CONFIG + OVERRIDABLE)))
    assert said in found, found
    assert "kubetailor.yaml:" in found


def test_no_stamp_and_no_mark_lets_in_what_may_not_be(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    """Whoever may launch may write both."""
    tailor = tailor_of(CONFIG + OVERRIDABLE)
    steps = ({"use": "gpu", "with": {"type": "b"}},)
    forged = annotated(review, **{JUDGED: "sha256:0"})
    assert "allowed: a" in message(decide(overridden(forged, *steps), tailor))
    said = {"chain": "default", "digest": tailor.config.chain("default").digest, "done": 99}
    for override in (None, "sha256:0"):
        pod = annotated(
            review_of("pod-big-0"), **{STAMP: json.dumps({**said, "override": override})}
        )
        assert "allowed: a" in message(decide(overridden(pod, *steps), tailor))


# at admit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pod-big-0", "pytorchjob-n5-0", "rayjob-n8-0", "daskjob-n9-0"])
def test_what_kubernetes_knows_is_changed_at_admit(name: str, tailor: Tailor) -> None:
    step = {"use": "labels", "with": {"set": {"who": "override", "pays": "override"}}}
    asked = overridden(review_of(name), step, {"use": "retries", "with": {"retries": 5}})
    decision = decide(asked, tailor)
    after = patched(asked, decision)
    found = after["metadata"]["labels"]
    assert (found["who"], found["pays"]) == ("override", "enforce")
    assert stamp_on(after)["override"] is not None
    assert decision.inapplicable == 1
    assert patch_of(decide(again(asked, after), tailor)) == []


def gpu_of(pod: dict[str, Any]) -> Any:
    """What a pod requires of the node label `gpu`."""
    required = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return next(e["values"] for e in term["matchExpressions"] if e["key"] == "gpu")


def test_a_pod_gets_another_gpu(tailor: Tailor) -> None:
    review = review_of("pod-big-0")
    plain = patched(review, decide(review, tailor))
    assert gpu_of(plain) == ["a"]
    asked = overridden(review, {"use": "gpu", "with": {"type": "b"}})
    after = patched(asked, decide(asked, tailor))
    assert gpu_of(after) == ["b"]
    assert {"key": "b", "operator": "Exists"} in after["spec"]["tolerations"]
    # As one whose chain ran before it was asked for: the steps are spared, the override is not.
    later = overridden(again(review, plain), {"use": "gpu", "with": {"type": "b"}})
    decision = decide(later, tailor)
    assert decision.steps == ("gpu",)
    assert gpu_of(patched(later, decision)) == ["b"]


def test_what_launch_did_is_not_done_again(tailor_of: TailorOf) -> None:
    tailor = tailor_of(CONFIG)
    digest = tailor.config.overrides.read(text_of(LABELS)).digest
    said = {"chain": "default", "digest": tailor.config.chain("default").digest, "done": 99}
    stamp = json.dumps({**said, "override": digest})
    asked = overridden(annotated(review_of("pod-n0-0"), **{STAMP: stamp}), LABELS)
    decision = decide(asked, tailor)
    assert decision.steps == ("labels",)
    found = patched(asked, decision)["metadata"]["labels"]
    assert "who" not in found
    assert found["pays"] == "enforce"


def test_after_a_change_of_the_config_steps_and_override_run_again(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    asked = overridden(review_of("pod-n0-0"), LABELS)
    before = patched(asked, decide(asked, tailor_of(CONFIG)))
    assert before["spec"].pop("priorityClassName") == "batch-low"
    now = tailor_of(CONFIG.replace("who: steps", "who: steps, new: step"))
    second = again(asked, before)
    after = patched(second, decide(second, now))
    found = after["metadata"]["labels"]
    assert (found["who"], found["new"], found["pays"]) == ("override", "step", "enforce")
    assert "priorityClassName" not in after["spec"]
    assert patch_of(decide(again(second, after), now)) == []


def test_labels_of_the_execution_beat_it(tailor: Tailor) -> None:
    """They were given with it, in so many words; `enforce` alone beats them."""
    keys = json.dumps({"labels": ["team", "pays"]})
    review = annotated(review_of("pod-n0-0"), **{EXECUTION_KEYS: keys})
    object_of(review)["metadata"]["labels"]["pays"] = "mine"
    step = {"use": "labels", "with": {"set": {"team": "o", "pays": "o", "who": "o"}}}
    asked = overridden(review, step)
    decision = decide(asked, tailor)
    found = patched(asked, decision)["metadata"]["labels"]
    assert (found["team"], found["pays"], found["who"]) == ("speech", "enforce", "o")
    assert any("team" in warning for warning in answer_of(decision)["warnings"])


# children --------------------------------------------------------------------------------------


def test_a_child_without_a_stamp_gets_what_is_for_pods(tailor: Tailor) -> None:
    asked = overridden(
        review_of("pod-n5-0-worker-0"), LABELS, {"use": "kueue", "with": {"queue": "mine"}}
    )
    after = patched(asked, decide(asked, tailor))
    assert after["metadata"]["labels"]["who"] == "override"
    assert "kueue.x-k8s.io/queue-name" not in after["metadata"]["labels"]


@pytest.mark.parametrize("name", ["pytorchjob-n5-0", "pod-n5-0-worker-0"])
@pytest.mark.parametrize(
    ("when", "allowed"),
    [
        ("{kind: PyTorchJob}", True),
        ("{api_group: kubeflow.org}", True),
        ("{task_type: pytorch}", True),
        ("{kind: Pod}", False),
    ],
)
def test_a_rule_sees_a_child_as_what_its_task_makes(
    name: str, when: str, allowed: bool, tailor_of: TailorOf
) -> None:
    """A job that nothing changes has no stamp: its pods must not be refused what it was allowed."""
    rules = f"overridable: [{{use: labels, when: {when}}}]"
    decision = decide(overridden(review_of(name), LABELS), tailor_of("chains: {}\n" + rules))
    assert decision.response["allowed"] is allowed


@pytest.mark.parametrize("name", ["rayjob-n8-0", "raycluster-n8-0", "pod-n8-0-head"])
def test_so_does_one_about_the_root_of_its_parent(name: str, tailor_of: TailorOf) -> None:
    rules = "overridable: [{use: labels, when: {kind: RayJob}}]"
    decision = decide(overridden(review_of(name), LABELS), tailor_of("chains: {}\n" + rules))
    assert decision.outcome == "patched"


@pytest.mark.parametrize("steps", [(LABELS,), ({"use": "image", "with": {"image": "mine:1"}},)])
def test_a_child_with_one_is_left_alone_also_where_it_may_be_no_more(
    steps: tuple[Step, ...], tailor: Tailor
) -> None:
    said = json.dumps({"chain": "default", "digest": "sha256:0", "done": 1})
    review = annotated(review_of("pod-n5-0-worker-0"), **{STAMP: said})
    object_of(review)["metadata"]["labels"]["pays"] = "enforce"
    assert decide(overridden(review, *steps), tailor).outcome == "unchanged"


def test_a_child_execution_inherits_it_and_need_not_be_its_target(
    review: AdmissionReview, tailor: Tailor
) -> None:
    """FlytePropeller gives a child execution the annotations of its parent's FlyteWorkflow."""
    only = {**LABELS, "when": {"node": "big"}}
    train = {"use": "retries", "with": {"retries": 5}, "when": {"task": "*.train"}}
    for steps, attempts in (((only,), 3), ((only, train), 6)):
        parent = overridden(review, *steps)
        annotations = patched(parent, decide(parent, tailor))["metadata"]["annotations"]
        assert annotations[OVERRIDE] == text_of(*steps)
        child = annotated(review_of("flyteworkflow-child"), **annotations)
        after = patched(child, decide(child, tailor))
        assert after["spec"]["nodes"]["n0"]["retry"] == {"minAttempts": attempts}
        assert labels(template_at(after, "n0"))["who"] == "steps"
        assert after["metadata"]["annotations"][JUDGED] == annotations[JUDGED]
    alone = overridden(review_of("flyteworkflow-child"), only)
    assert "matches no task" in message(decide(alone, tailor))


def test_another_override_than_the_one_that_was_judged_is_judged(
    review: AdmissionReview, tailor: Tailor
) -> None:
    first = overridden(review, LABELS)
    judged = patched(first, decide(first, tailor))["metadata"]["annotations"][JUDGED]
    asked = overridden(annotated(review, **{JUDGED: judged}), {**LABELS, "when": {"node": "bog"}})
    assert "matches no task" in message(decide(asked, tailor))
    # And no mark stays without an override.
    plain = annotated(review, **{JUDGED: judged})
    assert JUDGED not in patched(plain, decide(plain, tailor))["metadata"]["annotations"]


# an offloaded closure --------------------------------------------------------------------------


def test_what_is_lost_where_no_task_is_seen_is_said(
    review: AdmissionReview, tailor: Tailor
) -> None:
    obj = object_of(review)
    for name in ("tasks", "spec", "subWorkflows"):
        del obj[name]
    obj["workflowClosureReference"] = "s3://flyte/closure.pb"
    asked = overridden(
        review,
        LABELS,
        {"use": "retries", "with": {"retries": 5}},
        {"use": "env", "with": {"set": {"A": "b"}}, "when": {"inputs": {"x": 3}}},
    )
    decision = decide(asked, tailor)
    assert decision.response["allowed"]
    assert decision.offloaded
    warnings = answer_of(decision)["warnings"]
    assert list(decision.warnings) == warnings
    assert [("'retries'" in w, "'env'" in w) for w in warnings] == [(True, False), (False, True)]
    assert "task templates" in warnings[0]
    assert "`when` reads inputs" in warnings[1]
