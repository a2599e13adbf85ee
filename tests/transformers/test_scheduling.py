"""Where pods are scheduled, by what and when; every run here is proved idempotent and lossless."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import json
from typing import Any

import pytest

from kubetailor.registry import ConfigError, StepError
from kubetailor.registry.testing import ABSENT, TailorBench

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "a"}},
}
HARD = {**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}
HOST = {**SPREAD, "topologyKey": "host"}
AREAS = "spec.topologySpreadConstraints"


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "img"}], **spec},
    }


JOBSET: dict[str, Any] = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "j"},
    "spec": {
        "replicatedJobs": [
            {
                "name": "worker",
                "template": {"spec": {"template": {"spec": {"containers": [{"name": "m"}]}}}},
            }
        ]
    },
}
WORKER = "spec.replicatedJobs[worker].template.spec.template.spec"
SPARK: dict[str, Any] = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {"name": "s"},
    "spec": {"driver": {"cores": 1}, "executor": {"cores": 1}},
}
TASK: dict[str, Any] = {
    "type": "python-task",
    "id": {"name": "t"},
    "container": {"image": "img", "args": ["x"]},
}
RAY_TASK: dict[str, Any] = {
    "type": "ray",
    "id": {"name": "t"},
    "config": {"primary_container_name": "primary"},
    "k8sPod": {"podSpec": {"containers": [{"name": "primary", "image": "img"}]}},
    "custom": {
        "rayCluster": {
            "headGroupSpec": {"k8sPod": {"podSpec": {"containers": [{"name": "ray-head"}]}}},
            "workerGroupSpec": [{"groupName": "g"}],
        }
    },
}


@pytest.mark.parametrize(
    ("use", "parameters", "obj", "changes"),
    [
        pytest.param("topology_spread", {"add": [SPREAD]}, pod(), {AREAS: [SPREAD]}, id="spread"),
        pytest.param("topology_spread", {"add": [SPREAD]}, JOBSET, {f"{WORKER}.topologySpreadConstraints": [SPREAD]}, id="spread: of every pod"),
        pytest.param(
            "topology_spread",
            {"add": [SPREAD]},
            pod(topologySpreadConstraints=[{**SPREAD, "maxSkew": 5, "minDomains": 2}, HARD, HOST]),
            {AREAS: [SPREAD, HARD, HOST]},
            id="spread: whole, in the place of the one with its identity",
        ),
        pytest.param(
            "topology_spread",
            {"add": [SPREAD], "replace": True},
            pod(topologySpreadConstraints=[HARD, HOST]),
            {AREAS: [HOST, SPREAD]},
            id="spread: of all with its topology key",
        ),
        pytest.param(
            "topology_spread",
            {"add": [SPREAD, HARD], "replace": True},
            pod(topologySpreadConstraints=[HARD, SPREAD]),
            {},
            id="spread: replace leaves what is added",
        ),
        pytest.param(
            "topology_spread",
            {"add": [SPREAD], "remove": [{"topologyKey": "zone"}, {"whenUnsatisfiable": "DoNotSchedule"}]},
            pod(topologySpreadConstraints=[SPREAD, HARD, HOST]),
            {AREAS: [SPREAD, HOST]},
            id="spread: what is added is not removed",
        ),
        pytest.param("topology_spread", {"remove": [{"topologyKey": "zone"}]}, pod(topologySpreadConstraints=[SPREAD]), {AREAS: ABSENT}, id="spread: emptied"),
        pytest.param("topology_spread", {"remove": [{}]}, pod(topologySpreadConstraints=[SPREAD, HOST]), {AREAS: ABSENT}, id="spread: all of them"),
        pytest.param("scheduler", {"name": "other"}, pod(schedulerName="default-scheduler"), {"spec.schedulerName": "other"}, id="scheduler"),
        pytest.param("scheduler", {"name": None}, pod(schedulerName="other"), {"spec.schedulerName": ABSENT}, id="scheduler: null"),
        pytest.param("scheduler", {"name": None}, pod(), {}, id="scheduler: null of nothing"),
        pytest.param("scheduler", {"name": "other"}, SPARK, {"spec.driver.schedulerName": "other", "spec.executor.schedulerName": "other"}, id="scheduler of Spark"),
        pytest.param(
            "runtime_class",
            {"name": "gvisor"},
            pod(runtimeClassName="kata", overhead={"cpu": "1"}),
            {"spec.runtimeClassName": "gvisor", "spec.overhead": ABSENT},
            id="runtime_class: what was derived is derived again",
        ),
        pytest.param("runtime_class", {"name": "kata"}, pod(runtimeClassName="kata", overhead={"cpu": "1"}), {}, id="runtime_class: there already"),
        pytest.param("runtime_class", {"name": None}, pod(runtimeClassName="kata", overhead={"cpu": "1"}), {"spec.runtimeClassName": ABSENT, "spec.overhead": ABSENT}, id="runtime_class: null"),
        pytest.param("scheduling_gates", {"add": [{"name": "a.io/b"}]}, pod(schedulingGates=[{"name": "c"}]), {"spec.schedulingGates": [{"name": "c"}, {"name": "a.io/b"}]}, id="scheduling_gates"),
        pytest.param(
            "scheduling_gates",
            {"add": [{"name": "a"}], "remove": [{"name": "a"}, {"name": "c"}]},
            pod(schedulingGates=[{"name": "c"}, {"name": "a"}, {"name": "d"}]),
            {"spec.schedulingGates": [{"name": "a"}, {"name": "d"}]},
            id="scheduling_gates: what is added is not removed",
        ),
        pytest.param("scheduling_gates", {"remove": [{"name": "kueue.x-k8s.io/admission"}]}, pod(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]), {"spec.schedulingGates": ABSENT}, id="scheduling_gates: emptied"),
    ],
)  # fmt: skip
def test_what_they_do(
    tailor: TailorBench, use: str, parameters: Any, obj: Any, changes: dict[str, Any]
) -> None:
    outcome = tailor.prove(use, obj, **parameters)
    outcome.assert_changes(changes)
    assert outcome.warnings == []


EACH: list[tuple[str, dict[str, Any], str, Any]] = [
    ("topology_spread", {"add": [SPREAD]}, "topologySpreadConstraints", [SPREAD]),
    ("scheduler", {"name": "other"}, "schedulerName", "other"),
    ("runtime_class", {"name": "kata"}, "runtimeClassName", "kata"),
    ("scheduling_gates", {"add": [{"name": "a"}]}, "schedulingGates", [{"name": "a"}]),
]


@pytest.mark.parametrize(("use", "parameters", "field", "value"), EACH)
def test_a_container_task_becomes_a_pod_task(
    tailor: TailorBench, use: str, parameters: Any, field: str, value: Any
) -> None:
    outcome = tailor.prove(use, TASK, **parameters)
    outcome.assert_changes({f"k8sPod.podSpec.{field}": value})


@pytest.mark.parametrize(("use", "parameters", "field", "value"), EACH)
def test_lists_of_rays_groups_are_written_once(
    tailor: TailorBench, use: str, parameters: Any, field: str, value: Any
) -> None:
    # Flyte puts the lists of a group after those of the task's own pod.
    after = tailor.prove(use, RAY_TASK, **parameters).after
    assert after["k8sPod"]["podSpec"][field] == value
    head = after["custom"]["rayCluster"]["headGroupSpec"]["k8sPod"]["podSpec"]
    assert head.get(field) == (None if isinstance(value, list) else value)


@pytest.mark.parametrize(("use", "parameters", "field", "value"), EACH)
def test_what_the_spark_operator_does_not_read_is_said(
    tailor: TailorBench, use: str, parameters: Any, field: str, value: Any
) -> None:
    outcome = tailor.transform(use, SPARK, **parameters)
    if field == "schedulerName":
        assert outcome["spec.driver.schedulerName"] == value
    else:
        outcome.assert_unchanged()
        assert f"{field} of the driver is not read by the Spark operator" in outcome.warnings[0]


@pytest.mark.parametrize("use", ["topology_spread", "scheduling_gates"])
@pytest.mark.parametrize(
    "obj", [pod(), JOBSET, SPARK, TASK], ids=["pod", "jobset", "spark", "task"]
)
def test_a_step_that_asks_for_nothing_changes_nothing(
    tailor: TailorBench, use: str, obj: Any
) -> None:
    outcome = tailor.prove(use, obj)
    assert outcome.after is obj
    assert outcome.warnings == []


def test_a_default_leaves_the_constraints_of_an_author_whole(tailor: TailorBench) -> None:
    more = {**HARD, "minDomains": 2}
    chain = tailor.chain(
        "chains: {default: {defaults: [{use: topology_spread, with: "
        f"{json.dumps({'add': [more, HOST]})}}}]}}}}"
    )
    own = {**HARD, "maxSkew": 3}
    outcome = chain.prove(pod(topologySpreadConstraints=[own]))
    outcome.assert_changes({AREAS: [own, HOST]})


def test_a_default_is_put_where_the_api_server_filled_in_a_scheduler(tailor: TailorBench) -> None:
    chain = tailor.chain("chains: {default: {defaults: [{use: scheduler, with: {name: other}}]}}")
    outcome = chain.prove(pod(schedulerName="default-scheduler"))
    outcome.assert_changes({"spec.schedulerName": "other"})
    chain.prove(pod(schedulerName="mine")).assert_unchanged()


def test_a_constraint_without_a_selector_counts_no_pods(tailor: TailorBench) -> None:
    bare = {key: value for key, value in SPREAD.items() if key != "labelSelector"}
    outcome = tailor.prove("topology_spread", pod(), add=[bare])
    outcome.assert_changes({AREAS: [bare]})
    assert "has no labelSelector, so that it counts no pods" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("use", "parameters", "fault"),
    [
        ("topology_spread", {"add": [{"topologyKey": "zone"}]}, "maxSkew"),
        ("topology_spread", {"add": [{**SPREAD, "maxSkew": 0}]}, "greater than or equal to 1"),
        ("topology_spread", {"add": [{**SPREAD, "whenUnsatisfiable": "Never"}]}, "'DoNotSchedule'"),
        ("topology_spread", {"add": [{**SPREAD, "minDomains": 2}]}, "minDomains goes with"),
        ("topology_spread", {"add": [{**SPREAD, "topologykey": "x"}]}, "topologykey"),
        ("topology_spread", {"add": [{**SPREAD, "topologyKey": "a b"}]}, "a b"),
        ("topology_spread", {"add": [{**SPREAD, "labelSelector": {"app": "a"}}]}, "no key 'app'"),
        ("scheduler", {}, "the parameter 'name' is required"),
        ("scheduler", {"name": ""}, "must not be empty"),
        ("runtime_class", {"name": "Kata Containers"}, "lower-case"),
        ("scheduling_gates", {"add": [{"name": "a b"}]}, "a b"),
        ("scheduling_gates", {"add": ["a"]}, "add.0"),
        ("scheduling_gates", {"add": [{"name": "kueue.x-k8s.io/admission"}]}, "Kueue's own"),
        ("scheduling_gates", {"add": [{"name": "kueue.x-k8s.io/topology"}]}, "use `kueue`"),
    ],
)
def test_what_cannot_be_is_refused_at_load(
    tailor: TailorBench, use: str, parameters: Any, fault: str
) -> None:
    step = json.dumps({"use": use, "with": parameters})
    with pytest.raises(ConfigError, match=fault):
        tailor.chain(f"chains: {{default: {{steps: [{step}]}}}}")


def test_a_pod_target_of_spark_in_flyte_fails_in_enforce(tailor: TailorBench) -> None:
    task = {"type": "spark", "id": {"name": "t"}, "container": {"image": "i", "args": ["x"]}}
    chain = tailor.chain("chains: {default: {enforce: [{use: runtime_class, with: {name: kata}}]}}")
    with pytest.raises(StepError, match="runtimeClassName of a Spark task's podSpec is not read"):
        chain.run(task, phase="serialize")
