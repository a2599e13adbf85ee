"""Argo's templates: what a pod has from the workflow, its callers and `templateDefaults`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kubetailor.workloads import BUILTIN_KINDS, CannotChangeError, KindTable, Pod, Workload

TABLE = KindTable(BUILTIN_KINDS)
ANY = {"key": "any", "operator": "Exists"}
OWN = {"key": "own", "operator": "Exists"}


def step(name: str = "fit", **fields: Any) -> dict[str, Any]:
    return {"name": name, "container": {"image": "i:1", "command": ["fit"]}, **fields}


def workflow(*templates: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "w"},
        "spec": {"entrypoint": "fit", "templates": list(templates), **spec},
    }


def workload_of(obj: Any) -> Workload:
    kind = TABLE.of(obj)
    assert kind is not None
    return Workload(obj, kind)


def changed(obj: Any, change: Any, role: str = "fit") -> Any:
    """The templates by name, after a change of one pod; the same again changes nothing."""
    given = copy.deepcopy(obj)
    workload = workload_of(obj)
    (pod,) = workload.pods(role)
    change(pod)
    after = workload.commit()
    assert obj == given
    again = workload_of(after)
    change(again.pods(role)[0])
    assert again.commit() == after
    return {t["name"]: t for t in after["spec"]["templates"]} | {"": after["spec"]}


def tolerate(pod: Pod) -> None:
    pod.add_toleration(OWN)


def test_a_container_is_changed_where_it_is() -> None:
    def change(pod: Pod) -> None:
        pod.set_env("A", "1")
        pod.set_resources(limits={"nvidia.com/gpu": 2})
        pod.primary.set_image("i:2")
        pod.label("l", "v")
        pod.set_field("priorityClassName", "high")
        pod.set_field("schedulerName", "kai")
        pod.edit("securityContext")["runAsUser"] = 1

    assert changed(workflow(step()), change)["fit"] == {
        "name": "fit",
        "container": {
            "image": "i:2",
            "command": ["fit"],
            "env": [{"name": "A", "value": "1"}],
            "resources": {"limits": {"nvidia.com/gpu": "2"}},
        },
        "metadata": {"labels": {"l": "v"}},
        "priorityClassName": "high",
        "schedulerName": "kai",
        "securityContext": {"runAsUser": 1},
    }


def test_a_script_keeps_its_source() -> None:
    obj = workflow({"name": "fit", "script": {"image": "i", "source": "print()", "name": ""}})
    found = changed(obj, lambda pod: pod.set_env("A", "1"))["fit"]["script"]
    assert found == {
        "image": "i",
        "source": "print()",
        "name": "",
        "env": [{"name": "A", "value": "1"}],
    }


def test_the_containers_of_a_set_and_sidecars() -> None:
    obj = workflow(
        {
            "name": "fit",
            "containerSet": {"containers": [{"name": "a"}, {"name": "main"}]},
            "sidecars": [{"name": "proxy", "mirrorVolumeMounts": True}],
        }
    )

    def change(pod: Pod) -> None:
        assert pod.primary.name == "main"
        pod.set_env("A", "1")
        pod.container("proxy").set_image("p:2")

    assert changed(obj, change)["fit"] == {
        "name": "fit",
        "containerSet": {
            "containers": [{"name": "a"}, {"name": "main", "env": [{"name": "A", "value": "1"}]}]
        },
        "sidecars": [{"name": "proxy", "mirrorVolumeMounts": True, "image": "p:2"}],
    }
    workload = workload_of(obj)
    workload.pods()[0].edit("containers", empty=list).insert(0, {"name": "new"})
    with pytest.raises(CannotChangeError, match="the containers of the set of fit stay"):
        workload.commit()


def test_what_makes_a_pod_has_a_role_and_what_calls_has_none() -> None:
    inline = {"container": {"image": "i"}}
    obj = workflow(
        {"name": "dag", "dag": {"tasks": [{"name": "a", "inline": inline}, {"name": "b"}]}},
        {"name": "steps", "steps": [[{"name": "c", "inline": dict(inline)}]]},
        {"name": "manifest", "resource": {"action": "create"}},
        {"name": "wait", "suspend": {}},
        step(),
    )
    assert [pod.role for pod in workload_of(obj).pods()] == ["a", "c", "manifest", "fit"]
    workload = workload_of(obj)
    for pod in workload.pods():
        pod.select_node("k", "v")
    after = workload.commit()["spec"]["templates"]
    assert after[0]["dag"]["tasks"][0]["inline"] == {**inline, "nodeSelector": {"k": "v"}}
    assert after[1]["steps"][0][0]["inline"]["nodeSelector"] == {"k": "v"}
    assert after[2]["nodeSelector"] == {"k": "v"}


def test_a_template_that_has_no_container_says_so_and_where() -> None:
    pod = workload_of(workflow(step(), {"name": "manifest", "resource": {}})).pods()[1]
    with pytest.raises(CannotChangeError, match="the manifest has no container of its own") as it:
        _ = pod.primary
    assert it.value.field == "spec.templates[1].containers"


# --------------------------------------------------------------------------------- from above


def test_a_value_of_a_template_takes_the_workflow_s_along() -> None:
    """One of its own would take the place of the workflow's."""
    obj = workflow(
        step(),
        step("other"),
        tolerations=[ANY],
        nodeSelector={"zone": "a"},
        podPriorityClassName="low",
        affinity={"podAffinity": {"x": 1}},
    )

    def change(pod: Pod) -> None:
        assert (pod.node_selector["zone"], pod.get("priorityClassName")) == ("a", "low")
        tolerate(pod)
        pod.select_node("k", "v")
        pod.require_node("r", "Exists")

    found = changed(obj, change)
    assert found["fit"]["tolerations"] == [ANY, OWN]
    assert found["fit"]["nodeSelector"] == {"zone": "a", "k": "v"}
    assert found["fit"]["affinity"].keys() == {"podAffinity", "nodeAffinity"}
    assert "priorityClassName" not in found["fit"]
    assert found["other"] == step("other")


