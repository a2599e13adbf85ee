"""What is decided of the objects of one real execution."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubetailor.plugins.execution.marks import EXECUTION_KEYS
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.decision import Decision
from kubetailor.plugins.webhook.limits import TIME_LIMIT, Limits
from kubetailor.plugins.webhook.reviews import AdmissionReview, parse
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Workload, deep_copy

from .conftest import NAMES, again, answer_of, object_of, patch_of, patched, review_of

DecideWith = Callable[..., Decision]
TailorOf = Callable[[str], Tailor]

SPOT = "{use: tolerations, with: {add: [{key: spot, operator: Exists}]}}"
LABEL = "{use: labels, with: {set: {team: platform}}}"
QUEUE = "{use: kueue, with: {queue: team-speech}}"
CHAIN = f"""
    defaults: [{{use: priority_class, with: {{name: batch-low}}}}]
    steps: [{SPOT}, {LABEL}, {QUEUE}]
    enforce: [{{use: labels, with: {{set: {{cost-centre: speech}}}}}}]
"""
CHAIN_IN_LINE = f"""{{
    defaults: [{{use: priority_class, with: {{name: batch-low}}}}],
    steps: [{SPOT}, {LABEL}, {QUEUE}],
    enforce: [{{use: labels, with: {{set: {{cost-centre: speech}}}}}}]}}"""
TASKS = [name for name in NAMES if not name.startswith("flyteworkflow")]


def annotated(review: AdmissionReview, **annotations: Any) -> AdmissionReview:
    """The review of the object with more annotations; they are JSON."""
    obj = deep_copy(object_of(review))
    texts = {name.replace("__", "/"): json.dumps(value) for name, value in annotations.items()}
    obj["metadata"].setdefault("annotations", {}).update(texts)
    return again(review, obj)


def stamp(chain: str = "default", digest: str = "", done: int = 1, **said: Any) -> dict[str, Any]:
    return {"chain": chain, "digest": digest, "done": done, "deferred": [], **said}


def with_stamp(review: AdmissionReview, **said: Any) -> AdmissionReview:
    return annotated(review, **{STAMP: stamp(**said)})


# every kind ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_an_object_is_tailored_once(name: str, decide_with: DecideWith) -> None:
    review = review_of(name)
    before = deep_copy(review)
    decision = decide_with(review, CHAIN)
    assert decision.outcome == "patched"
    assert answer_of(decision)["uid"] == review["request"]["uid"]
    assert review == before
    second = again(review, patched(review, decision))
    assert patch_of(decide_with(second, CHAIN)) == []


@pytest.mark.parametrize("name", TASKS)
def test_an_empty_chain_changes_nothing(name: str, decide_with: DecideWith) -> None:
    decision = decide_with(review_of(name), "{steps: []}")
    assert (decision.outcome, patch_of(decision)) == ("unchanged", [])


@pytest.mark.parametrize("name", TASKS)
def test_a_patch_replaces_no_list(name: str, decide_with: DecideWith) -> None:
    for op in patch_of(decide_with(review_of(name), CHAIN)):
        assert op["op"] == "add" or not isinstance(op.get("value"), list), op
        assert not op["path"].endswith(("/containers", "/env", "/volumes"))


def test_a_pod_without_a_name_yet_is_tailored(decide_with: DecideWith) -> None:
    review = review_of("pod-n8-0-head")
    assert "name" not in review["request"]
    assert decide_with(review, CHAIN).outcome == "patched"


def test_a_dry_run_is_decided_as_any_other(decide_with: DecideWith) -> None:
    review = review_of("pod-n0-0")
    dry = parse(json.dumps({**review, "request": {**review["request"], "dryRun": True}}).encode())
    assert decide_with(dry, CHAIN).response == decide_with(review, CHAIN).response


# what is no business of ours -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"operation": "UPDATE"}, "UPDATE"),
        ({"operation": "DELETE", "object": None}, "DELETE"),
        ({"operation": "CONNECT", "object": None}, "CONNECT"),
        ({"subResource": "binding"}, "binding"),
        ({"object": {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}}, "pods"),
    ],
)
def test_it_is_allowed_untouched(
    changes: dict[str, Any], reason: str, decide_with: DecideWith
) -> None:
    request = {**review_of("pod-n0-0")["request"], **changes}
    review = parse(json.dumps({**review_of("pod-n0-0"), "request": request}).encode())
    decision = decide_with(review, CHAIN)
    assert decision.outcome == "ignored"
    assert reason in decision.reason
    assert decision.response == {"uid": request["uid"], "allowed": True}


def test_no_chain_is_selected(decide_with: DecideWith) -> None:
    rest = "select: [{when: {domain: production}, chain: default}]"
    decision = decide_with(review_of("pod-n0-0"), CHAIN, rest)
    assert (decision.outcome, patch_of(decision)) == ("ignored", [])


# what is known of the task ---------------------------------------------------------------------


def test_a_chain_is_selected_by_what_is_known(tailor_of: TailorOf) -> None:
    tailor = tailor_of(
        f"""
