"""The built-ins that are about Flyte's task templates alone.

What they write is proved against flytekit itself in tests/plugins/flyte/test_task_fields.py.
"""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.registry import StepError
from kubetailor.registry.parameters import ParameterError
from kubetailor.registry.testing import ABSENT, TailorBench
from kubetailor.workloads.duration import duration_text, parse_duration

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "img"}]},
}


def task(kind: str = "python-task", custom: Any = None, **metadata: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": {"name": "t"},
        "type": kind,
        "metadata": {"retries": {}, **metadata},
        "container": {"image": "img", "args": ["x"]},
    }
    if custom is not None:
        found |= {"custom": custom, "taskTypeVersion": 1}
    return found


def ray(*groups: tuple[int, int, int], **cluster: Any) -> dict[str, Any]:
    specs = [
        {"groupName": f"g{i}", "replicas": number, "minReplicas": low, "maxReplicas": high}
        for i, (number, low, high) in enumerate(groups)
    ]
    return task("ray", {"rayCluster": {"workerGroupSpec": specs, "headGroupSpec": {}, **cluster}})


ELASTIC = task(
    "pytorch",
    {
        "workerReplicas": {"replicas": 4},
        "elasticConfig": {"minReplicas": 2, "maxReplicas": 4, "nprocPerNode": 1},
    },
)
TORCH = task("pytorch", {"workerReplicas": {"replicas": 3.0}, "masterReplicas": {"replicas": 1.0}})
MPI = {
    **task("mpi", {"workerReplicas": {"replicas": 2}, "launcherReplicas": {"replicas": 1}, "slots": 2}),
    "container": {"args": ["mpirun", "-np", "4", "-x", "4", "python", "--n", "4"]},
}  # fmt: skip
DASK = task("dask", {"workers": {"numberOfWorkers": 2}, "scheduler": {}})
SPARK = task("spark", {"sparkConf": {"spark.a": "b"}})
CACHED = task(
    discoverable=True,
    discoveryVersion="1",
    cacheSerializable=True,
    cacheIgnoreInputVars=["x"],
)


@pytest.mark.parametrize(
    ("use", "parameters", "obj", "changes"),
    [
        ("retries", {"retries": 3}, task(), {"metadata.retries.retries": 3}),
        ("retries", {"retries": 0}, task(retries={"retries": 3}), {"metadata.retries": {}}),
        ("retries", {"retries": 0}, task(retries={"retries": 0}), {}),
        ("retries", {"retries": 3}, {"type": "x", "id": {"name": "t"}, "metadata": {}}, {"metadata": {"retries": {"retries": 3}}}),
        ("timeout", {"timeout": "1h30m"}, task(), {"metadata.timeout": "5400s"}),
        ("timeout", {"timeout": 1.5}, task(), {"metadata.timeout": "1.500s"}),
        ("timeout", {"timeout": "60s"}, task(timeout="1m0s"), {}),
        ("timeout", {"timeout": 0}, task(timeout="0s"), {}),
        ("timeout", {"timeout": None}, task(timeout="60s"), {"metadata.timeout": ABSENT}),
        ("interruptible", {"interruptible": False}, task(), {"metadata.interruptible": False}),
        ("interruptible", {"interruptible": None}, task(interruptible=True), {"metadata.interruptible": ABSENT}),
        ("cache", {}, CACHED, {}),
        ("cache", {"version": "1"}, CACHED, {}),
        ("cache", {"version": "1"}, task(), {}),
        ("cache", {"serialize": True, "ignored_inputs": ["x"]}, task(), {}),
        ("cache", {"cache": False}, task(), {}),
        ("cache", {"cache": False}, CACHED, {"metadata": {"retries": {}, "discoveryVersion": "1"}}),
        ("cache", {"cache": False, "version": "2"}, CACHED, {"metadata": {"retries": {}, "discoveryVersion": "2"}}),
        ("spark_conf", {}, task(), {}),
        ("spark_conf", {"set": {"spark.c": 1}, "remove": ["spark.a", "spark.c"]}, SPARK, {"custom.sparkConf": {"spark.c": "1"}}),
        ("spark_conf", {"remove": ["spark.a"]}, SPARK, {"custom": {}}),
        ("task_config", {}, task(), {}),
        ("task_config", {"replicas": 3}, TORCH, {}),
        ("task_config", {"replicas": 0}, TORCH, {"custom.workerReplicas": {}}),
        (
            "task_config",
            {"replicas": 5},
            task("pytorch", {"workerReplicas": {"replicas": 1, "common": {"replicas": 2}}}),
            {"custom.workerReplicas.common.replicas": 5},
        ),
        ("task_config", {"replicas": 2, "role": "evaluator"}, task("tensorflow", {}), {"custom.evaluatorReplicas": {"replicas": 2}}),
        (
            "task_config",
            {"replicas": 5},
            MPI,
            {
                "custom.workerReplicas.replicas": 5,
                "container.args": ["mpirun", "-np", "10", "-x", "4", "python", "--n", "4"],
            },
        ),
        ("task_config", {"replicas": 2, "role": "launcher"}, MPI, {"custom.launcherReplicas.replicas": 2}),
        ("task_config", {"replicas": 0}, DASK, {"custom.workers": {}}),
        (
            "task_config",
            {"replicas": 4},
            ray((2, 2, 2), (3, 1, 8)),
            {
                "custom.rayCluster.workerGroupSpec[0]": {"groupName": "g0", "replicas": 4, "minReplicas": 4, "maxReplicas": 4},
                "custom.rayCluster.workerGroupSpec[1].replicas": 4,
            },
        ),
        (
            "task_config",
            {"min_replicas": 0, "role": "worker:g0"},
            ray((2, 2, 2), (3, 1, 8), enableAutoscaling=True),
            {"custom.rayCluster.workerGroupSpec[0].minReplicas": ABSENT},
        ),
        ("task_config", {"remove": ["runPolicy.backoffLimit", "runPolicy"]}, TORCH, {}),
    ],
)  # fmt: skip
def test_what_they_do(
    tailor: TailorBench, use: str, parameters: Any, obj: Any, changes: dict[str, Any]
) -> None:
    outcome = tailor.prove(use, obj, **parameters)
    outcome.assert_changes(changes)
    assert outcome.warnings == []