def test_what_is_the_workflow_s_cannot_be_taken_off_one_template() -> None:
    workload = workload_of(workflow(step(), nodeSelector={"zone": "a"}))
    workload.pods()[0].deselect_node("zone")
    with pytest.raises(CannotChangeError, match="nodeSelector is the whole workflow's"):
        workload.commit()


@pytest.mark.parametrize(
    ("dags", "expected"),
    [
        ([{"tolerations": [ANY]}], [ANY, OWN]),
        ([{}], [{"key": "flow", "operator": "Exists"}, OWN]),
        ([{"tolerations": [ANY]}, {"tolerations": [ANY]}], [ANY, OWN]),
        ([{"tolerations": [ANY]}, {}], None),
    ],
)
def test_a_caller_s_tolerations_come_before_the_workflow_s(dags: Any, expected: Any) -> None:
    callers = [
        {"name": f"d{n}", "dag": {"tasks": [{"name": "t", "template": "fit"}]}, **dag}
        for n, dag in enumerate(dags)
    ]
    obj = workflow(
        *callers, step(), entrypoint="d0", tolerations=[{"key": "flow", "operator": "Exists"}]
    )
    if expected is None:
        workload = workload_of(obj)
        tolerate(workload.pods("fit")[0])
        with pytest.raises(CannotChangeError, match="the templates that call fit differ in toler"):
            workload.commit()
        workload = workload_of(obj)
        workload.pods("fit")[0].set_env("A", "1")
        workload.commit()
    else:
        assert changed(obj, tolerate)["fit"]["tolerations"] == expected


def test_an_entrypoint_that_is_called_too_has_two_callers() -> None:
    caller = {"name": "again", "steps": [[{"name": "s", "template": "fit"}]], "tolerations": [ANY]}
    workload = workload_of(workflow(step(), caller))
    tolerate(workload.pods("fit")[0])
    with pytest.raises(CannotChangeError, match="the templates that call fit differ"):
        workload.commit()


