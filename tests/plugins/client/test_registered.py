"""What is registered with FlyteAdmin, found by name or by flytekit's entities."""

from __future__ import annotations

import pytest
from flytekit import LaunchPlan
from flytekit.remote import FlyteRemote

from kubetailor.plugins.client.names import Name
from kubetailor.plugins.client.registered import Registered, find, registered_of
from kubetailor.workloads import KubetailorError

from ..flyte.flyteadmin import FlyteAdmin
from .conftest import register
from .nested import CHILD, alone, fit, inner, outer

PLACE = "speech/development"


@pytest.fixture
def outer_v1(remote: FlyteRemote) -> Registered:
    register(remote, outer)
    return find(remote, f"{PLACE}/{outer.name}@v1")


def test_a_launch_plan_comes_first_and_brings_its_workflow(outer_v1: Registered) -> None:
    assert outer_v1.kind == "launch plan"
    assert outer_v1.name == Name("speech", "development", outer.name, "v1")
    assert outer_v1.workflow == outer_v1.name
    assert outer_v1.inputs == {"kind": "plain"}
    assert outer_v1.variables == {"x", "kind"}
    assert len(outer_v1.closure["subWorkflows"]) == 2
    assert {task["template"]["id"]["name"] for task in outer_v1.closure["tasks"]} == {
        f"{__package__}.nested.fit",
        f"{__package__}.nested.prepare",
    }


def test_a_workflow_without_a_launch_plan_and_a_task_are_found_too(
    remote: FlyteRemote, admin: FlyteAdmin
) -> None:
    register(remote, outer)
    admin.launch_plans.clear()
    assert find(remote, f"{PLACE}/{outer.name}").kind == "workflow"
    task = find(remote, f"{PLACE}/{fit.name}@v1")
    assert (task.kind, task.launch_plan) == ("task", None)
    assert task.workflow.name == f".flytegen.{fit.name}"
    assert list(task.annotations) == list(task.labels) == list(task.env) == []


def test_without_a_version_it_is_the_active_launch_plan_else_the_latest(
    remote: FlyteRemote, admin: FlyteAdmin
) -> None:
    for version in ("v1", "v2", "v3"):
        register(remote, inner, version)
    assert find(remote, f"{PLACE}/{inner.name}").name.version == "v3"
    assert find(remote, f"{PLACE}/{fit.name}").name.version == "v3"
    admin.active[inner.name] = "v2"
    assert find(remote, f"{PLACE}/{inner.name}").name.version == "v2"
    assert find(remote, f"{PLACE}/{inner.name}@v1").name.version == "v1"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("train", "expected PROJECT/DOMAIN/NAME[@VERSION], found 'train'"),
        ("a/b/", "expected PROJECT/DOMAIN/NAME[@VERSION]"),
        ("a/b/c@", "expected PROJECT/DOMAIN/NAME[@VERSION]"),
        (f"{PLACE}/{outer.name}@v7", "the launch plan has no version 'v7'; versions: v1"),
        (f"{PLACE}/{fit.name}@v7", "the task has no version 'v7'; versions: v1"),
        (f"{PLACE}/{outer.name}s", f"did you mean {outer.name}"),
        ("speech/production/x", "nothing is registered in speech/production"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(
    remote: FlyteRemote, outer_v1: Registered, name: str, said: str
) -> None:
    with pytest.raises(KubetailorError) as error:
        find(remote, name)
    assert said in str(error.value)


def test_entities_of_flytekits_are_found(remote: FlyteRemote, outer_v1: Registered) -> None:
    for entity in (
        remote.fetch_launch_plan(name=outer.name, version="v1"),
        LaunchPlan.get_default_launch_plan(remote.context, outer),
    ):
        assert registered_of(remote, entity) == outer_v1
    assert registered_of(remote, outer).kind == "workflow"
    assert registered_of(remote, outer, version="v1").closure == outer_v1.closure
    for entity in (fit, remote.fetch_task(name=fit.name, version="v1")):
        assert registered_of(remote, entity).name == Name("speech", "development", fit.name, "v1")
    lazy = remote.fetch_task_lazy(name=fit.name, version="v1")
    assert registered_of(remote, lazy).kind == "task"
    with pytest.raises(KubetailorError, match="no version 'v9'"):
        registered_of(remote, fit, version="v9")
    with pytest.raises(KubetailorError, match="int: expected a launch plan"):
        registered_of(remote, 3)


def test_children_are_found_by_the_id_of_their_node(remote: FlyteRemote, admin: FlyteAdmin) -> None:
    register(remote, alone)
    found = find(remote, f"{PLACE}/{alone.name}")
    (child,) = found.children().values()
    assert list(found.children()) == ["n1"]
    assert (child.kind, child.name.name) == ("launch plan", CHILD.name)
    assert child.inputs == {"x": 3}
    assert dict(child.children()) == {}


def test_a_child_that_is_not_registered_is_an_error(remote: FlyteRemote, admin: FlyteAdmin) -> None:
    register(remote, alone)
    admin.launch_plans.pop((CHILD.name, "v1"))
    with pytest.raises(KubetailorError, match=CHILD.name):
        find(remote, f"{PLACE}/{alone.name}").children()


def test_a_flyteadmin_that_cannot_be_asked_is_said() -> None:
    from flytekit.configuration import Config

    remote = FlyteRemote(Config.for_endpoint("127.0.0.1:1", insecure=True))
    with pytest.raises(KubetailorError, match="a/b/c@v1: cannot reach FlyteAdmin: "):
        find(remote, "a/b/c@v1")
