"""A Flyte task's own pod serves several roles: what a step may write there, and when it waits."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubetailor.registry import StepError, TaskContext, Workload
from kubetailor.registry.selectors import compile_selector
from kubetailor.registry.testing import TailorBench
from kubetailor.workloads.task_template import TASK_TEMPLATE

GPU = {"nvidia.com/gpu": "1"}


def entries(**amounts: str) -> dict[str, Any]:
    found = [{"name": name.upper(), "value": value} for name, value in amounts.items()]
    return {"requests": found, "limits": found}


def ray(head: dict[str, str], **groups: dict[str, str]) -> dict[str, Any]:
    """A Ray task whose groups ask for resources of their own."""

    def group(name: str, container: str, limits: dict[str, str]) -> dict[str, Any]:
        spec = {"containers": [{"name": container, "resources": {"limits": limits}}]}
        return {"groupName": name, "replicas": 1, "k8sPod": {"podSpec": spec}}

    return {
        "type": "ray",
        "id": {"name": "r"},
        "metadata": {},
        "container": {"image": "img"},
        "custom": {
            "rayCluster": {
                "headGroupSpec": group("head", "ray-head", head),
                "workerGroupSpec": [group(n, "ray-worker", lim) for n, lim in groups.items()],
            }
        },
    }


def torch(**replicas: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "pytorch",
        "id": {"name": "t"},
        "metadata": {},
        "container": {"image": "img", "resources": entries(cpu="1")},
        "custom": {f"{role}Replicas": {"replicas": 1, **own} for role, own in replicas.items()},
    }


def config(step: str, layer: str = "steps", phases: str = "") -> str:
    return f"{phases}\nchains: {{default: {{{layer}: [{step}]}}}}\n"


POOL = "{use: node_selector, with: {set: {pool: a}}, when: {not: {requests: nvidia.com/gpu}}}"


def test_what_is_written_for_some_groups_alone_waits_for_their_own_pods(
    tailor: TailorBench,
) -> None:
    """The task's own pod lies under every group: also under those that the step leaves out."""
    task = ray({"cpu": "1"}, cpu={"cpu": "2"}, gpu=GPU)
    outcome = tailor.chain(config(POOL, phases="phases: [serialize, admit]")).run(task, "serialize")
    outcome.assert_unchanged()
    assert (outcome.deferred, outcome.result.unknown) == (("node_selector",), "role")
    with pytest.raises(StepError, match=r"needs role.*share one pod spec") as error:
        tailor.chain(config(POOL)).run(task, "serialize")
    assert "--task" not in str(error.value)


def test_what_holds_for_every_group_is_written_to_the_pod_under_them(tailor: TailorBench) -> None:
    outcome = tailor.chain(config(POOL)).prove(ray({"cpu": "1"}, cpu={"cpu": "2"}), "serialize")
    assert outcome["k8sPod.podSpec.nodeSelector"] == {"pool": "a"}


def test_what_holds_for_one_group_alone_is_written_to_that_group(tailor: TailorBench) -> None:
    step = POOL.replace("{not: {requests: nvidia.com/gpu}}", "{requests: nvidia.com/gpu}")
    outcome = tailor.chain(config(step)).prove(
        ray({"cpu": "1"}, cpu={"cpu": "2"}, gpu=GPU), "serialize"
    )
    group = "custom.rayCluster.workerGroupSpec[1].k8sPod.podSpec.nodeSelector"
    assert outcome[group] == {"pool": "a"}
    assert "k8sPod" not in outcome.after


@pytest.mark.parametrize(
    ("step", "field", "value"),
    [
        ("use: image, with: {image: w}", "image", "w"),
        (
            "use: resources, with: {requests: {cpu: 2}, limits: {cpu: 2}}",
            "resources",
            entries(cpu="2"),
        ),
    ],
)
def test_what_a_task_holds_for_a_role_is_changed_for_that_role(
    tailor: TailorBench, step: str, field: str, value: Any
) -> None:
    task = torch(master={}, worker={"image": "x", "resources": entries(cpu="3")})
    chain = tailor.chain(config(f"{{{step}, when: {{role: worker}}}}"))
    outcome = chain.prove(task, "serialize")
    assert outcome[f"custom.workerReplicas.{field}"] == value
    expected = copy.deepcopy(task)
    expected["custom"]["workerReplicas"][field] = value
    assert outcome.after == expected


def test_what_a_task_does_not_hold_for_a_role_waits(tailor: TailorBench) -> None:
    step = "{use: tolerations, with: {add: [{key: a, operator: Exists}]}, when: {role: worker}}"
    task = torch(master={}, worker={"image": "x"})
    chain = tailor.chain(config(step, phases="phases: [serialize, admit]"))
    assert chain.run(task, "serialize").deferred == ("tolerations",)