chains:
  inner: {{steps: [{SPOT}]}}
  other: {{steps: [{LABEL}]}}
select:
  - when: {{workflow: zoo.inner, task: "zoo.t*", domain: development, project: flytesnacks}}
    chain: inner
  - {{chain: other}}
"""
    )
    assert decide(review_of("pod-child-n0-0"), tailor).chain == "inner"
    assert decide(review_of("pod-n12-0-n0-0"), tailor).chain == "other"


def test_what_cannot_be_known_does_not_match_and_is_counted(decide_with: DecideWith) -> None:
    chain = "{steps: [{use: probe.said_by, with: {field: launch_plan}}]}"
    decision = decide_with(review_of("pod-n0-0"), chain)
    assert (decision.outcome, decision.undecided) == ("unchanged", 1)


def test_of_a_pod_that_is_not_flytes_everything_is_known_to_be_absent(
    decide_with: DecideWith,
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine"},
        "spec": {"containers": [{"name": "main", "image": "img"}]},
    }
    chain = "{steps: [{use: probe.said_by, with: {field: launch_plan}}]}"
    review = again(review_of("pod-n0-0"), pod)
    decision = decide_with(review, chain)
    annotations = patched(review, decision)["metadata"]["annotations"]
    assert annotations["example.com/launch_plan"] == "None"


# unset at admit --------------------------------------------------------------------------------


def test_what_the_api_server_filled_in_counts_as_unset(decide_with: DecideWith) -> None:
    review = review_of("pod-n0-0")
    spec = object_of(review)["spec"]
    assert (spec["priority"], spec["schedulerName"]) == (0, "default-scheduler")
    chain = """
    defaults:
      - {use: priority_class, with: {name: batch-low}}
      - {use: probe.class_name, with: {field: schedulerName, name: gang}}
      - use: tolerations
        with: {add: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}]}
"""
    after = patched(review, decide_with(review, chain))["spec"]
    assert after["priorityClassName"] == "batch-low"
    assert after["schedulerName"] == "gang"
    assert not {"priority", "preemptionPolicy"} & after.keys()
    assert after["tolerations"] == [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        spec["tolerations"][1],
    ]


def test_what_the_author_set_is_set(decide_with: DecideWith) -> None:
    review = review_of("pod-n0-0")
    spec = object_of(review)["spec"]
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 9}
    spec |= {
        "schedulerName": "volcano",
        "priorityClassName": "high",
        "priority": 1000,
        "tolerations": [{**own, "effect": "NoExecute"}],
    }
    chain = """
    defaults:
      - {use: priority_class, with: {name: batch-low}}
      - {use: probe.class_name, with: {field: schedulerName, name: gang}}
      - use: tolerations
        with: {add: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}]}
"""
    decision = decide_with(review, chain)
    assert patch_of(decision) == []


def test_what_a_plugin_derived_is_derived_again(decide_with: DecideWith) -> None:
    review = review_of("pod-n0-0")
    obj = object_of(review)
    token = {"name": "kube-api-access-x7d2p", "projected": {"sources": []}}
    mount = {"name": token["name"], "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    obj["spec"] |= {
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "runtimeClassName": "gvisor",
        "overhead": {"cpu": "1"},
        "volumes": [{"name": "mine", "emptyDir": {}}, token],
    }
    obj["spec"]["containers"][0]["volumeMounts"] = [mount]
    chain = """
    steps:
      - {use: priority_class, with: {name: batch-high}}
      - {use: probe.class_name, with: {field: runtimeClassName, name: nvidia}}
      - {use: probe.class_name, with: {field: serviceAccountName, name: trainer}}
