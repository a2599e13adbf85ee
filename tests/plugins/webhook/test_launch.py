"""What is decided of one real execution, as FlyteAdmin makes it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubetailor.plugins.execution.marks import EXECUTION_KEYS
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.tailoring import tailor_template
from kubetailor.plugins.flyte.undo import UNDO
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.decision import Decision
from kubetailor.plugins.webhook.limits import TIME_LIMIT, Limits
from kubetailor.plugins.webhook.reviews import AdmissionReview, parse
from kubetailor.registry.tailor import Tailor

from .conftest import again, answer_of, object_of, patch_of, patched, review_of

DecideWith = Callable[..., Decision]
TailorOf = Callable[[str], Tailor]

SPOT = {"key": "spot", "operator": "Exists"}
CHAIN = """
    defaults: [{use: priority_class, with: {name: batch-low}}]
    steps:
      - {use: tolerations, with: {add: [{key: spot, operator: Exists}]}, when: {task: "zoo.t*"}}
      - {use: labels, with: {set: {big: "true"}}, when: {node: big}}
    enforce: [{use: labels, with: {set: {cost-centre: speech}}}]
"""


@pytest.fixture
def review() -> AdmissionReview:
    return review_of("flyteworkflow")


def key_of(obj: dict[str, Any], name: str) -> str:
    """The key of a task, by its template's own id: how keys are spelt is not stable."""
    keys = [key for key, task in obj["tasks"].items() if task["id"]["name"] == name]
    key: str = keys[0]
    return key


def template_at(obj: dict[str, Any], node: str, graph: dict[str, Any] | None = None) -> Any:
    """The template that the engine runs at a node."""
    spec = (graph or obj["spec"])["nodes"][node]
    if "array" in spec:
        spec = spec["array"]["SubNodeSpec"]
    return obj["tasks"][spec["task"]]


def inner(obj: dict[str, Any]) -> dict[str, Any]:
    """The subworkflow."""
    (graph,) = obj["subWorkflows"].values()
    found: dict[str, Any] = graph
    return found


def registered(review: AdmissionReview, tailor: Tailor) -> AdmissionReview:
    """The execution of the same workflow, registered with a chain on."""
    obj = object_of(review)
    tasks = {key: tailor_template(tailor, task).after for key, task in obj["tasks"].items()}
    return again(review, {**obj, "tasks": tasks})


def labels(template: Any) -> dict[str, str]:
    found: dict[str, str] = template["metadata"]["metadata"].get("labels", {})
    return found


def unstamped(value: Any) -> Any:
    """JSON data without stamps."""
    if isinstance(value, dict):
        return {k: unstamped(v) for k, v in value.items() if k != STAMP}
    return [unstamped(v) for v in value] if isinstance(value, list) else value


# templates and nodes ---------------------------------------------------------------------------


def test_every_task_is_tailored_once(review: AdmissionReview, decide_with: DecideWith) -> None:
    decision = decide_with(review, CHAIN)
    assert decision.outcome == "patched"
    after = patched(review, decision)
    for node in after["spec"]["nodes"].values():
        if node["kind"] in ("task", "array"):
            template = template_at(after, node["id"])
            assert labels(template)["cost-centre"] == "speech"
            said = json.loads(template["metadata"]["metadata"]["annotations"][STAMP])
            assert (said["task"], said["version"]) == (template["id"]["name"], "v1")
    assert decide_with(again(review, after), CHAIN).outcome == "unchanged"


