"""Each target of an override and each transformer of task templates, over one real execution."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kubetailor.plugins.execution.literals import literal_of
from kubetailor.plugins.execution.tailored_execution import TailoredExecution
from kubetailor.plugins.execution.tailored_node import TailoredNode
from kubetailor.plugins.webhook.reviews import AdmissionReview
from kubetailor.registry import Override
from kubetailor.registry.tailor import Tailor

from .conftest import object_of, review_of

ALL = {"big", "n0", "n1", "n10", "n11", "n12.n0", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}
TRAIN = {"big", "n12.n0"}
MODEL = {"name": "large", "optimizer": {"lr": 0.1}}

TARGETS: list[tuple[dict[str, Any], set[str]]] = [
    ({"node": "n5"}, {"n5"}),
    ({"node": "n12.n0"}, {"n12.n0"}),  # in a subworkflow
    ({"node": "n1"}, {"n1"}),  # a map task
    ({"node": "n[5-7]"}, {"n5", "n6", "n7"}),
    ({"node": "*.n0"}, {"n12.n0"}),
    ({"task": "zoo.train"}, TRAIN),
    ({"task": ["*.train", "zoo.map_*"]}, TRAIN | {"n1"}),
    ({"task_type": "pytorch"}, {"n5"}),
    ({"task_type": ["mpi", "ra*"]}, {"n6", "n8", "n10"}),
    ({"workflow": "zoo.everything"}, ALL),
    ({"workflow": "zoo.inner"}, set()),  # that of the execution counts
    ({"project": "flyte*", "domain": "development"}, ALL),
    ({"execution": "adm74*"}, ALL),
    ({"version": "v?"}, ALL),
    ({"namespace": "*-development"}, ALL),
    ({"kind": "PyTorchJob"}, {"n5"}),
    ({"kind": "*Job"}, {"n5", "n6", "n7", "n8", "n9"}),
    ({"api_group": "kubeflow.org"}, {"n5", "n6", "n7"}),
    ({"role": "scheduler"}, {"n9"}),
    ({"role": "head"}, {"n8"}),
    ({"requests": "nvidia.com/gpu"}, {*TRAIN, "n5", "n6", "n8"}),
    ({"labels": {"team": "spee*"}}, {"n0"}),
    ({"labels": {"team": None}}, ALL - {"n0"}),
    ({"annotations": {"note": "x"}}, {"n0"}),
    ({"inputs": {"x": "3"}}, ALL - {"n3"}),
    ({"inputs": {"x": "7"}}, {"n3"}),  # bound to the task itself
    ({"inputs": {"x": 3, "model": {"name": "lar*"}}}, ALL - {"n3"}),
    ({"inputs": {"model": {"optimizer": {"lr": ["0.1", "0.2"]}}}}, ALL),
    ({"inputs": {"model": {"optimizer": {"lr": "0.2"}}}}, set()),
    ({"inputs": {"y": None}, "task": "zoo.train"}, TRAIN),
    ({"any": [{"node": "n5"}, {"labels": {"team": "*"}}]}, {"n0", "n5"}),
    ({"task": "zoo.train", "not": {"node": "big"}}, {"n12.n0"}),
    ({"all": [{"task": "*_job"}, {"requests": "nvidia.com/gpu"}]}, {"n5", "n6", "n8"}),
]


@pytest.fixture
def review() -> AdmissionReview:
    found = review_of("flyteworkflow")
    obj = object_of(found)
    obj["inputs"]["literals"]["model"] = literal_of(MODEL)
    seven = {"var": "x", "binding": {"scalar": {"primitive": {"integer": "7"}}}}
    obj["spec"]["nodes"]["n3"]["inputBindings"] = [seven]
    for task in obj["tasks"].values():
        task["id"]["version"] = "v1"
    return found


@pytest.mark.parametrize(("when", "expected"), TARGETS, ids=[json.dumps(w) for w, _ in TARGETS])
def test_a_target_is_for_these_nodes(
    when: dict[str, Any],
    expected: set[str],
    review: AdmissionReview,
    tailor_of: Callable[[str], Tailor],
) -> None:
    tailor = tailor_of("chains: {}")
    override = Override().step("retries", retries=9).when(when)
    execution = TailoredExecution(object_of(review), tailor, namespace="flytesnacks-development")
    execution.tailored(tailor.config.overrides.compile(override))
    found = {
        node.id: (
            node.pair.template["metadata"].get("retries") == {"retries": 9},
            node.spec.get("retry") == {"minAttempts": 10},
        )
        for node in execution.nodes()
    }
    assert found.keys() == ALL
    assert {id_ for id_, both in found.items() if both == (True, True)} == expected
    assert {id_ for id_, both in found.items() if any(both)} == expected


# the transformers of task templates, in every layer ----------------------------------------------

Read = Callable[[TailoredNode], Any]


def metadata(*names: str) -> Read:
    return lambda node: tuple(node.pair.template["metadata"].get(name) for name in names)


def compiled(*names: str) -> Read:
    return lambda node: tuple(node.spec.get(name) for name in names)


def replicas(node: TailoredNode) -> Any:
    return node.pair.template["custom"]["workerReplicas"]["replicas"]


WRITTEN: dict[str, tuple[dict[str, Any], list[tuple[Read, Any]]]] = {
    "cache": (
        {"cache": True, "version": "7"},
        [(metadata("discoverable", "discoveryVersion"), (True, "7"))],
    ),
    "retries": (
        {"retries": 5},
        [(metadata("retries"), ({"retries": 5},)), (compiled("retry"), ({"minAttempts": 6},))],
    ),
    "timeout": (
        {"timeout": 90},
        [
            (metadata("timeout"), ("90s",)),
            (compiled("executionDeadline", "activeDeadline"), ("90s", "180s")),
        ],
    ),
    "interruptible": (
        {"interruptible": True},
        [(metadata("interruptible"), (True,)), (compiled("interruptible"), (True,))],
    ),
    "task_config": ({"replicas": 7}, [(replicas, 7)]),
    "spark_conf": (
        {"set": {"spark.a": "b"}},
        [(lambda node: node.pair.template["custom"]["sparkConf"].get("spark.a"), "b")],
    ),
}


@pytest.mark.parametrize("layer", ["defaults", "steps", "override", "enforce"])
@pytest.mark.parametrize("use", WRITTEN)
def test_a_transformer_writes_what_the_engine_reads_in_every_layer(
    use: str, layer: str, review: AdmissionReview, tailor_of: Callable[[str], Tailor]
) -> None:
    with_, reads = WRITTEN[use]
    obj = object_of(review)
    key = obj["spec"]["nodes"]["n5"]["task"]
    if use == "spark_conf":
        obj["tasks"][key] |= {"type": "spark", "custom": {"sparkConf": {"spark.c": "d"}}}
    if (use, layer) == ("task_config", "defaults"):
        del obj["tasks"][key]["custom"]["workerReplicas"]["replicas"]
    step = {"use": use, "with": with_, "when": {"task": "zoo.torch_job"}}
    chain = {} if layer == "override" else {layer: [step]}
    tailor = tailor_of(f"chains: {json.dumps({'default': chain})}")
    override = Override.parse(json.dumps({"steps": [step]})) if layer == "override" else None
    execution = TailoredExecution(obj, tailor, namespace="flytesnacks-development")
    execution.tailored(None if override is None else tailor.config.overrides.compile(override))
    (node,) = [node for node in execution.nodes() if node.id == "n5"]
    assert [read(node) for read, _ in reads] == [expected for _, expected in reads]
