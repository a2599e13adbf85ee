"""Overrides in Python: options of an execution, and launch plans that carry one."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from flytekit import (
    LaunchPlan,
    conditional,
    reference_launch_plan,
    reference_workflow,
    task,
    workflow,
)
from flytekit.configuration import ImageConfig, SerializationSettings
from flytekit.core.options import Options
from flytekit.core.type_engine import TypeEngine
from flytekit.models.common import Annotations, Labels
from flytekit.remote import FlyteRemote
from flytekit.tools.translator import get_serializable
from flytekit.types.directory import FlyteDirectory
from flytekit.types.file import FlyteFile
from flytekit.types.structured import StructuredDataset
from google.protobuf.json_format import MessageToDict
from pydantic import BaseModel

from kubetailor.plugins.client import launching
from kubetailor.plugins.client.annotations import merged
from kubetailor.plugins.client.overrides import Overrides
from kubetailor.plugins.execution.literals import plain_inputs
from kubetailor.registry import Override, OverrideError, TaskContext, Workload
from kubetailor.registry.overrides.document import OVERRIDE
from kubetailor.registry.selectors import View, compile_selector
from kubetailor.workloads import BUILTIN_KINDS

from ..flyte.flyteadmin import FlyteAdmin
from . import workflows as _workflows
from .conftest import remote_of

workflows: Any = _workflows
H100 = Overrides().step("gpu", type="nvidia-h100-80gb").on(task="*.fit")
RETRIES = Overrides().step("retries", retries=5)
H100_DATA = {
    "use": "gpu",
    "with": {"type": "nvidia-h100-80gb"},
    "when": {"task": "*.fit"},
}


@pytest.fixture(autouse=True)
def config(configure: Callable[[str], Path]) -> None:
    """One that lets an execution override what is allowed by default."""
    configure("{phases: [launch], chains: {}}")


def steps_of(annotations: Any) -> list[Any]:
    """The steps of the override in a map of annotations."""
    return list(json.loads(annotations[OVERRIDE])["steps"])


def sent(admin: FlyteAdmin) -> dict[str, str]:
    """The annotations of the last execution's request."""
    return dict(admin.executions[-1].spec.annotations.values)


def registrations(admin: FlyteAdmin) -> list[bytes]:
    """All that was registered, as bytes."""
    kept = (admin.tasks, admin.workflows, admin.launch_plans)
    return sorted(
        request.SerializeToString(deterministic=True) for each in kept for request in each.values()
    )


# the builder --------------------------------------------------------------------------------------


def test_the_builder_keeps_its_class() -> None:
    built = H100.when({"node": "n1"}).named("a").optional() + Override().step("cache", cache=False)
    assert type(built) is Overrides
    assert type(Overrides.parse("{steps: [{use: gpu}]}")) is Overrides
    assert type(Override() + H100) is Override


def test_of_two_steps_of_one_name_the_later_stays() -> None:
    below = Override().step("gpu", type="a").named("it").step("cache", cache=False)
    above = Override().step("retries", retries=1).step("gpu", type="b").named("it")
    assert [step.use for step in (below + above).steps] == ["cache", "retries", "gpu"]


# the annotations ----------------------------------------------------------------------------------


def test_an_execution_keeps_the_launch_plans_annotations_and_beats_its_override() -> None:
    own = {"team": "speech", "owner": "a", OVERRIDE: Override().step("retries", n=1).annotation()}
    found = merged(own, {"owner": "b"}, H100).request
    assert {key: found[key] for key in ("team", "owner")} == {"team": "speech", "owner": "b"}
    assert [step["use"] for step in steps_of(found)] == ["retries", "gpu"]


def test_an_override_in_the_request_takes_the_place_of_the_launch_plans() -> None:
    own = {OVERRIDE: Override().step("retries", n=1).annotation()}
    given = {OVERRIDE: Override().step("cache", cache=False).annotation()}
    assert [step["use"] for step in steps_of(merged(own, given, H100).request)] == ["cache", "gpu"]