"""
    after = patched(review, decide_with(review, chain))["spec"]
    assert after["serviceAccountName"] == "trainer"
    assert after["volumes"] == [{"name": "mine", "emptyDir": {}}]
    derived = {"priority", "preemptionPolicy", "overhead", "serviceAccount"}
    assert not derived & after.keys()
    assert "volumeMounts" not in after["containers"][0]


# the stamp -------------------------------------------------------------------------------------


def test_a_change_is_stamped_on_the_object_and_its_pods(decide_with: DecideWith) -> None:
    review = review_of("pytorchjob-n5-0")
    decision = decide_with(review, CHAIN)
    after = patched(review, decision)
    replicas = after["spec"]["pytorchReplicaSpecs"].values()
    places = [after, *(replica["template"] for replica in replicas)]
    texts = {place["metadata"]["annotations"][STAMP] for place in places}
    assert len(places) == 3
    assert len(texts) == 1
    said = json.loads(texts.pop())
    assert said["chain"] == "default"
    assert said["digest"] == decision.digest
    assert (said["task"], said["version"]) == ("zoo.torch_job", "v1")
    assert (said["done"], said["deferred"]) == (5, [])


def test_without_a_change_nothing_is_stamped(decide_with: DecideWith) -> None:
    chain = f"{{steps: [{{use: labels, with: {{set: {{a: b}}}}, when: {{kind: Job}}}}, {SPOT}]}}"
    review = review_of("pod-n0-0")
    object_of(review)["spec"]["tolerations"].append({"key": "spot", "operator": "Exists"})
    assert patch_of(decide_with(review, chain)) == []


def test_the_same_chain_goes_on_at_the_first_deferred_step(decide_with: DecideWith) -> None:
    chain = (
        f"{{defaults: [{{use: priority_class, with: {{name: low}}}}], steps: [{SPOT}, {LABEL}]}}"
    )
    digest = decide_with(review_of("pod-n0-0"), chain).digest
    review = with_stamp(review_of("pod-n0-0"), digest=digest, done=2, deferred=["labels"])
    decision = decide_with(review, chain)
    assert decision.steps == ("labels",)
    said = json.loads(patched(review, decision)["metadata"]["annotations"][STAMP])
    assert (said["done"], said["deferred"]) == (3, [])


def test_another_chain_runs_its_steps_without_defaults_and_says_what_ran_before(
    decide_with: DecideWith,
) -> None:
    decision = decide_with(with_stamp(review_of("pod-n0-0"), chain="old", digest="sha256:0"), CHAIN)
    assert "priority_class" not in decision.steps
    assert {"tolerations", "labels"} <= set(decision.steps)
    assert "'old'" in answer_of(decision)["warnings"][0]


def test_a_stamp_of_which_no_step_has_run_is_none(decide_with: DecideWith) -> None:
    review = with_stamp(review_of("pod-n0-0"), chain="old", digest="sha256:0", done=0)
    assert "priority_class" in decide_with(review, CHAIN).steps


def test_a_forged_stamp_spares_nothing_that_is_enforced(decide_with: DecideWith) -> None:
    digest = decide_with(review_of("pod-n0-0"), CHAIN).digest
    for done in (5, 10**9):
        review = with_stamp(review_of("pod-n0-0"), digest=digest, done=done)
        decision = decide_with(review, CHAIN)
        assert decision.steps == ("labels",)
        labels = patched(review, decision)["metadata"]["labels"]
        assert (labels["cost-centre"], labels["team"]) == ("speech", "speech")


@pytest.mark.parametrize("name", ["pod-n0-0", "pod-n5-0-worker-0", "pytorchjob-n5-0"])
def test_a_forged_stamp_spares_no_validation(name: str, tmp_path: Path) -> None:
    (tmp_path / "strict_team.py").write_text(
        "from kubetailor.registry import hookimpl\n"
        "@hookimpl\n"
        "def validate(workload):\n"
        "    if workload.labels: yield 'no labels'\n"
    )
    file = tmp_path / "kubetailor.yaml"
    file.write_text(
        f"plugins: [./strict_team.py]\nphases: [admit]\nchains: {{default: {{steps: [{SPOT}]}}}}\n"
    )
    tailor = Tailor.find(file, environ={})
    assert tailor is not None
    real = decide(review_of(name), tailor)
    assert answer_of(real)["status"]["code"] == 422
    for digest in (real.digest, "sha256:0"):
        review = with_stamp(review_of(name), digest=digest)
        kind = tailor.kind_of(object_of(review))
        assert kind is not None
        for pod in Workload(object_of(review), kind).pods():
            pod.peek()["tolerations"] = [{"key": "spot", "operator": "Exists"}]
        status = answer_of(decide(review, tailor))["status"]
        assert status["code"] == 422
        assert "no labels (validate of plugin strict_team)" in status["message"]
        object_of(review)["metadata"].pop("labels")
        assert decide(review, tailor).outcome in ("unchanged", "patched")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"x"',
        '{"chain": "default"}',
        '{"chain": 1, "digest": "x", "done": 1}',
        '{"chain": "default", "digest": "x", "done": true}',
        '{"chain": "default", "digest": "x", "done": -1}',
        '{"chain": "default", "digest": "x", "done": "1"}',
        '{"chain": "default", "digest": "x", "done": 1, "task": []}',
        "[" * 100_000,
        # What Python reads and cannot be written again
        '{"chain": "\\ud800", "digest": "x", "done": 1}',
        '{"chain": "default", "digest": "x", "done": 1, "task": "\\ud800"}',
        f'{{"chain": "default", "digest": "x", "done": {"9" * 30}}}',
        f'{{"chain": "default", "digest": "x", "done": {"9" * 5000}}}',
        '{"chain": "default", "digest": "x", "done": 1, "more": NaN}',
        # It would be written on each of thousands of pods
        f'{{"chain": "{"a" * 20_000}", "digest": "x", "done": 1}}',
    ],
)
def test_a_stamp_that_cannot_be_read_is_none(text: str, decide_with: DecideWith) -> None:
    review = review_of("pod-n0-0")
    object_of(review)["metadata"]["annotations"][STAMP] = text
    assert "priority_class" in decide_with(review, CHAIN).steps


def test_a_stamp_of_another_task_is_not_read(decide_with: DecideWith) -> None:
    digest = decide_with(review_of("pod-n0-0"), CHAIN).digest
    said = {"digest": digest, "done": 5, "task": "zoo.train", "version": "v1"}
    decision = decide_with(with_stamp(review_of("pod-n0-0"), **said), CHAIN)
    assert "priority_class" in decision.steps
    assert "zoo.train" in answer_of(decision)["warnings"][0]


def test_the_stamp_of_a_job_goes_on_to_its_pods(decide_with: DecideWith) -> None:
    # A container task's stamp is on its object alone; without it the pods would be tailored again.
    digest = decide_with(review_of("pytorchjob-n5-0"), f"{{steps: [{SPOT}]}}").digest
    review = with_stamp(review_of("pytorchjob-n5-0"), digest=digest)
    after = patched(review, decide_with(review, f"{{steps: [{SPOT}]}}"))
    for replica in after["spec"]["pytorchReplicaSpecs"].values():
        assert STAMP in replica["template"]["metadata"]["annotations"]
        assert "tolerations" not in replica["template"]["spec"]


def test_what_a_registered_chain_left_and_todays_has_no_more(tailor_of: TailorOf) -> None:
    old = tailor_of(
        "chains: {default: {defaults: [{use: priority_class, with: {name: old}}],"
        "steps: [{use: tolerations, with: {add: [{key: old, operator: Exists}]}}]}}"
    )
    review = review_of("pod-n0-0")
    registered = again(review, patched(review, decide(review, old)))
    assert object_of(registered)["spec"]["priorityClassName"] == "old"
    decision = decide(registered, tailor_of(f"chains: {{default: {CHAIN_IN_LINE}}}"))
    after = patched(registered, decision)
    # There is no undo here: it stays, and a warning says so. Defaults are not filled in twice.
    keys = [toleration["key"] for toleration in after["spec"]["tolerations"]]
    assert {"old", "spot"} <= set(keys)
    assert after["spec"]["priorityClassName"] == "old"
    assert after["metadata"]["labels"]["cost-centre"] == "speech"
    (warning,) = answer_of(decision)["warnings"]
    assert "only the older one sets is still there" in warning
    assert json.loads(after["metadata"]["annotations"][STAMP])["digest"] == decision.digest
    second = decide(again(registered, after), tailor_of(f"chains: {{default: {CHAIN_IN_LINE}}}"))
    assert patch_of(second) == []


# children --------------------------------------------------------------------------------------


def operated(job: dict[str, Any], role: str, review: AdmissionReview) -> AdmissionReview:
    """The review of the pod that the training operator makes of a job's replica.

    training-operator, pkg/controller.v1/common/pod.go, `CreateNewPod`: the template whole, with
    labels of its own.
    """
    pod = deep_copy(object_of(review))
    template = deep_copy(job["spec"]["pytorchReplicaSpecs"][role]["template"])
    for field in ("labels", "annotations"):
        pod["metadata"][field] = {
            **template["metadata"].get(field, {}),
            **pod["metadata"].get(field, {}),
        }
    pod["spec"] = {**pod["spec"], **template["spec"]}
    return again(review, pod)


def test_a_config_that_changes_while_a_job_is_suspended_leaves_its_pods_alone(
    tailor_of: TailorOf,
) -> None:
    then = tailor_of(f"chains: {{default: {CHAIN_IN_LINE}}}")
    job = review_of("pytorchjob-n5-0")
    made = patched(job, decide(job, then))
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-speech"
    now = tailor_of(
        "chains: {default: {defaults: [{use: shared_memory, with: {size_limit: 1Gi}}],"
        "steps: [{use: tolerations, with: {add: [{key: new, operator: Exists}]}},"
        "{use: node_selector, with: {set: {pool: new}}},"
        "{use: env, with: {set: {NEW: '1'}}}],"
        "enforce: [{use: labels, with: {set: {cost-centre: speech}}}]}}"
    )
    for role, name in (("Master", "master-0"), ("Worker", "worker-0")):
        pod = operated(made, role, review_of(f"pod-n5-0-{name}"))
        assert patch_of(decide(pod, then)) == []
        decision = decide(pod, now)
        assert (decision.outcome, decision.warnings) == ("unchanged", ())
        text = Path(now.config.file).read_text().replace("speech", "science")
        denied = decide(pod, tailor_of(text.partition("phases: [serialize, launch, admit]\n")[2]))
        assert denied.outcome == "denied"
        assert "create the parent again" in answer_of(denied)["status"]["message"]


# children --------------------------------------------------------------------------------------


def test_a_stamped_child_is_left_alone_whatever_the_digest(decide_with: DecideWith) -> None:
    chain = f"{{steps: [{SPOT}, {LABEL}], defaults: [{{use: priority_class, with: {{name: x}}}}]}}"
    for digest in ("sha256:0", decide_with(review_of("pod-n5-0-worker-0"), chain).digest):
        review = with_stamp(review_of("pod-n5-0-worker-0"), digest=digest)
        assert decide_with(review, chain).outcome == "unchanged"


def test_enforce_denies_a_stamped_child_and_changes_nothing(decide_with: DecideWith) -> None:
    review = with_stamp(review_of("pod-n5-0-worker-0"), digest="sha256:0")
    chain = "{enforce: [{name: pays, use: labels, with: {set: {cost-centre: speech}}}]}"
    decision = decide_with(review, chain)
    assert decision.outcome == "denied"
    status = answer_of(decision)["status"]
    assert status["code"] == 422
    for part in ("'pays'", "'default'", "metadata.labels.cost-centre", "kubetailor.yaml:"):
        assert part in status["message"]
    object_of(review)["metadata"]["labels"]["cost-centre"] = "speech"
    assert decide_with(review, chain).outcome == "unchanged"


def test_what_is_wrong_with_a_childs_own_labels_is_not_the_chains(decide_with: DecideWith) -> None:
    """They are looked at as a copy, which is thrown away; the API server refuses them itself."""
    review = review_of("pod-n5-0-worker-0")
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "r", "uid": "u"}
    pod = {"metadata": {}, "spec": {"containers": [{"name": "ray-head", "image": "img"}]}}
    review["request"]["object"] = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": "r",
            "labels": {"team": [["x"]]},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"headGroupSpec": {"rayStartParams": {}, "template": pod}},
    }
    chain = """{steps: [{use: labels, with: {set: {team: speech}}}],
      enforce: [{use: labels, with: {set: {cost-centre: speech}}}]}"""
    first = decide_with(review, chain)
    assert first.outcome == "patched", first.reason
    review["request"]["object"] = patched(review, first)
    assert decide_with(review, chain).outcome == "unchanged"


def test_enforce_knows_its_work_as_the_api_server_keeps_it(decide_with: DecideWith) -> None:
    step = """{use: env, with: {set: {
      NONE: "",
      POD: {valueFrom: {fieldRef: {fieldPath: metadata.name}}},
      CPU: {valueFrom: {resourceFieldRef: {resource: limits.cpu}}}}}}"""
    secret = "{name: v, secret: {secretName: s}}"
    patch = f"{{use: patch, with: {{pod: {{hostNetwork: false, volumes: [{secret}]}}}}}}"
    chain = f"{{enforce: [{step}, {patch}]}}"
    review = with_stamp(review_of("pod-n5-0-worker-0"), digest="sha256:0")
    spec = object_of(review)["spec"]
    spec["containers"][0]["env"] += [
        {"name": "NONE"},
        {
            "name": "POD",
            "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
        },
        {
            "name": "CPU",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}},
        },
    ]
    volume = {"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]
    decision = decide_with(review, chain)
    assert (decision.outcome, decision.reason) == ("unchanged", "")
    spec["hostNetwork"] = True
    assert decide_with(review, chain).outcome == "denied"


def test_what_belongs_on_the_root_is_not_asked_of_a_child(decide_with: DecideWith) -> None:
    chain = f"""
    enforce:
      - {QUEUE}
      - {{use: probe.cost_centre}}
      - {{use: labels, with: {{set: {{a: b}}, on: [object]}}}}