@pytest.mark.parametrize("layer", ["steps", "enforce"])
def test_an_image_is_that_of_every_replica(tailor: TailorBench, layer: str) -> None:
    task = torch(master={"image": "m"}, worker={"image": "w"})
    outcome = tailor.chain(config("{use: image, with: {image: new}}", layer)).prove(
        task, "serialize"
    )
    assert outcome["container.image"] == "new"
    assert [outcome[f"custom.{role}Replicas.image"] for role in ("master", "worker")] == ["new"] * 2


def image_only() -> dict[str, Any]:
    """A task of one GPU for each of its replicas, one of which has an image of its own."""
    task = torch(master={"resources": {}}, worker={"image": "w", "resources": {}})
    task["container"]["resources"] = entries(cpu="4", gpu="1")
    return task


@pytest.mark.parametrize("wanted", [True, False])
def test_a_replica_without_resources_has_the_tasks(tailor: TailorBench, wanted: bool) -> None:
    when = "{requests: nvidia.com/gpu}" if wanted else "{not: {requests: nvidia.com/gpu}}"
    step = f"{{use: node_selector, with: {{set: {{pool: a}}}}, when: {when}}}"
    outcome = tailor.chain(config(step)).prove(image_only(), "serialize")
    assert (outcome.after != image_only()) is wanted


@pytest.mark.parametrize("layer", ["defaults", "steps"])
def test_resources_of_the_task_are_not_written_to_its_replicas(
    tailor: TailorBench, layer: str
) -> None:
    step = "{use: resources, with: {requests: {memory: 8Gi}}}"
    outcome = tailor.chain(config(step, layer)).prove(image_only(), "serialize")
    assert outcome["container.resources.requests"][-1] == {"name": "MEMORY", "value": "8Gi"}
    assert outcome["custom.workerReplicas"] == image_only()["custom"]["workerReplicas"]


def test_resources_for_one_role_keep_what_it_had_of_the_task(tailor: TailorBench) -> None:
    step = "{use: resources, with: {limits: {cpu: 5}}, when: {role: worker}}"
    outcome = tailor.chain(config(step)).prove(image_only(), "serialize")
    limits = outcome["custom.workerReplicas.resources.limits"]
    assert {entry["name"]: entry["value"] for entry in limits} == {"CPU": "5", "GPU": "1"}
    assert outcome["container.resources"] == image_only()["container"]["resources"]


@pytest.mark.parametrize(
    "use", ["kueue, with: {queue: q}", "labels, with: {set: {a: b}, on: [object]}"]
)
def test_what_is_about_the_object_needs_no_roles_apart(tailor: TailorBench, use: str) -> None:
    task = torch(master={"resources": entries(cpu="1")}, worker={"resources": entries(gpu="1")})
    step = f"{{use: {use}, when: {{requests: nvidia.com/gpu}}}}"
    outcome = tailor.chain(config(step)).prove(task, "serialize")
    assert outcome["metadata.metadata.labels"]


@pytest.mark.parametrize(("role", "holds"), [("worker", True), ("master", True), ("ps", False)])
def test_select_sees_the_roles_of_a_task_as_steps_do(role: str, holds: bool) -> None:
    workload = Workload(torch(master={}, worker={}), TASK_TEMPLATE)
    selector = compile_selector({"role": role})
    assert selector.of_workload(TaskContext("serialize"), workload) is holds


ARGO = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {"name": "w"},
    "spec": {
        "entrypoint": "train",
        "templates": [
            {"name": "train", "container": {"image": "i:1"}},
            {"name": "make", "resource": {"action": "create"}},
        ],
    },
}
ENV = "{use: env, with: {set: {A: b}}"


def test_a_template_without_a_container_denies_what_is_for_all(tailor: TailorBench) -> None:
    chain = tailor.chain(f"chains: {{default: {{enforce: [{ENV}}}]}}}}")
    with pytest.raises(StepError, match="the make has no container of its own"):
        chain.run(ARGO)


@pytest.mark.parametrize(
    "way", ["when: {role: train}", "when: {not: {role: make}}", "optional: true"]
)
def test_ways_to_enforce_it_for_those_that_have_one(tailor: TailorBench, way: str) -> None:
    chain = tailor.chain(f"chains: {{default: {{enforce: [{ENV}, {way}}}]}}}}")
    templates = chain.prove(ARGO).after["spec"]["templates"]
    assert templates[0]["container"]["env"] == [{"name": "A", "value": "b"}]
    assert templates[1] == ARGO["spec"]["templates"][1]  # type: ignore[index]