@pytest.mark.parametrize(
    ("own", "given", "said"),
    [({OVERRIDE: "{"}, {}, "of the launch plan"), ({}, {OVERRIDE: "[]"}, "of the request")],
)
def test_an_override_below_that_cannot_be_read_is_refused(own: Any, given: Any, said: str) -> None:
    with pytest.raises(OverrideError, match=f"{OVERRIDE} {said}"):
        merged(own, given, H100)


def test_what_flyteadmin_is_configured_with_is_not_lost(
    remote: FlyteRemote, admin: FlyteAdmin
) -> None:
    admin.annotations["speech", "development", f"{workflows.__name__}.small"] = {"a": "workflow"}
    admin.annotations["speech", "development", ""] = {"a": "domain"}
    admin.annotations["speech", "", ""] = {"a": "project"}
    cache = Overrides().step("cache", cache=False)

    def of(entity: Any) -> Any:
        options: Any = cache.options(remote, entity)
        return options.annotations.values["a"]

    assert of(workflows.small) == "workflow"
    assert of(workflows.prepare) == "domain"
    del admin.annotations["speech", "development", ""]
    assert of(workflows.prepare) == "project"
    stated = LaunchPlan.get_or_create(
        workflows.small, "stated", annotations=Annotations({"a": "launch plan"})
    )
    assert of(stated) == "launch plan"


def test_other_options_stay(remote: FlyteRemote) -> None:
    given = Options(labels=Labels({"team": "a"}), max_parallelism=3)
    found: Any = Overrides().step("cache", cache=False).options(remote, workflows.small, given)
    assert (found.labels.values, found.max_parallelism) == ({"team": "a"}, 3)
    assert given.annotations is None
    # FlyteAdmin takes the launch plan's where the request has none.
    assert Overrides().step("cache", cache=False).options(remote, workflows.small).labels is None


# what is registered -----------------------------------------------------------------------------


@pytest.fixture
def entities_of(remote: FlyteRemote, admin: FlyteAdmin) -> dict[str, Any]:
    """Each kind of thing that `FlyteRemote.execute` takes, of one workflow whose launch plan has
    an annotation, and of its tasks."""
    remote.register_workflow(workflows.train, version="v1")
    (plan,) = admin.launch_plans.values()
    plan.spec.annotations.values["team"] = "speech"
    name, task = f"{workflows.__name__}.train", f"{workflows.__name__}.fit"
    place = ("speech", "development", name, "v1")

    def train(x: int) -> int:
        return x

    return {
        "launch plan": remote.fetch_launch_plan(*place),
        "workflow": remote.fetch_workflow(*place),
        "reference to a launch plan": reference_launch_plan(*place)(train),
        "reference to a workflow": reference_workflow(*place)(train),
        "task": remote.fetch_task("speech", "development", task, "v1"),
    }