def test_nodes_that_differ_have_templates_of_their_own(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    before = object_of(review)
    key = key_of(before, "zoo.train")
    assert before["spec"]["nodes"]["big"]["task"] == inner(before)["nodes"]["n0"]["task"] == key
    after = patched(review, decide_with(review, CHAIN))
    big, other = template_at(after, "big"), template_at(after, "n0", inner(after))
    assert labels(big)["big"] == "true"
    assert "big" not in labels(other)
    assert big["id"] == other["id"] == before["tasks"][key]["id"]
    assert len(after["tasks"]) == len(before["tasks"]) + 1
    for template in (big, other):
        assert SPOT in template["k8sPod"]["podSpec"]["tolerations"]


def test_nodes_that_do_not_differ_share_one(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    after = patched(review, decide_with(review, "{enforce: [{use: labels, with: {set: {a: b}}}]}"))
    assert after["tasks"].keys() == object_of(review)["tasks"].keys()


def test_a_map_task_is_known_by_the_node_of_the_map(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    chain = "{steps: [{use: labels, with: {set: {mapped: 'yes'}}, when: {node: n1}}]}"
    after = patched(review, decide_with(review, chain))
    assert labels(template_at(after, "n1")) == {"mapped": "yes"}
    assert "mapped" not in labels(template_at(after, "n0"))


def test_the_failure_node_is_a_node(review: AdmissionReview, decide_with: DecideWith) -> None:
    obj = object_of(review)
    obj["spec"]["onFailure"] = {**obj["spec"]["nodes"]["n0"], "id": "fn0"}
    chain = "{steps: [{use: labels, with: {set: {last: 'yes'}}, when: {node: fn0}}]}"
    after = patched(review, decide_with(review, chain))
    assert labels(after["tasks"][after["spec"]["onFailure"]["task"]])["last"] == "yes"
    assert "last" not in labels(template_at(after, "n0"))


def test_what_is_known_of_an_execution(review: AdmissionReview, tailor_of: TailorOf) -> None:
    tailor = tailor_of(
        """
chains:
  this: {enforce: [{use: labels, with: {set: {a: b}}}]}
select:
  - when:
      project: flytesnacks
      domain: development
      workflow: zoo.everything
      execution: adm74pqlsdkn7dpj6mlj
      namespace: flytesnacks-development
      version: v1
      task_type: pytorch
      phase: launch
      kind: PyTorchJob
      inputs: {x: 3}
    chain: this
"""
    )
    decision = decide(review, tailor)
    after = patched(review, decision)
    changed = [task["id"]["name"] for task in after["tasks"].values() if labels(task).get("a")]
    assert changed == ["zoo.torch_job"]


def test_what_is_not_known_yet_waits_for_admit(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    chain = "{steps: [{use: probe.said_by, with: {field: attempt}}], enforce: []}"
    after = patched(review, decide_with(review, chain))
    said = json.loads(template_at(after, "n0")["metadata"]["metadata"]["annotations"][STAMP])
    assert (said["done"], said["deferred"]) == (0, ["probe.said_by"])


@pytest.mark.parametrize("where", ["branch", "array", "nested", "gate", "child"])
def test_every_node_that_runs_a_task_is_found(
    where: str, review: AdmissionReview, decide_with: DecideWith
) -> None:
    obj = object_of(review)
    nodes = obj["spec"]["nodes"]
    task = {"kind": "task", "task": nodes["n0"]["task"], "resources": {}}
    own: dict[str, Any] = {**task, "id": "own"}
    added: dict[str, dict[str, Any]] = {
        # compiler/transformers/k8s/node.go: the nodes of a branch are beside it
        "branch": {
            "br": {"id": "br", "kind": "branch", "branch": {"if": {"then": "br-n0"}}},
            "br-n0": {**task, "id": "br-n0"},
        },
        "array": {"arr": {"id": "arr", "kind": "array", "array": {"SubNodeSpec": own}}},
        "nested": {
            "arr": {
                "id": "arr",
                "kind": "array",
                "array": {"SubNodeSpec": {"kind": "array", "array": {"SubNodeSpec": own}}},
            }
        },
        "gate": {"g": {"id": "g", "kind": "gate", "gate": {"kind": "sleep"}}},
        "child": {"lp": {"id": "lp", "kind": "workflow", "workflow": {"launchPlanRefId": {}}}},
    }[where]
    nodes |= added
    node = {"branch": "br-n0", "array": "arr", "nested": "arr"}.get(where, "none")
    chain = f"{{steps: [{{use: labels, with: {{set: {{found: 'yes'}}}}, when: {{node: {node}}}}}]}}"
    after = patched(review, decide_with(review, chain))
    found = [t for t in after["tasks"].values() if labels(t).get("found")]
    assert len(found) == (0 if node == "none" else 1)
    if found:
        spec = after["spec"]["nodes"][node]
        while "array" in spec:
            spec = spec["array"]["SubNodeSpec"]
        assert after["tasks"][spec["task"]] == found[0]
        assert after["spec"]["nodes"]["n0"]["task"] == nodes["n0"]["task"]


# after serialize -------------------------------------------------------------------------------


def test_the_result_is_todays_chain_whatever_was_baked_in(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    old = tailor_of(
        """
chains:
  default:
    defaults: [{use: priority_class, with: {name: old}}]
    steps:
      - {use: tolerations, with: {add: [{key: old, operator: Exists}]}}
      - {use: env, with: {set: {OLD: "1"}}, when: {role: [primary, head, worker, master]}}
      - {use: labels, with: {set: {team: old}}}
"""
    )
    baked = registered(review, old)
    assert "old" in json.dumps(baked["request"].get("object"))
    new = tailor_of(f"chains:\n  default: {CHAIN}")
    fresh, again_ = (patched(r, decide(r, new)) for r in (review, baked))
    assert unstamped(again_["tasks"]) == unstamped(fresh["tasks"])
    assert again_["spec"] == fresh["spec"]
    assert "old" not in json.dumps(again_["tasks"])


def test_the_same_chain_goes_on_at_the_first_deferred_step(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    tailor = tailor_of(f"chains:\n  default: {CHAIN}")
    object_of(review)["spec"]["nodes"]["big"]["resources"] = {}
    baked = registered(review, tailor)
    said = json.loads(
        object_of(baked)["tasks"][key_of(object_of(baked), "zoo.train")]["metadata"]["metadata"][
            "annotations"
        ][STAMP]
    )
    assert said["deferred"] == ["labels", "labels"]
    decision = decide(baked, tailor)
    assert decision.steps == ("labels",)
    fresh = patched(review, decide(review, tailor))
    resumed = patched(baked, decision)
    for name, graph in (("big", "spec"), ("n0", "inner")):
        one, two = (
            template_at(obj, name, obj["spec"] if graph == "spec" else inner(obj))
            for obj in (fresh, resumed)
        )
        assert {k: v for k, v in unstamped(two).items() if k != "config"} == {
            k: v for k, v in unstamped(one).items() if k != "config"
        }


@pytest.mark.parametrize(("task", "spared"), [("zoo.train", True), (None, True), ("zoo.x", False)])
def test_a_forged_stamp_spares_nothing_that_is_enforced(
    task: str | None, spared: bool, review: AdmissionReview, tailor_of: TailorOf
) -> None:
    tailor = tailor_of(f"chains:\n  default: {CHAIN}")
    obj = object_of(review)
    template = obj["tasks"][key_of(obj, "zoo.train")]
    said = {"chain": "default", "digest": decide(review, tailor).digest, "done": 99, "task": task}
    template["metadata"]["metadata"] = {"annotations": {STAMP: json.dumps(said)}}
    after = patched(review, decide(review, tailor))
    found = template_at(after, "n0", inner(after))  # its node states nothing of its own
    assert labels(found)["cost-centre"] == "speech"
    tolerations = found.get("k8sPod", {}).get("podSpec", {}).get("tolerations", [])
    assert (SPOT in tolerations) is not spared


def test_a_chain_that_is_selected_no_more_is_undone(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    baked = registered(review, tailor_of(f"chains:\n  default: {CHAIN}"))
    none = tailor_of("chains: {other: {steps: []}}\nselect: [{chain: null}]")
    after = patched(baked, decide(baked, none))
    assert after["tasks"] == object_of(review)["tasks"]


# what was compiled into nodes ------------------------------------------------------------------


def test_attempts_follow_the_tasks_retries(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    chain = "{steps: [{use: probe.retried, with: {times: 5}}]}"
    obj = object_of(review)
    obj["spec"]["nodes"]["n3"]["retry"] = {"minAttempts": 9}  # its own
    assert obj["spec"]["nodes"]["big"]["retry"] == {"minAttempts": 3}
    after = patched(review, decide_with(review, chain))
    nodes = after["spec"]["nodes"]
    assert nodes["big"]["retry"] == nodes["n0"]["retry"] == {"minAttempts": 6}
    assert inner(after)["nodes"]["n0"]["retry"] == {"minAttempts": 6}
    assert nodes["n1"]["array"]["SubNodeSpec"]["retry"] == {"minAttempts": 6}
    assert nodes["n3"]["retry"] == {"minAttempts": 9}
    none = patched(review, decide_with(review, "{steps: [{use: probe.retried, with: {times: 0}}]}"))
    assert "retry" not in none["spec"]["nodes"]["big"]


@pytest.mark.parametrize(
    ("old", "compiled", "new", "execution", "active"),
    [
        (None, None, "90s", "90s", "180s"),
        ("3600s", "1h0m0s", "90s", "90s", "180s"),
        ("3600s", "1h0m0s", "1.500s", "1.5s", "3s"),
        ("3600s", "1h0m0s", None, None, None),
        ("0s", "0s", "60s", "60s", "120s"),
        ("3600s", None, "60s", "60s", "120s"),
        ("60s", "2m0s", "90s", "2m0s", "4m0s"),  # its own
        ("junk", 7, "90s", "90s", "180s"),
    ],
)
def test_deadlines_follow_the_tasks_timeout(
    old: Any,
    compiled: Any,
    new: str | None,
    execution: str | None,
    active: str | None,
    review: AdmissionReview,
    decide_with: DecideWith,
) -> None:
    obj = object_of(review)
    node = obj["spec"]["nodes"]["n0"]
    template = obj["tasks"][node["task"]]
    if old is not None:
        template["metadata"]["timeout"] = old
    if compiled is not None:
        node |= {"executionDeadline": compiled, "activeDeadline": {"2m0s": "4m0s"}.get(compiled)}
        if compiled == "1h0m0s":
            node["activeDeadline"] = "2h0m0s"
    chain = f"{{steps: [{{use: probe.timed, with: {{timeout: {json.dumps(new)}}}}}]}}"
    after = patched(review, decide_with(review, chain))["spec"]["nodes"]["n0"]
    assert (after.get("executionDeadline"), after.get("activeDeadline")) == (execution, active)


@pytest.mark.parametrize(
    ("task", "compiled", "new", "expected"),
    [
        (None, None, True, True),
        (True, True, False, False),
        (True, True, None, None),
        (None, None, False, False),
        (True, False, None, False),  # its own
    ],
)
def test_a_node_is_interruptible_as_its_task_is(
    task: bool | None,
    compiled: bool | None,
    new: bool | None,
    expected: bool | None,
    review: AdmissionReview,
    decide_with: DecideWith,
) -> None:
    obj = object_of(review)
    node = obj["spec"]["nodes"]["n0"]
    for holder, value in ((obj["tasks"][node["task"]]["metadata"], task), (node, compiled)):
        if value is not None:
            holder["interruptible"] = value
    chain = f"{{steps: [{{use: probe.spot, with: {{interruptible: {json.dumps(new)}}}}}]}}"
    after = patched(review, decide_with(review, chain))["spec"]["nodes"]["n0"]
    assert after.get("interruptible") is expected


def test_a_task_of_which_nothing_compiled_changes_leaves_its_nodes_alone(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    before = object_of(review)
    after = patched(review, decide_with(review, "{enforce: [{use: labels, with: {set: {a: b}}}]}"))
    assert after["spec"] == before["spec"]
    assert after["subWorkflows"] == before["subWorkflows"]


# the execution's metadata ----------------------------------------------------------------------


def test_the_executions_own_keys_are_named(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    object_of(review)["metadata"]["annotations"] = {
        "note": "mine",
        STAMP: "forged",
        EXECUTION_KEYS: "forged",
    }
    after = patched(review, decide_with(review, "{steps: []}"))
    assert after["metadata"]["annotations"] == {
        "note": "mine",
        EXECUTION_KEYS: '{"labels":["team"],"annotations":["note"]}',
    }


def test_without_any_nothing_is_written(review: AdmissionReview, decide_with: DecideWith) -> None:
    metadata = object_of(review)["metadata"]
    del metadata["labels"]["team"]
    assert patch_of(decide_with(review, "{steps: []}")) == []
    metadata["annotations"] = {EXECUTION_KEYS: '{"labels":["team"]}'}
    after = patched(review, decide_with(review, "{steps: []}"))
    assert EXECUTION_KEYS not in after["metadata"].get("annotations", {})


def test_an_execution_of_3_mb_is_tailored_within_the_limits(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    tailor = tailor_of(f"chains:\n  default: {CHAIN}")
    obj = object_of(review)
    node, template = obj["spec"]["nodes"]["n0"], obj["tasks"][obj["spec"]["nodes"]["n0"]["task"]]
    for number in range(2200):
        key = f"task {number}"
        obj["tasks"][key] = {**template, "id": {**template["id"], "name": f"zoo.t{number}"}}
        obj["spec"]["nodes"][f"m{number}"] = {**node, "id": f"m{number}", "task": key}
    body = json.dumps(review).encode()
    assert len(body) > 3_000_000
    start = time.process_time()
    decision = Limits(TIME_LIMIT).run(decide, parse(body), tailor)
    assert time.process_time() - start < TIME_LIMIT
    assert decision.outcome == "patched"
    assert decision.operations >= 2200


# what cannot be done ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "old"),
    [
        ("/id/project", "another"),
        ("/type", "spark"),
        ("/container", [1]),
        ("/container/resources", 7),
        ("/container/args/0", "sh"),
        ("/k8sPod", {"podSpec": {"containers": [{"env": {}}]}}),
        ("/metadata", "x"),
    ],
)
def test_a_way_back_that_nobody_could_have_written_denies(
    place: str, old: Any, review: AdmissionReview, decide_with: DecideWith
) -> None:
    obj = object_of(review)
    template = obj["tasks"][key_of(obj, "zoo.prepare")]
    template["config"] = {UNDO: json.dumps({place: {"old": old}})}
    decision = decide_with(review, CHAIN)
    assert answer_of(decision)["status"]["code"] == 422
    assert "zoo.prepare" in decision.reason
    assert "Error" not in decision.reason  # none of Python's


def test_a_number_of_gpus_that_is_none_is_an_answer(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    obj = object_of(review)
    obj["spec"]["nodes"]["big"]["resources"] = {"requests": {"nvidia.com/gpu": "9" * 5000}}
    assert decide_with(review, CHAIN).outcome in ("patched", "denied")


def test_a_denial_names_task_and_node(review: AdmissionReview, decide_with: DecideWith) -> None:
    step = "name: shm, use: shared_memory, with: {container: x}, when: {task: zoo.named_template}"
    chain = f"{{enforce: [{{{step}}}]}}"
    answer = answer_of(decide_with(review, chain))
    assert not answer["allowed"]
    assert answer["status"]["code"] == 422
    for part in ("zoo.named_template", "node n4", "'shm'", "kubetailor.yaml:4:"):
        assert part in answer["status"]["message"]


def test_an_offloaded_closure_is_left_to_admit(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    obj = object_of(review)
    for name in ("tasks", "spec", "subWorkflows"):
        del obj[name]
    obj["workflowClosureReference"] = "s3://flyte/closure.pb"
    decision = decide_with(review, CHAIN)
    assert decision.response["allowed"]
    assert decision.offloaded
    assert "offloaded" in decision.reason
    after = patched(review, decision)
    assert json.loads(after["metadata"]["annotations"][EXECUTION_KEYS]) == {"labels": ["team"]}


def test_where_launch_is_not_installed_it_is_left_alone(
    review: AdmissionReview, tailor_of: TailorOf
) -> None:
    tailor = tailor_of(f"chains:\n  default: {CHAIN}")
    path = Path(tailor.config.file)
    path.write_text(path.read_text().replace("[serialize, launch, admit]", "[serialize, admit]"))
    found = Tailor.find(path, environ={})
    assert found is not None
    assert decide(review, found).outcome == "ignored"


# the built-ins that are about task templates ----------------------------------------------------


def test_what_the_engine_reads_is_what_the_built_ins_say(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    obj = object_of(review)
    before = {key: dict(node) for key, node in obj["spec"]["nodes"].items()}
    chain = """{steps: [
        {use: retries, with: {retries: 5}}, {use: timeout, with: {timeout: 90}},
        {use: interruptible, with: {interruptible: true}},
        {use: cache, with: {cache: false}, when: {node: big}},
        {use: cache, with: {cache: true, version: "7"}, when: {node: n0}}]}"""
    after = patched(review, decide_with(review, chain))
    nodes = after["spec"]["nodes"]
    said = {
        "retry": {"minAttempts": 6},
        "executionDeadline": "90s",
        "activeDeadline": "180s",
        "interruptible": True,
    }
    for key in ("n0", "n3"):
        assert {name: nodes[key].get(name) for name in said} == said
        assert before[key].keys() - said.keys() == nodes[key].keys() - said.keys()
    templates = {key: after["tasks"][nodes[key]["task"]]["metadata"] for key in ("n0", "big")}
    assert templates["n0"]["retries"] == {"retries": 5}
    assert templates["n0"]["timeout"] == "90s"
    assert (templates["n0"]["discoverable"], templates["n0"]["discoveryVersion"]) == (True, "7")
    assert "discoverable" not in templates["big"]


def test_a_task_config_is_changed_in_the_execution(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    chain = """{steps: [
        {use: task_config, with: {replicas: 7}, when: {task_type: [pytorch, mpi, ray, dask]}},
        {use: spark_conf, with: {set: {spark.executor.instances: 8}}, when: {task_type: spark}}]}"""
    tasks = object_of(review)["tasks"]
    spark = next(key for key, task in tasks.items() if task["id"]["name"] == "zoo.train")
    tasks[spark] |= {"type": "spark", "custom": {"sparkConf": {"spark.a": "b"}}}
    after = patched(review, decide_with(review, chain))
    found = {task["type"]: task["custom"] for task in after["tasks"].values() if "custom" in task}
    assert found["pytorch"]["workerReplicas"]["replicas"] == 7
    assert found["mpi"]["workerReplicas"]["replicas"] == 7
    assert found["ray"]["rayCluster"]["workerGroupSpec"][0]["replicas"] == 7
    assert found["dask"]["workers"]["numberOfWorkers"] == 7
    assert found["spark"]["sparkConf"] == {"spark.a": "b", "spark.executor.instances": "8"}


@pytest.mark.parametrize(
    ("layer", "retries", "deadlines", "interruptible"),
    [
        ("defaults", {"minAttempts": 10}, ("7s", "14s"), False),
        ("steps", {"minAttempts": 10}, ("7s", "14s"), False),
        ("enforce", {"minAttempts": 2}, ("60s", "120s"), True),
    ],
)
def test_what_a_node_says_of_itself_beats_steps_and_enforce_beats_it(
    layer: str,
    retries: Any,
    deadlines: tuple[str, str],
    interruptible: bool,
    review: AdmissionReview,
    decide_with: DecideWith,
) -> None:
    node = object_of(review)["spec"]["nodes"]["n0"]
    node |= {
        "retry": {"minAttempts": 10},
        "executionDeadline": "7s",
        "activeDeadline": "14s",
        "interruptible": False,
    }
    chain = f"""{{{layer}: [
        {{use: retries, with: {{retries: 1}}}}, {{use: timeout, with: {{timeout: 60}}}},
        {{use: interruptible, with: {{interruptible: true}}}}]}}"""
    after = patched(review, decide_with(review, chain))["spec"]["nodes"]
    assert after["n0"]["retry"] == retries
    assert (after["n0"]["executionDeadline"], after["n0"]["activeDeadline"]) == deadlines
    assert after["n0"]["interruptible"] is interruptible
    others = after["n3"]
    assert (others["retry"], others["interruptible"]) == ({"minAttempts": 2}, True)


def test_what_is_enforced_to_be_nothing_goes_from_a_node(
    review: AdmissionReview, decide_with: DecideWith
) -> None:
    node = object_of(review)["spec"]["nodes"]["n0"]
    node |= {"retry": {"minAttempts": 10}, "executionDeadline": "7s", "activeDeadline": "14s"}
    chain = "{enforce: [{use: retries, with: {retries: 0}}, {use: timeout, with: {timeout: 0}}]}"
    after = patched(review, decide_with(review, chain))["spec"]["nodes"]["n0"]
    assert not after.keys() & {"retry", "executionDeadline", "activeDeadline"}
