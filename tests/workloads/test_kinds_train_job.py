"""TrainJob: what it says of its runtime's pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubetailor.workloads import BUILTIN_KINDS, CannotChangeError, KindTable, Pod, Workload

TABLE = KindTable(BUILTIN_KINDS)


def job(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t"},
        "spec": {"runtimeRef": {"name": "torch"}, **spec},
    }


def patch(manager: str, *jobs: Any) -> dict[str, Any]:
    return {
        "manager": manager,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": list(jobs)}}},
    }


def of(name: str, spec: Any = None, metadata: Any = None) -> dict[str, Any]:
    template = {"spec": spec, "metadata": metadata}
    kept = {key: value for key, value in template.items() if value is not None}
    return {"name": name, "template": {"spec": {"template": kept}}}


def workload_of(obj: Any) -> Workload:
    kind = TABLE.of(obj)
    assert kind is not None
    return Workload(obj, kind)


def changed(obj: Any, change: Any, role: str = "node") -> Any:
    given = copy.deepcopy(obj)
    workload = workload_of(obj)
    change(workload.pods(role)[0])
    after = workload.commit()
    assert obj == given
    again = workload_of(after)
    change(again.pods(role)[0])
    assert again.commit() == after
    return after["spec"]


def test_the_training_container_has_fields_of_its_own() -> None:
    def change(pod: Pod) -> None:
        pod.set_env("A", "1")
        pod.primary.set_image("i:2")
        pod.set_resources(limits={"nvidia.com/gpu": 4})

    assert changed(job(), change) == {
        "runtimeRef": {"name": "torch"},
        "trainer": {
            "env": [{"name": "A", "value": "1"}],
            "image": "i:2",
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": "4"}},
        },
    }


def test_all_else_is_a_patch_of_its_own() -> None:
    def change(pod: Pod) -> None:
        pod.tolerate("t")
        pod.select_node("k", "v")
        pod.label("l", "v")
        pod.add_volume("scratch", {"emptyDir": {}})
        pod.mount("scratch", "/scratch")

    kueue = patch("kueue.x-k8s.io/manager", of("node", {"nodeSelector": {"zone": "kueue"}}))
    spec = {
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "nodeSelector": {"k": "v"},
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "containers": [
            {"name": "node", "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
        ],
    }
    own = patch("kubetailor.dev/chain", of("node", spec, {"labels": {"l": "v"}}))
    assert changed(job(), change)["runtimePatches"] == [own]
    assert changed(job(runtimePatches=[kueue]), change)["runtimePatches"] == [kueue, own]


@pytest.mark.parametrize("field", ["imagePullSecrets", "schedulingGates"])
def test_a_list_of_names_alone_says_something(field: str) -> None:
    spec = changed(job(), lambda pod: pod.merge({field: [{"name": "a"}]}))
    assert spec["runtimePatches"] == [
        patch("kubetailor.dev/chain", of("node", {field: [{"name": "a"}]}))
    ]


def test_a_patch_that_sets_a_field_already_is_changed_itself() -> None:
    theirs = patch("team.example.com/x", of("node", {"tolerations": [{"key": "a"}]}))
    found = changed(job(runtimePatches=[theirs]), lambda pod: pod.tolerate("b"))
    assert found["runtimePatches"] == [
        patch(
            "team.example.com/x",
            of("node", {"tolerations": [{"key": "a"}, {"key": "b", "operator": "Exists"}]}),
        )
    ]


def test_node_selectors_of_patches_are_one() -> None:
    theirs = [
        patch("a.example.com/x", of("node", {"nodeSelector": {"a": "1"}})),
        patch("b.example.com/x", of("node", {"nodeSelector": {"b": "1"}})),
    ]
    obj = job(runtimePatches=theirs)
    assert workload_of(obj).pods("node")[0].node_selector == {"a": "1", "b": "1"}
    found = changed(obj, lambda pod: pod.select_node("a", "2"))
    assert found["runtimePatches"][0] == theirs[0]
    workload = workload_of(obj)
    workload.pods("node")[0].deselect_node("a")
    with pytest.raises(CannotChangeError, match="several of `runtimePatches` set nodeSelector"):
        workload.commit()


def test_the_runtime_s_tolerations_do_not_hold_any_more() -> None:
    workload = workload_of(job())
    workload.pods("node")[0].tolerate("t")
    workload.commit()
    (note,) = workload.notes
    assert note.text == "tolerations of node: those of the runtime do not hold any more"


def test_the_jobs_that_are_known() -> None:
    obj = job(
        initializer={"dataset": {"storageUri": "hf://d"}, "model": None},
        runtimePatches=[patch("a.example.com/x", of("launcher"))],
    )
    assert [pod.role for pod in workload_of(obj).pods()] == [
        "node",
        "dataset-initializer",
        "launcher",
    ]
    found = changed(obj, lambda pod: pod.set_env("A", "1"), "dataset-initializer")
    assert found["initializer"]["dataset"]["env"] == [{"name": "A", "value": "1"}]


@pytest.mark.parametrize(
    ("change", "role", "message"),
    [
        (lambda p: p.set_field("priorityClassName", "x"), "node", "priorityClassName of the node"),
        (lambda p: p.primary.set_field("imagePullPolicy", "x"), "node", "imagePullPolicy of the n"),
        (lambda p: p.set_env("A", "1"), "launcher", "env of the launcher is not read"),
        (
            lambda p: p.edit("containers", empty=list).append({"name": "x"}),
            "node",
            "containers besides node of a TrainJob",
        ),
        (
            lambda p: p.edit("containers", empty=list).clear(),
            "node",
            "the container 'node' of the node cannot be taken off",
        ),
    ],
)
def test_what_a_patch_cannot_say(change: Any, role: str, message: str) -> None:
    obj = job(runtimePatches=[patch("a.example.com/x", of("launcher"))])
    workload = workload_of(obj)
    change(workload.pods(role)[0])
    with pytest.raises(CannotChangeError, match=message):
        workload.commit()


@pytest.mark.parametrize("field", ["podTemplateOverrides", "podSpecOverrides"])
def test_an_older_trainer_reads_no_runtime_patches(field: str) -> None:
    obj = job(**{field: [{"targetJobs": [{"name": "node"}]}]})
    workload = workload_of(obj)
    workload.pods("node")[0].tolerate("t")
    with pytest.raises(CannotChangeError, match=f"its {field} are of a Kubeflow Trainer that"):
        workload.commit()
    assert "trainer" in changed(obj, lambda pod: pod.set_env("A", "1"))