"""
    for review in (
        review_of("pod-n5-0-worker-0"),
        with_stamp(review_of("pod-n5-0-worker-0"), digest="sha256:0"),
        review_of("raycluster-n8-0"),
    ):
        assert patch_of(decide_with(review, chain)) == []


def test_an_unstamped_child_gets_what_is_for_pods(decide_with: DecideWith) -> None:
    review = review_of("pod-n5-0-worker-0")
    decision = decide_with(review, CHAIN)
    after = patched(review, decision)
    assert after["spec"]["priorityClassName"] == "batch-low"
    assert {"key": "spot", "operator": "Exists"} in after["spec"]["tolerations"]
    assert after["metadata"]["labels"]["cost-centre"] == "speech"
    assert "kueue.x-k8s.io/queue-name" not in after["metadata"]["labels"]
    assert not answer_of(decision).get("warnings")


def test_no_child_is_queued_or_suspended_whoever_tries(decide_with: DecideWith) -> None:
    chain = "{steps: [{use: probe.queued}, {use: probe.suspended}]}"
    review = review_of("raycluster-n8-0")
    after = patched(review, decide_with(review, chain))
    assert "suspend" not in after["spec"]
    assert "queue-name" not in json.dumps(after)
    root = review_of("rayjob-n8-0")
    assert "queue-name" in json.dumps(patched(root, decide_with(root, chain)))


@pytest.mark.parametrize(
    "step",
    [
        QUEUE,
        "{use: volcano, with: {queue: a}}",
        "{use: yunikorn, with: {queue: root.a}}",
        "{use: kai, with: {queue: a}}",
        "{use: pod_group, with: {count: 2, name: a}}",
        "{use: probe.enqueued}",
    ],
)
@pytest.mark.parametrize("layer", ["defaults", "steps", "enforce"])
def test_a_queue_is_the_roots_whoever_it_is_of(
    layer: str, step: str, decide_with: DecideWith
) -> None:
    chain = f"{{{layer}: [{step}]}}"
    for child in ("pod-n5-0-worker-0", "raycluster-n8-0"):
        decision = decide_with(review_of(child), chain)
        assert patch_of(decision) == []
        assert not answer_of(decision).get("warnings")
    if "pod_group" not in step:
        assert patch_of(decide_with(review_of("rayjob-n8-0"), chain))


def test_the_pods_of_a_map_task_are_one_group(decide_with: DecideWith) -> None:
    chain = "{steps: [{use: pod_group, with: {count: 3}}]}"
    for index in range(3):
        review = review_of(f"pod-n1-0-n{index}-0")
        metadata = patched(review, decide_with(review, chain))["metadata"]
        execution = metadata["labels"]["execution-id"]
        assert metadata["labels"]["kueue.x-k8s.io/pod-group-name"] == f"{execution}-n1"
        assert metadata["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "3"


def test_strict_denies_no_child_for_a_step_that_is_the_roots(decide_with: DecideWith) -> None:
    review = review_of("pod-n5-0-worker-0")
    assert decide_with(review, CHAIN, "strict: true").outcome == "patched"


@pytest.mark.parametrize("gpu", ["{use: gpu, with: {type: mine}}", "{use: probe.pooled}"])
def test_gpu_is_not_for_a_child_whose_root_kueue_manages(gpu: str, decide_with: DecideWith) -> None:
    rest = (
        "accelerators: {mine: {resource: nvidia.com/gpu, node_selector: {example.com/gpu: mine}}}"
    )
    review = review_of("pod-n5-0-worker-0")
    container = object_of(review)["spec"]["containers"][0]
    container["resources"]["limits"]["nvidia.com/gpu"] = "1"
    container["resources"]["requests"]["nvidia.com/gpu"] = "1"
    free = patched(review, decide_with(review, f"{{steps: [{gpu}]}}", rest))
    assert free["spec"]["nodeSelector"] == {"example.com/gpu": "mine"}
    assert patch_of(decide_with(review, f"{{steps: [{gpu}, {QUEUE}]}}", rest)) == []
    # As Kueue marks what it starts.
    object_of(review)["metadata"]["labels"]["kueue.x-k8s.io/podset"] = "worker"
    assert patch_of(decide_with(review, f"{{steps: [{gpu}]}}", rest)) == []


# the execution's own labels --------------------------------------------------------------------


def test_labels_of_the_execution_beat_steps_and_enforce_beats_them(decide_with: DecideWith) -> None:
    review = annotated(
        review_of("pytorchjob-n5-0"), **{EXECUTION_KEYS: {"labels": ["team", "cost-centre"]}}
    )
    object_of(review)["metadata"]["labels"]["cost-centre"] = "mine"
    decision = decide_with(review, CHAIN)
    after = patched(review, decision)
    assert after["metadata"]["labels"]["team"] == "speech"
    assert after["metadata"]["labels"]["cost-centre"] == "speech"
    for replica in after["spec"]["pytorchReplicaSpecs"].values():
        assert replica["template"]["metadata"]["labels"]["team"] == "speech"
        assert replica["template"]["metadata"]["labels"]["cost-centre"] == "speech"
    assert any("team" in warning for warning in answer_of(decision)["warnings"])
    second = again(review, after)
    assert patch_of(decide_with(second, CHAIN)) == []


@pytest.mark.parametrize("said", [[], {}, "x", {"labels": "team"}, {"labels": [1, None]}, 7])
def test_keys_that_cannot_be_read_are_none(said: Any, decide_with: DecideWith) -> None:
    review = annotated(review_of("pod-n0-0"), **{EXECUTION_KEYS: said})
    assert patched(review, decide_with(review, CHAIN))["metadata"]["labels"]["team"] == "platform"


# denials ---------------------------------------------------------------------------------------


def test_a_denial_names_chain_step_place_and_field(decide_with: DecideWith) -> None:
    chain = "{enforce: [{name: shm, use: shared_memory, with: {container: trainer}}]}"
    decision = decide_with(review_of("pod-n0-0"), chain)
    response = answer_of(decision)
    assert (decision.outcome, response["allowed"], response["status"]["code"]) == (
        "denied",
        False,
        422,
    )
    message = response["status"]["message"]
    for part in ("'default'", "'shm'", "kubetailor.yaml:4:", "spec.containers", "'trainer'"):
        assert part in message, message


def test_a_transformer_that_raises_denies(decide_with: DecideWith) -> None:
    decision = decide_with(review_of("pod-n0-0"), "{steps: [{use: probe.broken}]}")
    message = answer_of(decision)["status"]["message"]
    assert "RuntimeError: no such table" in message
    assert "probe.py:" in message
    assert "Traceback" not in message


def test_a_result_that_kubernetes_would_refuse_denies(decide_with: DecideWith) -> None:
    chain = "{steps: [{use: labels, with: {set: {team: 'not a label'}}}]}"
    decision = decide_with(review_of("pod-n0-0"), chain)
    assert answer_of(decision)["status"]["code"] == 422
    assert "metadata.labels" in answer_of(decision)["status"]["message"]


def test_a_kind_that_is_not_known_and_holds_containers_is_denied(decide_with: DecideWith) -> None:
    obj = {
        "apiVersion": "acme.example.com/v1",
        "kind": "Training",
        "metadata": {"name": "t"},
        "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}},
    }
    decision = decide_with(again(review_of("pod-n0-0"), obj), CHAIN)
    assert answer_of(decision)["status"]["code"] == 400
    assert "register_kinds" in answer_of(decision)["status"]["message"]


@pytest.mark.parametrize(
    ("name", "path", "field"),
    [
        ("pod-n0-0", ("spec", "tolerations"), "spec.tolerations"),
        ("pod-n0-0", ("metadata",), "metadata"),
        ("pod-n0-0", ("metadata", "labels"), "metadata.labels"),
        ("daskjob-n9-0", ("spec", "job", "spec"), "spec.job.spec"),
    ],
)
def test_an_object_of_the_wrong_form_is_denied_with_the_field(
    name: str, path: tuple[str, ...], field: str, decide_with: DecideWith
) -> None:
    review = review_of(name)
    holder: Any = object_of(review)
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = "junk"
    answer = answer_of(decide_with(review, CHAIN))
    assert answer["status"]["code"] in (400, 422)
    assert field in answer["status"]["message"]
    assert "expected" in answer["status"]["message"]


@pytest.mark.parametrize("depth", [50, 200, 300, 900])
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("pod-n0-0", ("spec",)),
        ("pod-n0-0", ("metadata", "annotations")),
        ("pod-n0-0", ("spec", "containers", 0)),
        ("pytorchjob-n5-0", ("spec", "pytorchReplicaSpecs", "Worker", "template", "spec")),
        ("flyteworkflow-child", ("spec", "nodes", "n0", "resources")),
        ("flyteworkflow-child", ("inputs",)),
    ],
)
def test_an_object_that_is_nested_deep_gets_an_answer(
    name: str, path: tuple[str | int, ...], depth: int, decide_with: DecideWith
) -> None:
    review = review_of(name)
    holder: Any = object_of(review)
    for key in path:
        holder = holder[key]
    deep: Any = []
    for _ in range(depth):
        deep = {"a": [deep]} if depth < 400 else [deep]
    holder["deep"] = deep
    decision = decide_with(review, CHAIN)
    assert decision.outcome in ("patched", "denied")
    if decision.outcome == "denied":
        status = answer_of(decision)["status"]
        assert status["code"] in (400, 422)
        assert any(word in status["message"] for word in ("nested", "expected")), status


def test_a_part_that_is_too_deep_to_be_written_is_denied(decide_with: DecideWith) -> None:
    review = review_of("flyteworkflow")
    obj = object_of(review)
    template = obj["tasks"][obj["spec"]["nodes"]["big"]["task"]]
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    template["custom"] = {"deep": deep}
    chain = "{steps: [{use: labels, with: {set: {a: b}}, when: {node: big}}]}"  # a copy is written
    status = answer_of(decide_with(review, chain))["status"]
    assert status["code"] == 400
    assert "nested deeper" in status["message"]


def test_a_pod_of_3_mb_is_tailored_within_the_limits(tailor_of: TailorOf) -> None:
    tailor = tailor_of(f"chains: {{default: {CHAIN_IN_LINE}}}")
    review = review_of("pod-n0-0")
    container = object_of(review)["spec"]["containers"][0]
    container["env"] += [{"name": f"V{number}", "value": "x" * 100} for number in range(24_000)]
    body = json.dumps(review).encode()
    assert len(body) > 3_000_000
    start = time.process_time()
    decision = Limits(TIME_LIMIT).run(decide, parse(body), tailor)
    assert time.process_time() - start < TIME_LIMIT / 2
    assert decision.outcome == "patched"
    assert len(json.dumps(patch_of(decision))) < 10_000


def test_no_denial_is_a_403() -> None:
    # FlytePropeller tries again on 403, and fails the task at once on 400 and 422.
    from kubetailor.plugins.webhook import reviews

    assert 403 not in reviews._REASONS


def test_the_answer_is_audited(decide_with: DecideWith) -> None:
    decision = decide_with(review_of("pod-n0-0"), CHAIN)
    assert answer_of(decision)["auditAnnotations"] == {
        "chain": "default",
        "digest": decision.digest,
        "steps": "priority_class,tolerations,labels,kueue",
    }


def test_what_is_about_task_templates_alone_is_counted_and_not_warned_of(
    decide_with: DecideWith,
) -> None:
    chain = (
        "{steps: [{use: retries, with: {retries: 3}}, {use: cache, with: {cache: false}}],"
        " enforce: [{use: timeout, with: {timeout: 60}}]}"
    )
    decision = decide_with(review_of("pod-n0-0"), chain)
    assert (decision.outcome, decision.inapplicable) == ("unchanged", 3)
    assert (decision.undecided, decision.warnings) == (0, ())
