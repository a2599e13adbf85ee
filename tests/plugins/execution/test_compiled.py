"""A registered workflow becomes the FlyteWorkflow that FlyteAdmin made of it."""

from __future__ import annotations

import importlib
import json
import re
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from flytekit import conditional, task, workflow
from flytekit.configuration import ImageConfig, SerializationSettings
from flytekit.core.context_manager import FlyteEntities
from flytekit.models.admin.workflow import WorkflowSpec
from flytekit.models.task import TaskSpec
from flytekit.tools import translator

from kubetailor.plugins.execution.compiled import closure_of_task, flyte_workflow
from kubetailor.plugins.execution.nodes import MAIN, graphs_of
from kubetailor.plugins.flyte.messages import as_json
from kubetailor.workloads.duration import go_duration_text, parse_duration

from ..flyte.closures import closure_of

IMAGE = "example.com/train:1"


@pytest.fixture(scope="module")
def reviewed() -> Iterator[ModuleType]:
    kept = list(FlyteEntities.entities)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # flytekit's plugins warn of their own arguments
        yield importlib.import_module(f"{__package__}.reviewed")
    FlyteEntities.entities[:] = kept


def closure(entity: Any, **settings: Any) -> dict[str, Any]:
    """What FlyteAdmin compiles of a workflow of flytekit's."""
    found: OrderedDict[Any, Any] = OrderedDict()
    place = {"project": "flytesnacks", "domain": "development", "version": "v1"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        translator.get_serializable(
            found,
            SerializationSettings(ImageConfig.auto_default_image(), **place, **settings),
            entity,
        )
    specs = [each.to_flyte_idl() for each in found.values() if isinstance(each, TaskSpec)]
    tasks = {(spec.template.id.name, "v1"): _Created(spec) for spec in specs}
    (spec,) = (
        model.to_flyte_idl()
        for made, model in found.items()
        if made is entity and isinstance(model, WorkflowSpec)
    )
    return as_json(closure_of(spec, tasks))


class _Created:
    """A CreateTask request."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec


def compiled(entity: Any, **given: Any) -> dict[str, Any]:
    return flyte_workflow(closure(entity), project="flytesnacks", domain="development", **given)


def as_if_reviewed(obj: Mapping[str, Any], module: str) -> Any:
    """The real object under the names of the module that stands for the one it was made of."""
    text = json.dumps(obj)
    text = re.sub(r"map_shard_[0-9a-f]{32}", "map_shard", text)
    return json.loads(re.sub(r"  +", " ", text.replace("zoo.", f"{module}.")))


def without(spec: Any, *fields: str) -> Any:
    return {key: value for key, value in spec.items() if key not in fields}


def test_every_node_is_as_flyteadmin_compiled_it(
    real: dict[str, Any], reviewed: ModuleType
) -> None:
    module = reviewed.__name__
    ours = as_if_reviewed(compiled(reviewed.everything), module)
    theirs = as_if_reviewed(real, module)
    assert ours["spec"]["id"] == theirs["spec"]["id"]
    assert ours["subWorkflows"].keys() == theirs["subWorkflows"].keys()
    for key, graph in {**ours["subWorkflows"], "": ours["spec"]}.items():
        their = theirs["subWorkflows"].get(key, theirs["spec"])
        assert graph["nodes"].keys() == their["nodes"].keys()
        for name, node in graph["nodes"].items():
            assert node == their["nodes"][name]


def test_every_task_is_as_flyteadmin_sent_it(real: dict[str, Any], reviewed: ModuleType) -> None:
    module = reviewed.__name__
    ours = as_if_reviewed(compiled(reviewed.everything), module)["tasks"]
    theirs = as_if_reviewed(real, module)["tasks"]
    assert ours.keys() == theirs.keys()
    for key, template in ours.items():
        their = theirs[key]
        assert template.keys() == their.keys()
        for part in template.keys() - {"interface", "container", "k8sPod", "metadata"}:
            assert template[part] == their[part], (key, part)
        # FlyteAdmin adds its defaults, and the arguments have the name of the file.
        for part, fields in _OWN.items():
            assert without(template.get(part, {}), *fields) == without(their.get(part, {}), *fields)
        assert bare_pod(template) == bare_pod(their)


_OWN = {"container": ("resources", "args", "env"), "metadata": ("runtime",), "k8sPod": ("podSpec",)}


def bare_pod(template: dict[str, Any]) -> Any:
    spec = template.get("k8sPod", {}).get("podSpec", {})
    containers = [without(container, "args") for container in spec.get("containers", ())]
    return {**spec, "containers": containers}


def test_what_an_execution_is_given_is_on_it(reviewed: ModuleType) -> None:
    found = compiled(
        reviewed.inner,
        labels={"team": "speech"},
        annotations={"a": "b"},
        inputs={"i": 3, "f": 0.5, "b": True, "s": "x"},
    )
    assert found["metadata"] == {
        "namespace": "flytesnacks-development",
        "labels": {"team": "speech"},
        "annotations": {"a": "b"},
    }
    assert found["executionId"] == {"project": "flytesnacks", "domain": "development"}
    primitives = {k: v["scalar"]["primitive"] for k, v in found["inputs"]["literals"].items()}
    assert primitives == {
        "i": {"integer": "3"},
        "f": {"floatValue": 0.5},
        "b": {"boolean": True},
        "s": {"stringValue": "x"},
    }


# what the real execution has not -----------------------------------------------------------------


@task(container_image=IMAGE, retries=1, timeout=5400)
def slow(x: int) -> int:
    return x


SLOW: Any = slow  # no type checker knows what a call of it gives in a workflow


@workflow
def branching(x: int) -> int:
    value: Any = x
    begun: Any = conditional("q")
    return (  # type: ignore[no-any-return]  # a promise
        begun.if_(value > 1)
        .then(SLOW(x=x))
        .elif_(value > 0)
        .then(SLOW(x=x).with_overrides(retries=5, timeout=1, container_image="other:1"))
        .else_()
        .fail("no")
    )


@task(container_image=IMAGE)
def clean(x: int) -> None:
    pass


@workflow(on_failure=clean)
def failing(x: int) -> int:
    found: Any = slow(x=x)
    return found  # type: ignore[no-any-return]  # a promise


def test_what_a_branch_runs_is_in_the_same_graph() -> None:
    nodes = compiled(branching)["spec"]["nodes"]
    assert set(nodes) == {"start-node", "end-node", "n0", "n0-n0", "n0-n1"}
    assert nodes["n0"]["kind"] == "branch"
    plain = without(nodes["n0-n0"], "inputBindings", "task")
    assert plain == {
        "id": "n0-n0",
        "name": "slow",
        "kind": "task",
        "resources": {},
        "retry": {"minAttempts": 2},
        "executionDeadline": "1h30m0s",
        "activeDeadline": "3h0m0s",
    }
    own = nodes["n0-n1"]
    assert (own["retry"], own["executionDeadline"], own["containerImage"]) == (
        {"minAttempts": 6},
        "1s",
        "other:1",
    )


def test_the_failure_node_is_a_node() -> None:
    found = compiled(failing)
    assert found["spec"]["onFailure"]["kind"] == "task"
    assert {node.id for node in graphs_of(found)[MAIN].nodes} == {"n0", "fn0"}


@pytest.mark.parametrize(
    ("name", "id_"),
    [("zoo.train", "zootrain"), ("a-b_c.d", "a-bcd"), ("x." + "y" * 70, "y" * 63)],
)
def test_a_task_alone_is_a_workflow_of_one_node(name: str, id_: str) -> None:
    template = {"id": {"name": name, "project": "p", "domain": "d", "version": "1"}, "type": "t"}
    found = flyte_workflow(closure_of_task(template), project="p", domain="d")
    assert found["spec"]["id"] == f"p:d:.flytegen.{name}"
    (node,) = graphs_of(found)[MAIN].nodes
    assert node.id == id_
    assert found["tasks"][node.task] == template
    assert node.spec["retry"] == {"minAttempts": 4}  # FlyteAdmin's own, where a task says nothing


def test_a_task_alone_has_its_own_retries() -> None:
    template = {"id": {"name": "t"}, "type": "t", "metadata": {"retries": {}}}
    (node,) = graphs_of(flyte_workflow(closure_of_task(template), project="", domain=""))[
        MAIN
    ].nodes
    assert "retry" not in node.spec


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        ("0", "0s"),
        ("1", "1s"),
        ("60", "1m0s"),
        ("90.5", "1m30.5s"),
        ("3600", "1h0m0s"),
        ("86400", "24h0m0s"),
        ("0.25", "250ms"),
        ("0.0000015", "1.5µs"),
        ("0.000000003", "3ns"),
    ],
)
def test_durations_are_written_as_go_writes_them(seconds: str, text: str) -> None:
    assert go_duration_text(Decimal(seconds)) == text
    assert parse_duration(text) == Decimal(seconds)
