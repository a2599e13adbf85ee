"""What the cluster will do with an execution, said before."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from flytekit import LaunchPlan, workflow
from flytekit.models.common import Annotations, Labels
from flytekit.remote import FlyteRemote

from kubetailor.plugins.client.preview import NodePreview, Preview
from kubetailor.plugins.client.previewing import preview
from kubetailor.plugins.client.registered import Registered, find
from kubetailor.plugins.client.request import Request
from kubetailor.plugins.execution.override import JUDGED
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.reviews import dump, parse
from kubetailor.registry.errors import OverrideError
from kubetailor.registry.overrides.document import OVERRIDE, Override
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft, Workload
from kubetailor.workloads.task_template import TASK_TEMPLATE

from ..flyte.flyteadmin import FlyteAdmin
from .conftest import register
from .nested import CHILD, alone, chased, innermost, lively, outer

PLACE = "speech/development"
H100 = Override().step("gpu", type="nvidia-h100-80gb")
LABELS = Override().step("labels", set={"example.com/who": "override"})
FIT = f"{__package__}.nested.fit"


@pytest.fixture(scope="module")
def tailor() -> Tailor:
    return Tailor.built_in()


def registered(remote: FlyteRemote, entity: Any) -> Registered:
    register(remote, entity)
    return find(remote, f"{PLACE}/{entity.name}")


def nodes(found: Preview, execution: int = 0) -> dict[str, NodePreview]:
    return {node.id: node for node in found.executions[execution].nodes}


def device(template: dict[str, Any]) -> str | None:
    found = template.get("extendedResources", {}).get("gpuAccelerator", {}).get("device")
    selector = template.get("k8sPod", {}).get("podSpec", {}).get("nodeSelector", {})
    return found or next(iter(selector.values()), None)


def test_every_node_has_its_nested_id(remote: FlyteRemote, tailor: Tailor) -> None:
    found = preview(registered(remote, outer), tailor)
    assert {id_: node.task.rpartition(".")[2] for id_, node in nodes(found).items()} == {
        "n2-n0": "fit",
        "n2-n1": "prepare",
        "n3": "fit",
        "n0.n0": "prepare",
        "n1.n0": "prepare",
        "n0.n1.n0": "fit",
        "n1.n1.n0": "fit",
    }
    for node in nodes(found).values():
        assert node.registered == node.author == node.final
        assert (node.changes, node.chain, node.deferred) == ((), None, None)
    assert (found.faults, found.warnings, found.notices) == ((), (), ())
    found.check()


def test_one_use_of_a_subworkflow_gets_another_gpu(remote: FlyteRemote, tailor: Tailor) -> None:
    found = preview(registered(remote, outer), tailor, H100.on(node="n0.n1.*"))
    found.check()
    assert {id_ for id_, node in nodes(found).items() if node.changes} == {"n0.n1.n0"}
    swapped = nodes(found)["n0.n1.n0"]
    assert (device(swapped.registered), device(swapped.final)) == (
        "nvidia-tesla-a100",
        "nvidia-h100-80gb",
    )
    assert {change.step for change in swapped.changes} == {"gpu"}
    assert device(nodes(found)["n1.n1.n0"].final) == "nvidia-tesla-a100"
    assert found.override is not None
    assert swapped.chain is not None
    assert swapped.chain.override == found.override


def test_what_a_node_states_is_part_of_what_will_run(remote: FlyteRemote, tailor: Tailor) -> None:
    found = nodes(preview(registered(remote, outer), tailor, H100.on(node="n3")))["n3"]
    assert found.spec["resources"] == {"limits": {"nvidia.com/gpu": "4"}}
    registered_, final = (
        Workload(template, TASK_TEMPLATE).pods()[0].primary.resources["limits"]
        for template in (found.registered, found.final)
    )
    assert (registered_, final) == ({"gpu": "4"}, {"nvidia.com/gpu": "4"})


def test_retries_are_where_the_engine_reads_them(remote: FlyteRemote, tailor: Tailor) -> None:
    override = Override().step("retries", retries=5).on(node="n1.n1.n0")
    found = nodes(preview(registered(remote, outer), tailor, override))
    assert found["n1.n1.n0"].spec["retry"] == {"minAttempts": 3}
    assert found["n1.n1.n0"].final_spec["retry"] == {"minAttempts": 6}
    assert found["n0.n1.n0"].final_spec["retry"] == {"minAttempts": 3}


@pytest.mark.parametrize(
    "override",
    [None, H100.on(node="n0.n1.*"), LABELS + H100 + Override().step("retries", retries=9)],
)
def test_it_is_what_the_webhook_does(
    remote: FlyteRemote, tailor: Tailor, override: Override | None
) -> None:
    found = preview(registered(remote, outer), tailor, override, Request(labels={"team": "speech"}))
    (execution,) = found.executions
    request = {
        "uid": "1",
        "kind": {"group": "flyte.lyft.com", "version": "v1alpha1", "kind": "FlyteWorkflow"},
        "operation": "CREATE",
        "namespace": "speech-development",
        "object": execution.before,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    review = parse(dump(body))
    decision = decide(review, tailor)
    assert decision.response["allowed"], decision.reason
    patch = json.loads(base64.b64decode(decision.response.get("patch", b"W10=")))
    assert jsonpatch.apply_patch(execution.before, patch) == execution.after


def test_what_an_older_chain_did_is_undone_first(
    remote: FlyteRemote, configure: Callable[[str], Path]
) -> None:
    path = configure(
        """
        phases: [serialize, launch, admit]
        chains:
          default:
            steps: [{use: labels, with: {set: {baked: "yes"}}}]
        """
    )
    old = registered(remote, innermost)
    path.write_text(path.read_text().replace("baked", "today"))
    tailor = Tailor.find(path, environ={})
    assert tailor is not None
    (node,) = nodes(preview(old, tailor)).values()
    labels = [
        Draft(template).get(("metadata", "metadata", "labels"))
        for template in (node.registered, node.author, node.final)
    ]
    assert labels == [{"baked": "yes"}, None, {"today": "yes"}]
    assert node.chain is not None
    assert node.chain.digest == tailor.config.chain("default").digest


def test_a_task_alone_is_an_execution_of_one_node(remote: FlyteRemote, tailor: Tailor) -> None:
    register(remote, innermost)
    found = preview(find(remote, f"{PLACE}/{FIT}"), tailor, H100)
    (node,) = nodes(found).values()
    assert node.id == FIT.replace(".", "")
    assert device(node.final) == "nvidia-h100-80gb"


def test_the_launch_plans_own_override_is_there_where_none_is_given(
    remote: FlyteRemote, tailor: Tailor
) -> None:
    plan = launch_plan("speech.own", H100)
    found = preview(registered(remote, plan), tailor)
    (node,) = nodes(found).values()
    assert device(node.final) == "nvidia-h100-80gb"
    beside = preview(registered(remote, plan), tailor, request=Request(annotations={"a": "b"}))
    assert beside.override is None
    assert beside.executions[0].before["metadata"]["annotations"] == {"a": "b"}


def launch_plan(name: str, override: Override, workflow: Any = innermost) -> LaunchPlan:
    return LaunchPlan.get_or_create(
        workflow,
        name=name,
        annotations=Annotations({OVERRIDE: override.annotation()}),
        labels=Labels({"team": "plan"}),
    )


# what would be refused ---------------------------------------------------------------------------


def test_one_that_is_for_no_task_is_a_fault_with_what_there_is(
    remote: FlyteRemote, tailor: Tailor
) -> None:
    found = preview(registered(remote, outer), tailor, LABELS.on(node="n0.n1.n1"))
    (fault,) = found.faults
    for part in ("step 1 of the override", "matches no task", "did you mean", "n0.n1.n0"):
        assert part in fault, fault
    with pytest.raises(OverrideError, match=r"n0\.n1\.n1"):
        found.check()
    optional = LABELS.on(node="n0.n1.n1").optional()
    preview(registered(remote, outer), tailor, optional).check()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (Override().step("image", image="evil:1"), "image"),
        (Override().step("gpu", type="no-such-gpu"), "no-such-gpu"),
        (Override().step("lables", set={"a": "b"}), "did you mean labels"),
        (Override().step("shared_memory", container="nobody").on(node="n3"), "nobody"),
        (Override().step("retries", retries=2), "changes nothing"),
    ],
)
def test_what_may_not_or_cannot_be_is_a_fault(
    remote: FlyteRemote, tailor: Tailor, override: Override, said: str
) -> None:
    only = outer if said != "changes nothing" else innermost
    found = preview(registered(remote, only), tailor, override)
    assert said in found.faults[0]
    assert nodes(found), "what is registered is shown all the same"


# other executions --------------------------------------------------------------------------------


def test_a_step_may_be_for_a_childs_task_alone(remote: FlyteRemote, tailor: Tailor) -> None:
    found = preview(registered(remote, alone), tailor, H100.on(task="*.fit"))
    found.check()
    parent, child = found.executions
    assert (parent.path, child.path) == ((), ("n1",))
    assert child.registered.name.name == CHILD.name
    assert not any(node.changes for node in parent.nodes)
    (node,) = child.nodes
    assert device(node.final) == "nvidia-h100-80gb"
    # It inherits the annotations, of which one says that the override need not do anything there.
    assert child.before["metadata"]["annotations"] == parent.after["metadata"]["annotations"]
    assert {OVERRIDE, JUDGED} <= child.before["metadata"]["annotations"].keys()
    typo = preview(registered(remote, alone), tailor, H100.on(task="*.fitt"))
    assert "matches no task" in typo.faults[0]


def test_a_child_has_its_own_launch_plans_where_the_parent_has_none(
    remote: FlyteRemote, tailor: Tailor
) -> None:
    plan = launch_plan("speech.overridden", H100)

    as_workflow: Any = workflow

    @as_workflow
    def parent(x: int) -> int:
        first: Any = plan(x=x)
        return plan(x=first)  # type: ignore[no-any-return]  # a promise

    found = registered(remote, parent)
    assert [each.registered.name.name for each in preview(found, tailor).executions] == [
        parent.name,
        plan.name,  # once, though two nodes launch it
    ]
    (node,) = nodes(preview(found, tailor), 1).values()
    assert device(node.final) == "nvidia-h100-80gb"
    (node,) = nodes(preview(found, tailor, request=Request(annotations={"a": "b"})), 1).values()
    assert device(node.final) == "nvidia-tesla-a100"


def test_a_child_that_cannot_be_looked_at_is_said(
    remote: FlyteRemote, tailor: Tailor, admin: FlyteAdmin
) -> None:
    asked = registered(remote, alone)
    admin.launch_plans.pop((CHILD.name, "v1"))
    found = preview(asked, tailor, H100.on(task="*.fit"))
    assert found.faults == ()
    assert any(CHILD.name in notice for notice in found.notices)
    assert any("matches no task" in notice for notice in found.notices)


# what will not happen ----------------------------------------------------------------------------

CACHED = "its task is cached"
DYNAMIC = "makes tasks as it runs"


def test_a_cached_task_that_stays_cached_is_named(remote: FlyteRemote, tailor: Tailor) -> None:
    asked = registered(remote, outer)
    override = LABELS.on(task="*.prepare")
    said = preview(asked, tailor, override).notices
    assert [each.partition(":")[0] for each in said if CACHED in each] == [
        "node n2-n1",
        "node n0.n0",
        "node n1.n0",
    ]
    assert all("--overwrite-cache" in each and "`cache`" in each for each in said)
    for other in (
        preview(asked, tailor, override, Request(overwrite_cache=True)),
        preview(asked, tailor, override.step("cache", cache=False).on(task="*.prepare")),
        preview(asked, tailor, override.step("cache", version="2").on(task="*.prepare")),
        preview(asked, tailor, LABELS.on(task="*.fit")),
        preview(asked, tailor),
    ):
        assert other.notices == ()


def test_eager_and_dynamic_tasks_are_named(remote: FlyteRemote, tailor: Tailor) -> None:
    asked = registered(remote, lively)
    typo = preview(asked, tailor, LABELS.on(task="*.fitt"))
    assert typo.faults == ()
    (notice,) = [each for each in typo.notices if "matches no task" in each]
    assert DYNAMIC in notice
    assert preview(asked, tailor).notices == ()
    register(remote, chased)
    eager = find(remote, f"{PLACE}/{chased.name}")
    (notice,) = preview(eager, tailor, LABELS).notices
    assert "is eager" in notice
    assert "does not reach it" in notice
    assert preview(eager, tailor).notices == ()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("flyte: {offloaded_closures: true}\nphases: [launch, admit]", "closure is offloaded"),
        ("phases: [serialize, admit]", "`phases` does not list launch"),
    ],
)
def test_what_is_lost_where_launch_sees_no_tasks_is_named(
    remote: FlyteRemote, configure: Callable[[str], Path], config: str, why: str
) -> None:
    tailor = Tailor.find(configure(config), environ={})
    assert tailor is not None
    override = H100.step("retries", retries=7) + LABELS.on(node="n3")
    found = preview(registered(remote, outer), tailor, override)
    found.check()
    lost = [each for each in found.notices if why in each]
    assert ["'retries'" in each for each in lost] == [True, False]
    assert "'labels'" in lost[1]
    node = nodes(found)["n3"]
    assert device(node.final) == "nvidia-h100-80gb"
    assert node.final_spec["retry"] == {"minAttempts": 3}


def test_where_nobody_reads_it_that_is_said(
    remote: FlyteRemote, configure: Callable[[str], Path]
) -> None:
    tailor = Tailor.find(configure("phases: [serialize]"), environ={})
    assert tailor is not None
    found = preview(registered(remote, innermost), tailor, H100)
    assert "nothing in the cluster reads an override" in found.notices[0]
    assert device(nodes(found)["n0"].final) == "nvidia-tesla-a100"


def test_whether_closures_are_offloaded_does_nothing_to_a_digest_while_they_are_not(
    configure: Callable[[str], Path],
) -> None:
    chain = "chains: {default: {steps: [{use: gpu, with: {type: nvidia-h100-80gb}}]}}\n"
    digests = []
    for flyte in ("", "flyte: {}", "flyte: {offloaded_closures: false}"):
        tailor = Tailor.find(configure(chain + flyte), environ={})
        assert tailor is not None
        digests.append(tailor.digest)
    assert len(set(digests)) == 1


def test_inputs_are_what_the_request_and_the_launch_plan_say(
    remote: FlyteRemote, tailor: Tailor
) -> None:
    asked = registered(remote, outer)
    by_kind = LABELS.on(inputs={"kind": "plain"})
    assert preview(asked, tailor, by_kind).faults == ()  # the launch plan's default
    odd, three, four = (Request(inputs=given) for given in ({"kind": "odd"}, {"x": 3}, {"x": 4}))
    assert "matches no task" in preview(asked, tailor, by_kind, odd).faults[0]
    by_x = LABELS.on(inputs={"x": "3"})
    assert preview(asked, tailor, by_x, three).faults == ()
    assert "matches no task" in preview(asked, tailor, by_x, four).faults[0]
    unknown = preview(asked, tailor, by_x)
    assert unknown.faults == ()
    assert any("the input x is not known" in notice for notice in unknown.notices)


def test_it_runs_where_it_is_registered_or_where_it_is_launched(
    remote: FlyteRemote, tailor: Tailor
) -> None:
    asked = registered(remote, innermost)
    there = LABELS.on(project="vision", domain="production")
    assert "matches no task" in preview(asked, tailor, there).faults[0]
    found = preview(asked, tailor, there, Request(project="vision", domain="production"))
    found.check()
    assert found.executions[0].before["metadata"]["namespace"] == "vision-production"


def test_that_nothing_knows_the_launch_plan_is_said(remote: FlyteRemote, tailor: Tailor) -> None:
    found = preview(registered(remote, outer), tailor, LABELS.on(launch_plan="x"))
    assert any("`launch_plan`, which nothing" in notice for notice in found.notices)
