"""What the objects of one real execution say of their tasks."""

from __future__ import annotations

from typing import Any

import pytest

from kubetailor.plugins.execution.object_identity import known_of
from kubetailor.registry.context import FIELDS
from kubetailor.workloads import BUILTIN_KINDS, InvalidObjectError, KindTable, Workload

from .conftest import NAMES, object_of, review_of

KINDS = KindTable(BUILTIN_KINDS)
EXECUTION = "adm74pqlsdkn7dpj6mlj"
TASKS = [name for name in NAMES if not name.startswith("flyteworkflow")]


def known(name: str, **changes: Any) -> dict[str, Any]:
    obj = object_of(review_of(name))
    kind = KINDS.of(obj)
    assert kind is not None
    return known_of(Workload({**obj, **changes}, kind), "flytesnacks-development")


@pytest.mark.parametrize("name", TASKS)
def test_every_object_of_flytes_says_whose_it_is(name: str) -> None:
    found = known(name)
    assert found["project"] == "flytesnacks"
    assert found["domain"] == "development"
    assert found["version"] == "v1"
    assert found["attempt"] == 0
    assert found["namespace"] == "flytesnacks-development"
    assert found["task"].startswith("zoo.")
    assert not {"launch_plan", "inputs"} & found.keys()


@pytest.mark.parametrize(
    ("name", "task", "node"),
    [
        ("pod-n0-0", "zoo.prepare", "n0"),
        ("pod-big-0", "zoo.train", "big"),
        ("pod-n1-0-n0-0", "zoo.map_shard_6b3bd0353da5de6e84d7982921ead2b3-arraynode", "n1"),
        ("pod-n1-0-n2-0", "zoo.map_shard_6b3bd0353da5de6e84d7982921ead2b3-arraynode", "n1"),
        ("pod-n11-0-dn0-0", "zoo.train", "n11.dn0"),
        ("pod-n12-0-n0-0", "zoo.train", "n12.n0"),
        ("pod-n5-0-worker-0", "zoo.torch_job", "n5"),
        ("pod-n8-0-head", "zoo.ray_job", "n8"),
        ("daskjob-n9-0", "zoo.dask_job", "n9"),
    ],
)
def test_task_and_node_are_exact(name: str, task: str, node: str) -> None:
    assert (known(name)["task"], known(name)["node"]) == (task, node)


def test_a_child_execution_is_not_its_parent() -> None:
    # Its labels are the parent's.
    labels = object_of(review_of("pod-child-n0-0"))["metadata"]["labels"]
    assert (labels["execution-id"], labels["workflow-name"]) == (EXECUTION, "zoo-everything")
    found = known("pod-child-n0-0")
    assert (found["execution"], found["workflow"]) == ("fix2oejp61bbzo", "zoo.inner")


@pytest.mark.parametrize(
    ("name", "task_type"),
    [
        ("pytorchjob-n5-0", "pytorch"),
        ("pod-n5-0-master-0", "pytorch"),
        ("tfjob-n7-0", "tensorflow"),
        ("mpijob-n6-0", "mpi"),
        ("rayjob-n8-0", "ray"),
        ("raycluster-n8-0", "ray"),
        ("pod-n8-0-gpu-worker", "ray"),
        ("daskjob-n9-0", "dask"),
    ],
)
def test_the_kind_tells_the_task_type(name: str, task_type: str) -> None:
    assert known(name)["task_type"] == task_type


def test_many_task_types_make_a_plain_pod() -> None:
    assert "task_type" not in known("pod-n0-0")


def test_without_a_trace_of_flyte_nothing_is_unknown() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine", "labels": {"project": "speech"}},
        "spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]},
    }
    found = known_of(Workload(pod, KINDS["", "Pod"]), "speech")
    assert found.keys() == set(FIELDS)
    assert found.pop("namespace") == "speech"
    assert set(found.values()) == {None}


def test_the_owner_beats_a_variable() -> None:
    obj = object_of(review_of("pod-n0-0"))
    for entry in obj["spec"]["containers"][0]["env"]:
        if entry["name"] == "FLYTE_INTERNAL_EXECUTION_ID":
            entry["value"] = "somebody-elses"
    found = known_of(Workload(obj, KINDS["", "Pod"]), None)
    assert found["execution"] == EXECUTION


@pytest.mark.parametrize(
    ("name", "node"),
    [
        (f"{EXECUTION}-n2-0-n1-0-n0-0", "n2.n1"),
        (f"{EXECUTION}-n1-3-n0-0", "n1"),
        ("fabcdefg", None),
    ],
)
def test_the_node_of_a_map_task_is_that_of_the_map(name: str, node: str | None) -> None:
    metadata = {**object_of(review_of("pod-n1-0-n0-0"))["metadata"], "name": name}
    assert known("pod-n1-0-n0-0", metadata=metadata).get("node") == node


def test_without_its_name_the_node_of_an_object_is_unknown() -> None:
    metadata = {**object_of(review_of("pod-n12-0-n0-0"))["metadata"], "name": "fabcdefg"}
    assert "node" not in known("pod-n12-0-n0-0", metadata=metadata)


# lies ------------------------------------------------------------------------------------------

EXACT = [
    "FLYTE_INTERNAL_EXECUTION_ID",
    "FLYTE_INTERNAL_EXECUTION_PROJECT",
    "FLYTE_INTERNAL_EXECUTION_DOMAIN",
    "FLYTE_INTERNAL_EXECUTION_WORKFLOW",
    "FLYTE_INTERNAL_TASK_NAME",
    "FLYTE_INTERNAL_TASK_VERSION",
]


def with_variable(name: str, value: str, *, first: bool) -> Workload:
    obj = object_of(review_of("pod-n0-0"))
    env = obj["spec"]["containers"][0]["env"]
    env.insert(0 if first else len(env), {"name": name, "value": value})
    kind = KINDS.of(obj)
    assert kind is not None
    return Workload(obj, kind)


@pytest.mark.parametrize("first", [True, False], ids=["of the task", "of the execution"])
@pytest.mark.parametrize("name", EXACT)
def test_a_variable_that_contradicts_propellers_is_refused(name: str, first: bool) -> None:
    """`pyflyte run --env` comes after Propeller's own, and a task's `environment` before them."""
    with pytest.raises(InvalidObjectError, match=name):
        known_of(with_variable(name, "a:b:another", first=first), None)


@pytest.mark.parametrize("name", EXACT)
def test_one_that_says_the_same_twice_is_none(name: str) -> None:
    obj = object_of(review_of("pod-n0-0"))
    env = {entry["name"]: entry["value"] for entry in obj["spec"]["containers"][0]["env"]}
    found = known_of(with_variable(name, env[name], first=False), "flytesnacks-development")
    assert found == known("pod-n0-0")


@pytest.mark.parametrize("said", ["9" * 5000, "-1", "", "1e3", "one"])
def test_an_attempt_that_is_no_number_is_not_known(said: str) -> None:
    assert "attempt" not in known_of(with_variable("FLYTE_ATTEMPT_NUMBER", said, first=False), None)
