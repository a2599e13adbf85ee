"""Tasks of every kind in the words of the transformers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from kubetailor.plugins.client.editable import TASK_WORDS, editable
from kubetailor.plugins.flyte.messages import read_message
from kubetailor.registry.overrides.document import Override
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Workload
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


def test_words_are_the_transformers_that_change_them(tailor: Tailor) -> None:
    for word in TASK_WORDS.keys() - {"replicas"}:  # a parameter of task_config
        assert tailor.config.plugins.transformers[word].options.task_templates
    parameters = tailor.config.plugins.transformers["task_config"].annotations
    assert "replicas" in parameters