@pytest.mark.parametrize(
    ("parameters", "obj", "warning"),
    [
        ({"replicas": 5}, ELASTIC, "the task's code gives its own nnodes"),
        ({"set": {"slots": 4}}, MPI, "FlytePropeller does not read slots"),
        ({"max_replicas": 9}, ray((2, 2, 2)), "without rayCluster.enableAutoscaling"),
    ],
)
def test_what_will_not_have_its_way_is_said(
    tailor: TailorBench, parameters: Any, obj: Any, warning: str
) -> None:
    outcome = tailor.prove("task_config", obj, **parameters)
    assert outcome.result.changed
    assert [warning in text for text in outcome.warnings] == [True]


@pytest.mark.parametrize(
    ("use", "parameters", "obj", "fault"),
    [
        ("cache", {"cache": True}, task(), "needs a version, and the task has none"),
        ("cache", {"cache": False, "serialize": True}, CACHED, "only with a cache"),
        ("spark_conf", {"set": {"a": "b"}}, task(), "type 'python-task' has no Spark conf"),
        ("task_config", {"replicas": 2}, task(), "type 'python-task' has no number of replicas"),
        ("task_config", {"replicas": 2}, SPARK, "spark.executor.instances of `spark_conf`"),
        ("task_config", {"replicas": 2, "role": "master"}, TORCH, "roles: worker"),
        ("task_config", {"replicas": 2, "role": "worker:x"}, ray((1, 1, 1)), "roles: worker:g0"),
        ("task_config", {"max_replicas": 2}, TORCH, "a number, no range"),
        ("task_config", {"replicas": 0}, MPI, "an MPI job needs a worker"),
        ("task_config", {"replicas": 2}, task("pytorch"), "the form of version 0"),
        ("task_config", {"min_replicas": 5}, ELASTIC, "5:4 is no range"),
        ("task_config", {"replicas": 5, "max_replicas": 6}, ELASTIC, "give one of them"),
        ("task_config", {"min_replicas": 5}, ray((2, 2, 2)), "replicas 2 is not from"),
        ("task_config", {"set": {"runPolicy": {}}}, task(), "no task config that is known"),
        ("task_config", {"set": {"runPolcy": {}}}, TORCH, "runPolicy"),
        ("task_config", {"set": {"workerReplicas": {"image": "x"}}}, TORCH, "no 'workerReplicas'"),
        ("task_config", {"set": {"driverPod": {}}}, SPARK, "no 'driverPod' to set"),
        ("task_config", {"set": {"elasticConfig": {"maxRestarts": 2}}}, TORCH, "not Elastic"),
        ("task_config", {"remove": ["runPolicy.x"]}, TORCH, "no 'x' to set"),
        ("task_config", {"remove": ["runPolicy.backoffLimit.x"]}, TORCH, "nothing is below"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_a_warning_and_where_it_must_be_an_error(
    tailor: TailorBench, use: str, parameters: Any, obj: Any, fault: str
) -> None:
    outcome = tailor.transform(use, obj, **parameters)
    outcome.assert_unchanged()
    assert [fault in warning for warning in outcome.warnings] == [True]
    with pytest.raises(StepError, match=fault):
        chain_of(tailor, "enforce", use, parameters).run(obj)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"runPolicy": 3}, "it takes a map, not 3"),
        ({"runPolicy": {"backoffLimit": "3"}}, "a whole number up to 2147483647, not '3'"),
        ({"runPolicy": {"backoffLimit": True}}, "not True"),
        ({"runPolicy": {"backoffLimit": -1}}, "not -1"),
        ({"runPolicy": {"cleanPodPolicy": "ALL"}}, "CLEANPOD_POLICY_ALL, not 'ALL'"),
    ],
)
def test_values_that_flyte_could_not_read_are_errors(
    tailor: TailorBench, values: Any, fault: str
) -> None:
    with pytest.raises(StepError, match=fault):
        tailor.transform("task_config", TORCH, set=values)


