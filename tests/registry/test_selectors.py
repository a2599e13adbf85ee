"""`when`: yes, no, or not to be known."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from kubetailor.registry import TaskContext
from kubetailor.registry.selectors import View, compile_selector
from kubetailor.registry.source import Plain
from kubetailor.workloads import BUILTIN_KINDS, KindTable, Workload

KINDS = KindTable(BUILTIN_KINDS)


def container(**limits: Any) -> Any:
    return {
        "name": "c",
        "resources": {"limits": {k.replace("_", "/"): v for k, v in limits.items()}},
    }


POD: Any = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"labels": {"team": "speech"}, "annotations": {"a": "b"}, "namespace": "ns"},
    "spec": {
        "containers": [container(), {**container(**{"nvidia.com_gpu": 1, "x": "0"}), "name": "d"}]
    },
}
JOB: Any = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"template": {"spec": {"containers": [container()]}}},
            "Worker": {"template": {"spec": {"containers": [container(**{"nvidia.com_gpu": 1})]}}},
        }
    },
}
TEMPLATE: Any = {
    "type": "pytorch",
    "custom": {},
    "container": {"resources": {"limits": [{"name": "GPU", "value": "1"}]}},
}


def holds(
    when: Any, obj: Any = POD, pod: int | None = None, phase: Any = "serialize", **known: Any
) -> bool | None:
    kind = KINDS.of(obj)
    assert kind is not None
    workload = Workload(obj, kind)
    view = View(
        TaskContext(phase, **known), workload, None if pod is None else workload.pods()[pod]
    )
    return compile_selector(when).test(view)


@pytest.mark.parametrize(
    ("when", "result"),
    [
        (None, True),
        ({"domain": "development"}, True),
        ({"domain": "dev*"}, True),
        ({"domain": "Dev*"}, False),
        ({"domain": "[a-d]*ment"}, True),
        ({"domain": ["production", "dev*"]}, True),
        ({"domain": ["production", "staging"]}, False),
        ({"domain": Plain("development")}, True),
        ({"project": "p"}, None),
        ({"workflow": None}, True),
        ({"workflow": "*"}, False),
        ({"domain": None}, False),
        ({"kind": "Pod", "api_group": ""}, True),
        ({"kind": ["PyTorchJob", "P?d"]}, True),
        ({"namespace": "ns"}, True),
        ({"phase": "serialize"}, True),
        ({"phase": ["launch", "admit"]}, False),
        ({"labels": {"team": "sp*"}}, True),
        ({"labels": {"team": "speech", "other": "*"}}, False),
        ({"labels": {"other": None}}, True),
        ({"annotations": {"a": ["x", "b"]}}, True),
        ({"inputs": {"a": "1"}}, None),
        ({"requests": "nvidia.com/gpu"}, True),
        ({"requests": "nvidia.com/*"}, True),
        ({"requests": ["amd.com/gpu", "*/gpu"]}, True),
        ({"requests": "x"}, False),
        ({"requests": "amd.com/gpu"}, False),
        ({"role": "primary"}, True),
        ({"role": "worker"}, False),
        ({"not": {"domain": "development"}}, False),
        ({"not": {"project": "p"}}, None),
        ({"domain": "development", "kind": "Job"}, False),
        ({"any": [{"kind": "Job"}, {"domain": "development"}]}, True),
        ({"all": [{"kind": "Pod"}, {"not": {"kind": "Job"}}]}, True),
        ({"any": [{"project": "p"}, {"kind": "Pod"}]}, True),
        ({"all": [{"project": "p"}, {"kind": "Job"}]}, False),
        ({"project": "p", "kind": "Pod"}, None),
        ({"version": 1}, True),
        ({"attempt": "0"}, "no field 'attempt'"),
    ],
)
def test_conditions(when: Any, result: Any) -> None:
    if isinstance(result, str):
        with pytest.raises(ValueError, match=result):
            compile_selector(when)
        return
    assert holds(when, domain="development", workflow=None, version="1") is result


@pytest.mark.parametrize(
    ("inputs", "when", "result"),
    [
        ({"n": 5, "flag": True, "name": "x"}, {"n": "5", "flag": "true", "name": "[xy]"}, True),
        ({"n": 5}, {"n": 5}, True),
        ({"flag": False}, {"flag": False}, True),
        ({"flag": False}, {"flag": True}, False),
        ({}, {"n": "5"}, False),
        (None, {"n": None}, True),
    ],
)
def test_inputs_are_compared_as_text(inputs: Any, when: Any, result: bool) -> None:
    assert holds({"inputs": when}, inputs=inputs) is result


def test_globs_look_at_the_beginning_of_a_long_text_which_takes_no_time() -> None:
    task = TaskContext("launch", inputs={"text": "a" * 1_000_000})
    view = View(task, Workload(POD, KINDS["", "Pod"]))
    started = time.process_time()
    for globs, result in ((["a*", "b*"], True), ([f"*b{i}" for i in range(1000)], False)):
        selector = compile_selector({"inputs": {"text": globs}})
        assert [selector.test(view) for _ in range(10)] == [result] * 10
    assert time.process_time() - started < 2
    assert compile_selector({"inputs": {"text": "a" * 1_000_000}}).test(view) is True


@pytest.mark.parametrize(
    ("when", "master", "worker", "whole"),
    [
        ({"role": "worker"}, False, True, True),
        ({"role": ["master", "worker"]}, True, True, True),
        ({"role": "chief"}, False, False, False),
        ({"requests": "nvidia.com/gpu"}, False, True, True),
        ({"not": {"role": "master"}}, False, True, False),
        ({"role": "master", "requests": "nvidia.com/gpu"}, False, False, True),
    ],
)
def test_roles_and_requests_pick_pods(when: Any, master: bool, worker: bool, whole: bool) -> None:
    assert holds(when, JOB, 0) is master
    assert holds(when, JOB, 1) is worker
    assert holds(when, JOB) is whole
    kind = KINDS.of(JOB)
    assert kind is not None
    assert compile_selector(when).per_pod
    assert compile_selector(when).of_workload(TaskContext("admit"), Workload(JOB, kind)) is (
        master or worker
    )


def test_a_role_is_a_group_too() -> None:
    ray = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "spec": {
            "workerGroupSpecs": [{"groupName": "gpu", "template": {"spec": {"containers": []}}}]
        },
    }
    for when in ("worker", "worker:gpu", "worker:*", "work*"):
        assert holds({"role": when}, ray, 0) is True
    assert holds({"role": "worker:cpu"}, ray, 0) is False


def test_a_pod_spec_that_serves_several_roles_cannot_be_told_apart_yet() -> None:
    assert holds({"role": "worker"}, TEMPLATE, 0) is None
    assert holds({"role": ["master", "worker"]}, TEMPLATE, 0) is True
    assert holds({"role": "chief"}, TEMPLATE, 0) is False
    assert holds({"requests": "nvidia.com/gpu"}, TEMPLATE, 0) is True, "flytekit's `gpu`"
    assert holds({"requests": "nvidia.com/*"}, TEMPLATE, 0) is True
    assert holds({"kind": "PyTorchJob", "api_group": "kubeflow.org"}, TEMPLATE) is True


VALUES = (True, False, None)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(VALUES, VALUES)))
def test_three_valued_logic_is_kleenes(a: bool | None, b: bool | None) -> None:
    known = {True: "x", False: "y"}

    def condition(field: str, value: bool | None) -> Any:
        return {field: "x"}

    fields = {"project": a, "domain": b}
    context: dict[str, Any] = {
        name: known[value] for name, value in fields.items() if value is not None
    }
    parts = [condition(name, value) for name, value in fields.items()]
    expect_all = False if False in (a, b) else None if None in (a, b) else True
    expect_any = True if True in (a, b) else None if None in (a, b) else False
    assert holds({"all": parts}, **context) is expect_all
    assert holds({"project": "x", "domain": "x"}, **context) is expect_all
    assert holds({"any": parts}, **context) is expect_any
    assert holds({"not": {"any": parts}}, **context) is (
        None if expect_any is None else not expect_any
    )
    assert holds({"not": {"not": {"all": parts}}}, **context) is expect_all


def test_labels_are_those_that_the_steps_before_left() -> None:
    kind = KINDS.of(POD)
    assert kind is not None
    workload = Workload(POD, kind)
    selector = compile_selector({"labels": {"new": "x"}})
    view = View(TaskContext("serialize"), workload)
    assert selector.test(view) is False
    workload.label("new", "x")
    assert selector.test(view) is True
    assert selector.fields == {"labels"}
    assert selector.written == {"labels": {"new": "x"}}