def test_template_defaults_hold_for_each_template() -> None:
    obj = workflow(
        step(tolerations=[OWN]),
        step("other"),
        templateDefaults={
            "nodeSelector": {"zone": "a"},
            "tolerations": [ANY],
            "container": {"image": "i:0", "env": [{"name": "B", "value": "2"}]},
            "script": {"image": "s"},
        },
    )

    def change(pod: Pod) -> None:
        assert pod.tolerations == [OWN, ANY]
        assert {"name": "B", "value": "2"} in pod.primary.env
        pod.select_node("k", "v")
        pod.set_env("A", "1")

    fit = changed(obj, change)["fit"]
    assert fit["nodeSelector"] == {"zone": "a", "k": "v"}
    assert {"name": "A", "value": "1"} in fit["container"]["env"]
    assert fit["tolerations"] == [OWN]
    undoing: list[Callable[[Pod], None]] = [
        lambda pod: pod.deselect_node("zone"),
        lambda pod: pod.untolerate("any"),
        lambda pod: pod.remove_env("B"),
    ]
    for undo in undoing:
        workload = workload_of(obj)
        undo(workload.pods("fit")[0])
        with pytest.raises(CannotChangeError, match="is set by `templateDefaults`"):
            workload.commit()


def test_volumes_of_the_workflow_are_seen_and_stay() -> None:
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "d"}}
    obj = workflow(step(volumes=[{"name": "own", "emptyDir": {}}]), volumes=[data])

    def change(pod: Pod) -> None:
        pod.add_volume("data", {"persistentVolumeClaim": {"claimName": "d"}})
        pod.add_volume("scratch", {"emptyDir": {}})
        pod.mount("data", "/data")

    found = changed(obj, change)
    assert [v["name"] for v in found["fit"]["volumes"]] == ["own", "scratch"]
    assert found[""]["volumes"] == [data]
    replaced = changed(obj, lambda pod: pod.add_volume("data", {"emptyDir": {}}, replace=True))
    assert {"name": "data", "emptyDir": {}} in replaced["fit"]["volumes"]
    assert replaced[""]["volumes"] == [data]
    workload = workload_of(obj)
    workload.pods()[0].remove_volume("data")
    with pytest.raises(CannotChangeError, match="volumes data is the whole workflow's"):
        workload.commit()


def test_pull_secrets_are_the_workflow_s() -> None:
    def change(pod: Pod) -> None:
        secrets = pod.edit("imagePullSecrets", empty=list)
        if {"name": "new"} not in secrets:
            secrets.append({"name": "new"})

    found = changed(workflow(step(), imagePullSecrets=[{"name": "old"}]), change)
    assert found[""]["imagePullSecrets"] == [{"name": "old"}, {"name": "new"}]
    assert found["fit"] == step()


def test_a_pod_spec_patch_beats_what_a_template_says() -> None:
    patch = 'containers: [{name: main, resources: {limits: {memory: "{{inputs.parameters.m}}"}}}]'
    for obj in (workflow(step(podSpecPatch=patch)), workflow(step(), podSpecPatch=patch)):
        workload = workload_of(obj)
        workload.pods()[0].set_resources(limits={"memory": "1Gi"})
        with pytest.raises(CannotChangeError, match="resources of a fit is set by its `podSpecPa"):
            workload.commit()
        changed(obj, tolerate)


def test_a_cron_workflow_keeps_them_deeper() -> None:
    flow = workflow(step(), tolerations=[ANY])
    obj = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "CronWorkflow",
        "metadata": {"name": "c"},
        "spec": {"schedules": ["* * * * *"], "workflowSpec": flow["spec"]},
    }
    workload = workload_of(obj)
    tolerate(workload.pods("fit")[0])
    spec = workload.commit()["spec"]["workflowSpec"]
    assert spec["templates"][0]["tolerations"] == [ANY, OWN]


@pytest.mark.parametrize(
    "spec", [None, {}, {"workflowTemplateRef": {"name": "t"}}, {"templates": 1}]
)
def test_a_workflow_without_templates_has_no_pods(spec: Any) -> None:
    assert workload_of({**workflow(), "spec": spec}).pods() == ()