@pytest.mark.parametrize(
    ("use", "parameters", "fault"),
    [
        ("retries", {}, "'retries' is required"),
        ("retries", {"retries": -1}, "greater than or equal to 0"),
        ("timeout", {"timeout": "soon"}, "'soon' is not a duration; write 90s"),
        ("timeout", {"timeout": -5}, "'-5' is not a duration"),
        ("timeout", {"timeout": "2000000h"}, "more than FlytePropeller can count"),
        ("cache", {"cache": True, "version": ""}, "must not be empty"),
        ("task_config", {"replicas": 2**31}, "less than or equal to"),
    ],
)
def test_parameters_are_checked_when_they_are_read(
    tailor: TailorBench, use: str, parameters: Any, fault: str
) -> None:
    with pytest.raises(ParameterError, match=fault):
        tailor.transform(use, task(), **parameters)


def chain_of(tailor: TailorBench, layer: str, use: str, parameters: Any, rest: str = "") -> Any:
    step = json.dumps({"use": use, "with": parameters})
    return tailor.chain(f"{rest}\nchains: {{default: {{{layer}: [{step}]}}}}")


# defaults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "parameters", "obj", "changes"),
    [
        ("retries", {"retries": 3}, task(), {"metadata.retries.retries": 3}),
        ("retries", {"retries": 3}, task(retries={"retries": 1}), {}),
        ("timeout", {"timeout": 60}, task(), {"metadata.timeout": "60s"}),
        ("timeout", {"timeout": 60}, task(timeout="5s"), {}),
        ("interruptible", {"interruptible": True}, task(), {"metadata.interruptible": True}),
        ("interruptible", {"interruptible": True}, task(interruptible=False), {}),
        ("cache", {"cache": True, "version": "2"}, task(), {"metadata.discoverable": True, "metadata.discoveryVersion": "2"}),
        ("cache", {"cache": True, "version": "2", "serialize": True}, task(discoverable=True, discoveryVersion="1"), {}),
        ("cache", {"cache": True}, task(discoveryVersion="1"), {"metadata.discoverable": True}),
        ("cache", {"cache": False}, CACHED, {}),
        ("spark_conf", {"set": {"spark.a": "x", "spark.c": "d"}}, SPARK, {"custom.sparkConf['spark.c']": "d"}),
        ("task_config", {"replicas": 9}, TORCH, {}),
        ("task_config", {"replicas": 9}, MPI, {}),
        ("task_config", {"set": {"runPolicy": {"backoffLimit": 3}}}, TORCH, {"custom.runPolicy": {"backoffLimit": 3}}),
    ],
)  # fmt: skip
def test_a_default_fills_what_is_unset(
    tailor: TailorBench, use: str, parameters: Any, obj: Any, changes: dict[str, Any]
) -> None:
    chain_of(tailor, "defaults", use, parameters).prove(obj).assert_changes(changes)


# phases ------------------------------------------------------------------------------------------

STEPS = [
    ("retries", {"retries": 3}),
    ("timeout", {"timeout": 60}),
    ("interruptible", {"interruptible": True}),
    ("cache", {"cache": True}),
    ("task_config", {"replicas": 3}),
    ("spark_conf", {"set": {"a": "b"}}),
]


