"""Whatever a built-in makes of any kind is valid: by the schemas that Kubernetes ships.

The steps and the objects are the examples of the reference. What a kind or its operator does not
take, the chain must say; what it takes, must be valid where the pod specs are.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from reference_examples import chain_of_all

from kubetailor.registry.testing import ChainBench, TailorBench
from kubetailor.workloads import JsonMap

from ..kind_examples import KINDS, PLUGINS, USES, each_alone, example, pods_of
from ..schemas import check_core

CORE = {"v1", "apps/v1", "batch/v1"}


def check(obj: JsonMap) -> None:
    """Every pod of an object is a pod, and an object of the core is what its schema says."""
    for found in [obj] if obj.get("apiVersion") in CORE else pods_of(obj):
        check_text(json.dumps(found))


@functools.cache
def check_text(text: str) -> None:
    """Roles often come out alike."""
    check_core(json.loads(text))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> ChainBench:
    """A chain of every built-in."""
    return TailorBench(tmp_path_factory.mktemp("chain")).chain(chain_of_all(USES))


def test_every_kind_has_an_example() -> None:
    names = {name for _, name in PLUGINS.kinds}
    assert {str(example(kind).get("kind", "TaskTemplate")) for kind in KINDS} == names


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_itself_is_valid(kind: str) -> None:
    check(example(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_out_is_valid(kind: str, tmp_path: Path) -> None:
    made = [outcome.after for _, outcome in each_alone(TailorBench(tmp_path), example(kind))]
    for obj in made:
        check(obj)
    assert len(made) > 5


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_chain_of_all_puts_out_is_valid(kind: str, everything: ChainBench) -> None:
    outcome = everything.prove(example(kind))
    check(outcome.after)
    assert len({change.step for change in outcome.changes}) > 5