@pytest.mark.parametrize(
    "kind",
    ["launch plan", "workflow", "reference to a launch plan", "reference to a workflow", "task"],
)
def test_what_is_registered_is_checked(
    remote: FlyteRemote,
    admin: FlyteAdmin,
    entities_of: dict[str, Any],
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    entity = entities_of[kind]
    before = registrations(admin)
    remote.execute(entity, {"x": 1}, options=H100.options(remote, entity))
    own = set() if kind == "task" else {"team"}
    assert sent(admin).keys() == {*own, OVERRIDE}
    assert registrations(admin) == before
    assert capsys.readouterr().err == ""
    with pytest.raises(OverrideError, match=rf"it matches no task.*{workflows.__name__}\.fit"):
        Overrides().step("retries", retries=1).on(task="*.fti").options(remote, entity)
    with pytest.raises(OverrideError, match="image may not be overridden"):
        Overrides().step("image", image="evil:1").options(remote, entity)


def _as_promise(value: Any) -> Any:
    return value


@workflow
def branching(x: int) -> int:
    some: Any = conditional("c")
    fit, prepare = workflows.fit, workflows.prepare
    found: Any = some.if_(_as_promise(x) > 1).then(fit(x=x)).else_().then(prepare(x=x))
    return found  # type: ignore[no-any-return]  # a promise


def local(kind: str) -> Any:
    made = {
        "launch plan": lambda: LaunchPlan.get_or_create(workflows.train, "local"),
        "workflow": lambda: workflows.train,
        "branch": lambda: branching,
        "task": lambda: workflows.fit,
    }
    return made[kind]()


@pytest.mark.parametrize("kind", ["launch plan", "workflow", "branch", "task"])
def test_what_is_not_registered_yet_is_checked_as_what_is(
    remote: FlyteRemote, admin: FlyteAdmin, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entity = local(kind)
    before = registrations(admin)
    options: Any = H100.options(remote, entity)
    assert OVERRIDE in options.annotations.values
    assert capsys.readouterr().err == ""
    with pytest.raises(OverrideError, match=rf"it matches no task.*{workflows.__name__}\.fit"):
        Overrides().step("retries", retries=1).on(task="*.fti").options(remote, entity)
    with pytest.raises(OverrideError, match="it changes nothing"):
        Overrides().step("retries", retries=2).on(task="*.fit").options(remote, entity)
    some = Overrides().step("retries", retries=5).when({"inputs": {"x": "10"}})
    assert some.options(remote, entity, inputs={"x": 10})
    with pytest.raises(OverrideError, match="it matches no task"):
        some.options(remote, entity, inputs={"x": 2})
    assert registrations(admin) == before


@pytest.mark.parametrize(("node", "known"), [("n0", False), ("n0-n0", True), ("n0-n1", True)])
def test_the_nodes_of_a_branch_have_the_names_that_the_cluster_gives(
    remote: FlyteRemote, node: str, known: bool
) -> None:
    some = Overrides().step("retries", retries=5).on(node=node)
    if known:
        assert some.options(remote, branching)
        return
    with pytest.raises(OverrideError, match="nodes: n0-n0, n0-n1"):
        some.options(remote, branching)


def test_the_phase_serialize_is_part_of_what_is_checked(
    remote: FlyteRemote, configure: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    configure(
        "phases: [serialize, launch]\n"
        "chains: {default: {steps: [{use: retries, with: {retries: 5}}]}}\n"
    )
    with pytest.raises(OverrideError, match="it changes nothing"):
        RETRIES.options(remote, workflows.train)
    assert capsys.readouterr().err == ""


def test_children_that_are_not_registered_refuse_nothing(
    remote: FlyteRemote, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Overrides().step("retries", retries=5).on(task="*.fit").options(remote, parent)
    assert "it may do so yet: executions that are not looked at" in capsys.readouterr().err


def test_what_cannot_be_serialized_is_said(
    remote: FlyteRemote, capsys: pytest.CaptureFixture[str]
) -> None:
    @task(container_image="{{.image.none_such.fqn}}")
    def broken() -> int:
        return 1

    assert RETRIES.options(remote, broken)
    assert "could not be checked" in capsys.readouterr().err


def test_inputs_that_are_not_known_refuse_nothing(
    remote: FlyteRemote, entities_of: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    entity = entities_of["launch plan"]
    large = Overrides().step("retries", retries=5).on(inputs={"x": "10*"})
    options: Any = large.options(remote, entity)
    assert OVERRIDE in options.annotations.values
    assert "input x is not known" in capsys.readouterr().err
    large.options(remote, entity, inputs={"x": 1000})
    with pytest.raises(OverrideError, match="it matches no task"):
        large.options(remote, entity, inputs={"x": 2})


@dataclass
class Model:
    name: str
    lr: float = 0.1


@task(container_image="i:1", retries=2)
def tune(model: Model, sizes: dict[str, int], names: list[str]) -> int:
    return 1


@pytest.mark.parametrize(
    ("inputs", "holds"),
    [
        ({"model": {"name": "lar*"}}, True),
        ({"model": {"name": "large", "lr": "0.1"}, "sizes": {"a": "1"}}, True),
        ({"model": {"name": "small"}}, False),
        ({"sizes": {"b": "1"}}, False),
        ({"sizes": {"b": None}}, True),
    ],
)
def test_a_part_of_an_input_chooses_here_as_in_the_cluster(
    remote: FlyteRemote, admin: FlyteAdmin, inputs: Any, holds: bool
) -> None:
    remote.register_task(tune, version="v1")
    entity = remote.fetch_task("speech", "development", tune.name, "v1")
    some = Overrides().step("retries", retries=5).when({"inputs": inputs})
    given = {
        "model": Model("large"),
        "sizes": {"a": 1},
        "names": ["x"],
    }
    if not holds:
        with pytest.raises(OverrideError, match="it matches no task"):
            some.options(remote, entity, inputs=given)
        return
    remote.execute(entity, given, options=some.options(remote, entity, inputs=given))
    sent_ = MessageToDict(admin.executions[-1].inputs)
    seen = TaskContext("launch", inputs=plain_inputs(sent_["literals"]))
    view = View(seen, Workload({"kind": "Pod"}, BUILTIN_KINDS[0]))
    assert compile_selector({"inputs": inputs}).test(view) is True


class Size(Enum):
    LARGE = "large"


class Schedule(BaseModel):
    warmup: int = 3


# Its fields have types that only flytekit knows the arguments of.
File: Any = FlyteFile
Run: Any = make_dataclass(
    "Run",
    [
        ("data", File),
        ("size", Size, field(default=Size.LARGE)),
        ("optimizer", Model, field(default_factory=lambda: Model("adam"))),
    ],
)
FILE = File("https://example.com/x")


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (FILE, File),
        (FlyteDirectory("s3://bucket/x"), FlyteDirectory),
        (StructuredDataset(uri="s3://bucket/x"), StructuredDataset),
        ({"a": FILE}, dict[str, File]),
        ({"a": Model("large")}, dict[str, Model]),
        (Run(FILE), Run),
        (Schedule(), Schedule),
        (Size.LARGE, Size),
        (3, int | None),
        (["a"], list[str]),
        (datetime(2026, 1, 1), datetime),
    ],
)
def test_an_input_is_seen_here_as_in_the_cluster(
    remote: FlyteRemote, value: Any, type_: Any
) -> None:
    literal = TypeEngine.to_literal(remote.context, value, type_, TypeEngine.to_literal_type(type_))
    here = launching._plain({"x": value})
    assert here == launching._plain({"x": literal})
    assert here == plain_inputs({"x": MessageToDict(literal.to_flyte_idl())})


def test_a_flyteadmin_that_cannot_say_stops_nothing(
    remote: FlyteRemote,
    admin: FlyteAdmin,
    entities_of: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    entity = entities_of["launch plan"]
    admin.workflows.clear()
    remote.execute(entity, {"x": 1}, options=H100.options(remote, entity))
    assert sent(admin).keys() == {"team", OVERRIDE}
    assert "what the override does could not be checked: " in capsys.readouterr().err
    with pytest.raises(OverrideError, match="image may not be overridden"):
        Overrides().step("image", image="evil:1").options(remote, entity)


def test_without_a_config_the_default_is_what_may_be(
    remote: FlyteRemote, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "kubetailor.yaml").unlink()
    assert Overrides().step("cache", cache=False).options(remote, workflows.small)
    assert "no config here" in capsys.readouterr().err
    with pytest.raises(OverrideError, match="the default of `overridable`"):
        Overrides().step("image", image="evil:1").options(remote, workflows.small)


@pytest.mark.parametrize("entity", [None, "flow.train", workflows])
def test_what_flytekit_cannot_launch_is_refused(remote: FlyteRemote, entity: Any) -> None:
    with pytest.raises(OverrideError, match="expected a launch plan, a workflow or a task"):
        H100.options(remote, entity)


# nothing is registered with it --------------------------------------------------------------------


def of_hand(remote: FlyteRemote, entity: Any) -> Options:
    return Options(annotations=Annotations({OVERRIDE: H100.annotation()}))


def of_overrides(remote: FlyteRemote, entity: Any) -> Options:
    return H100.options(remote, entity)


def of_both(remote: FlyteRemote, entity: Any) -> Options:
    return (
        Overrides().step("retries", retries=5).options(remote, entity, H100.options(remote, entity))
    )


@workflow
def parent(x: int) -> int:
    found: Any = child(x=x)
    return found  # type: ignore[no-any-return]  # a promise


child = LaunchPlan.get_or_create(
    workflows.train, "child", annotations=Annotations({"own": "child's"})
)


def registered_alone(admin: FlyteAdmin, entity: Any) -> None:
    """The workflow is registered, its launch plan is not: the run registers that."""
    remote_of(admin).register_workflow(entity, version="v1")
    del admin.launch_plans[entity.name, "v1"]


def nothing(admin: FlyteAdmin, entity: Any) -> None:
    """Nothing is registered: the run registers all, child launch plans too."""


def run(
    before: Callable[..., None], admin: FlyteAdmin, entity: Any, options: Options | None
) -> None:
    before(admin, entity)
    remote_of(admin).execute(entity, {"x": 1}, version="v1", options=options)


@pytest.mark.parametrize("options", [of_hand, of_overrides, of_both])
@pytest.mark.parametrize("entity", [workflows.train, parent], ids=["workflow", "with a child"])
@pytest.mark.parametrize("before", [nothing, registered_alone])
def test_no_launch_plan_is_registered_with_the_override_of_a_run(
    remote: FlyteRemote,
    admin: FlyteAdmin,
    options: Callable[..., Options],
    entity: Any,
    before: Callable[..., None],
) -> None:
    with FlyteAdmin().running() as other:
        run(before, other, entity, None)
        without = registrations(other)
    run(before, admin, entity, options(remote, entity))
    assert steps_of(sent(admin))[0] == H100_DATA
    assert registrations(admin) == without
    remote.execute(entity, {"x": 1}, version="v1")
    assert sent(admin) == {}
    assert registrations(admin) == without


@pytest.mark.parametrize("before", [nothing, registered_alone])
def test_other_annotations_of_a_run_are_registered_where_flytekit_does_it(
    remote: FlyteRemote, admin: FlyteAdmin, before: Callable[..., None]
) -> None:
    given = Options(annotations=Annotations({"team": "speech"}))
    with FlyteAdmin().running() as other:
        run(before, other, parent, given)
        without = registrations(other)
    assert any(b"team" in each for each in without)
    run(before, admin, parent, H100.options(remote, parent, given))
    assert sent(admin).keys() == {"team", OVERRIDE}
    assert registrations(admin) == without


def test_nor_where_a_workflow_is_registered_by_hand(remote: FlyteRemote, admin: FlyteAdmin) -> None:
    settings = SerializationSettings(
        ImageConfig.auto_default_image(), project="speech", domain="development", version="v1"
    )
    spec = get_serializable(OrderedDict(), settings, workflows.small)
    options = Overrides().step("cache", cache=False).options(remote, workflows.small)
    remote.raw_register(spec, settings, "v1", options=options, og_entity=workflows.small)
    (registered,) = admin.launch_plans.values()
    assert dict(registered.spec.annotations.values) == {}


# launch plans that carry one ----------------------------------------------------------------------


def test_a_launch_plan_carries_it_for_all_its_runs(remote: FlyteRemote, admin: FlyteAdmin) -> None:
    nightly = H100.launch_plan(
        workflows.train,
        "nightly",
        annotations=Annotations({"team": "speech"}),
        fixed_inputs={"x": 1},
    )
    remote.register_launch_plan(nightly, version="v1")
    spec = admin.launch_plans["nightly", "v1"].spec
    assert dict(spec.annotations.values).keys() == {"team", OVERRIDE}
    assert steps_of(spec.annotations.values) == [H100_DATA]
    assert (
        H100.launch_plan(
            workflows.train,
            "nightly",
            annotations=Annotations({"team": "speech"}),
            fixed_inputs={"x": 1},
        )
        is nightly
    )
    remote.execute(nightly, version="v1")
    assert sent(admin) == {}  # FlyteAdmin takes the launch plan's
    remote.execute(nightly, version="v1", options=RETRIES.options(remote, nightly))
    assert sent(admin)["team"] == "speech"
    assert [step["use"] for step in steps_of(sent(admin))] == ["gpu", "retries"]


def test_a_run_with_another_override_does_not_change_the_launch_plans(
    remote: FlyteRemote, admin: FlyteAdmin
) -> None:
    nightly = H100.launch_plan(workflows.train, "nightly")
    remote.execute(nightly, {"x": 1}, version="v1", options=RETRIES.options(remote, nightly))
    registered = admin.launch_plans["nightly", "v1"].spec.annotations.values
    assert steps_of(registered) == [H100_DATA]