@pytest.mark.parametrize(("use", "parameters"), STEPS)
@pytest.mark.parametrize("layer", ["defaults", "steps", "enforce"])
def test_they_are_not_applicable_to_objects_which_is_counted_and_not_warned_of(
    tailor: TailorBench, layer: str, use: str, parameters: Any
) -> None:
    outcome = chain_of(tailor, layer, use, parameters, "strict: true").run(POD)
    outcome.assert_unchanged()
    assert outcome.warnings == []
    assert (outcome.result.inapplicable, outcome.result.undecided) == (1, 0)


def test_what_is_for_another_task_is_not_counted(tailor: TailorBench) -> None:
    chain = tailor.chain(
        "chains: {default: {steps: ["
        "{use: retries, with: {retries: 1}, when: {task: a}},"
        "{use: retries, with: {retries: 1}, when: {task: b}},"
        "{use: retries, with: {retries: 1}, when: {role: primary}}]}}"
    )
    assert chain.run(POD, task="a").result.inapplicable == 2


def test_what_would_wait_for_admission_is_said(tailor: TailorBench) -> None:
    steps = (
        "steps: [{use: labels, with: {set: {a: b}}, when: {node: n0}},"
        "{use: retries, with: {retries: 1}}, {use: retries, with: {retries: 2}, when: {task: x}},"
        "{use: timeout, with: {timeout: 5}, optional: true}]"
    )
    phases = "phases: [serialize, admit]"
    chain = tailor.chain(f"{phases}\nchains: {{default: {{{steps}}}}}")
    outcome = chain.run(task(), phase="serialize", task="t")
    assert outcome.deferred == ("labels", "retries", "retries", "timeout")
    (warning,) = outcome.warnings
    assert "sees none, and would wait for that, as node is not known yet" in warning
    strict = tailor.chain(f"{phases}\nstrict: true\nchains: {{default: {{{steps}}}}}")
    with pytest.raises(StepError, match="list `launch` in `phases`"):
        strict.run(task(), phase="serialize", task="t")
    below = "steps: [{use: labels, with: {set: {a: b}}, when: {node: n0}}]"
    above = "enforce: [{use: retries, with: {retries: 1}}]"
    enforced = tailor.chain(f"{phases}\nchains: {{default: {{{below}, {above}}}}}")
    with pytest.raises(StepError, match="list `launch` in `phases`"):
        enforced.run(task(), phase="serialize", task="t")
    installed = tailor.chain(
        f"phases: [serialize, launch, admit]\nchains: {{default: {{{steps}}}}}"
    )
    assert installed.run(task(), phase="serialize", task="t").warnings == []


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("phase", "step", "said"),
    [
        (
            "launch",
            "{use: retries, with: {retries: 1}, when: {launch_plan: nightly}}",
            "no phase of the cluster knows launch_plan: take it out of the `when` that reads it",
        ),
        (
            "serialize",
            "{use: retries, with: {retries: 1}, when: {launch_plan: nightly}}",
            "no phase of the cluster knows launch_plan",
        ),
        (
            "serialize",
            "{use: retries, with: {retries: 1}, when: {node: n0}}",
            "list `launch` in `phases`, or write it before",
        ),
    ],
)
def test_what_no_later_phase_knows_is_not_told_to_wait_for_one(
    tailor: TailorBench, strict: bool, phase: Any, step: str, said: str
) -> None:
    phases = "[launch, admit]" if phase == "launch" else "[serialize, admit]"
    chain = tailor.chain(
        f"phases: {phases}\nstrict: {str(strict).lower()}\nchains: {{default: {{steps: [{step}]}}}}"
    )
    if not strict:
        (text,) = chain.run(task(), phase=phase, task="t").warnings
    else:
        with pytest.raises(StepError) as caught:
            chain.run(task(), phase=phase, task="t")
        text = str(caught.value)
    assert said in text
    assert ("list `launch`" in text) is ("launch_plan" not in step)


# durations ---------------------------------------------------------------------------------------


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=50_000)))
def test_durations_are_written_as_protobuf_writes_them(value: timedelta) -> None:
    message = Duration()
    message.FromTimedelta(value)
    seconds = Decimal(value // timedelta(microseconds=1)).scaleb(-6)
    assert duration_text(seconds) == message.ToJsonString()
    assert parse_duration(message.ToJsonString()) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m0s", "5400"),
        ("1.5h", "5400"),
        ("1m0.25s", "60.25"),
        ("3ms", "0.003"),
        ("5ns", "5e-9"),
        ("0s", "0"),
        ("", None),
        ("5", None),
        ("-5s", None),
        ("5 s", None),
        (5, None),
        (None, None),
    ],
)
def test_durations_are_read_as_go_and_protobuf_write_them(text: Any, seconds: str | None) -> None:
    assert parse_duration(text) == (None if seconds is None else Decimal(seconds))
