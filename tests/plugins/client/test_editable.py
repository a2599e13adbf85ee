"""Tasks of every kind in the words of the transformers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from kubetailor.plugins.client.editable import editable
from kubetailor.plugins.client.edited import override_of_edit, read_edited
from kubetailor.plugins.client.pod_words import POD_WORDS
from kubetailor.plugins.client.task_words import TASK_WORDS
from kubetailor.plugins.client.words import Place, Word
from kubetailor.plugins.flyte.messages import read_message
from kubetailor.registry.overrides.document import Override
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Workload, dump_yaml
from kubetailor.workloads.task_template import TASK_TEMPLATE

from ..flyte.conftest import zoo

__all__ = ["zoo"]

Say = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def tailor() -> Tailor:
    return Tailor.built_in()


@pytest.fixture(scope="module")
def templates(zoo: ModuleType) -> dict[str, Any]:
    from ..flyte.conftest import Flyte

    found: OrderedDict[Any, Any] = Flyte.serialize(zoo.everything)
    return {
        name.rpartition(".")[2]: read_message(template)
        for name, template in Flyte.templates(found).items()
    }


@pytest.fixture
def say(templates: dict[str, Any], tailor: Tailor) -> Say:
    return lambda name: editable(templates[name], tailor.config.catalogue)


def test_every_task_of_the_zoo_can_be_said(templates: dict[str, Any], say: Say) -> None:
    for name, template in templates.items():
        found = say(name)
        assert {"task", "task_type", "version", "retries", "cache", "pods"} <= found.keys()
        pods = Workload(template, TASK_TEMPLATE).pods()
        assert list(found["pods"]) == [", ".join(pod.roles) for pod in pods]
        assert all("kubetailor.dev" not in key for key in found["annotations"])


def test_replicas_and_what_else_a_config_says_are_apart(say: Say) -> None:
    torch = say("torch_job")
    assert torch["replicas"] == {"master": 1, "worker": 3}
    assert "task_config" not in torch
    assert torch["pods"]["master, worker"]["gpu"]["count"] == 2
    mpi = say("mpi_job")
    assert (mpi["replicas"], mpi["task_config"]) == ({"launcher": 1, "worker": 2}, {"slots": 1})
    assert "nprocPerNode" in say("elastic_many")["task_config"]["elasticConfig"]


def test_a_spark_conf_is_a_word_of_its_own(say: Say) -> None:
    spark = say("spark_job")
    assert spark["spark_conf"]
    assert "sparkConf" not in spark.get("task_config", {})
    assert list(spark["pods"]) == ["driver, executor"]


def test_ray_has_groups(say: Say) -> None:
    ray = say("ray_job")
    (workers,) = [role for role in ray["replicas"] if role.startswith("worker:")]
    assert ray["replicas"][workers] == 2
    assert "k8sPod" not in str(ray["task_config"])


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize(
    "name", ["nvidia-h100-80gb", "nvidia-h100-80gb-eks", "nvidia-t4", "nvidia-l4"]
)
def test_a_gpu_that_was_chosen_has_its_name(
    templates: dict[str, Any], tailor: Tailor, name: str, count: int
) -> None:
    override = tailor.config.overrides.compile(Override().step("gpu", type=name, count=count))
    chain = tailor.config.no_chain.overridden(override)
    after = chain.run(templates["train"], TASK_TEMPLATE, tailor.task("launch")).after
    said = editable(after, tailor.config.catalogue)["pods"]["primary"]["gpu"]
    assert said["count"] == count
    assert name in (said["type"], *said.get("one_of", ()))
    again = tailor.config.overrides.compile(Override().step("gpu", type=said["type"] or name))
    repeated = tailor.config.no_chain.overridden(again)
    assert repeated.run(after, TASK_TEMPLATE, tailor.task("launch")).after == after


def test_what_is_said_is_read_back_as_it_is(templates: dict[str, Any], say: Say) -> None:
    given = {"nodes": {name: say(name) for name in templates}}
    read = read_edited(dump_yaml([given]), "edited")
    assert read == given
    assert not override_of_edit(given, read, {}).steps


def test_what_a_config_of_a_task_has_is_typed_whatever_it_is_called(say: Say) -> None:
    said = say("mpi_job")
    said["task_config"] |= {"env": {"value": 5}, "labels": {"key": True}}
    assert read_edited(dump_yaml([{"nodes": {"n0": said}}]), "edited")["nodes"]["n0"] == said


HEAD = {"task", "task_type", "version", "pods"}


def test_what_is_said_is_in_the_tables(templates: dict[str, Any], say: Say) -> None:
    of_task, of_pods = set[str](), set[str]()
    for name in templates:
        said = say(name)
        of_task |= said.keys()
        of_pods |= {word for pod in said["pods"].values() for word in pod}
    assert of_task == TASK_WORDS.keys() | HEAD
    assert of_pods == POD_WORDS.keys() | {"rest"}


def test_words_are_the_transformers_that_change_them(tailor: Tailor) -> None:
    transformers = tailor.config.plugins.transformers
    for word in (TASK_WORDS.keys() | POD_WORDS.keys()) - {"replicas"}:
        assert word in transformers
    assert "replicas" in transformers["task_config"].annotations


CHANGES: dict[str, tuple[Any, Any]] = {
    "cache": ({"cache": False}, {"cache": True, "version": "1"}),
    "retries": (0, 2),
    "timeout": (None, "1h"),
    "interruptible": (None, True),
    "labels": ({}, {"team": "speech"}),
    "annotations": ({"a": "b"}, {}),
    "replicas": ({"worker": 1}, {"worker": 2}),
    "spark_conf": ({"spark.a": "1"}, {"spark.a": "2"}),
    "task_config": ({"slots": 1}, {"slots": 2}),
    "gpu": (None, {"type": "nvidia-l4", "count": 1}),
    "resources": ({"requests": {}}, {"requests": {"cpu": "1"}}),
    "image": ("a", "b"),
    "env": ({}, {"A": "1"}),
    "node_selector": ({}, {"pool": "a"}),
    "tolerations": ([], [{"key": "a", "operator": "Exists"}]),
    "priority_class": (None, "high"),
}


@pytest.mark.parametrize(
    ("word", "how"),
    [pytest.param(*each, id=each[0]) for each in {**TASK_WORDS, **POD_WORDS}.items()],
)
def test_each_word_is_written_as_a_step_that_there_is(
    tailor: Tailor, word: str, how: Word[...]
) -> None:
    old, new = CHANGES[word]
    config = tailor.config
    ((use, given),) = how.write(Place("n0", {}, "n0"), word, old, new)
    transformer = config.plugins.transformers[use]
    assert read_parameters(transformer, given, config.catalogue)
