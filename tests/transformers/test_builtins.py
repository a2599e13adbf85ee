"""The built-ins that change one thing each; every run here is proved idempotent and lossless."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

from typing import Any

import pytest

from kubetailor.registry import ConfigError, StepError
from kubetailor.registry.parameters import ParameterError
from kubetailor.registry.testing import ABSENT, TailorBench

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "img"}]},
}
RAY: dict[str, Any] = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {"name": "r"},
    "spec": {
        "headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray-head"}]}}},
        "workerGroupSpecs": [
            {"groupName": "g", "template": {"spec": {"containers": [{"name": "ray-worker"}]}}}
        ],
    },
}
DASK: dict[str, Any] = {
    "apiVersion": "kubernetes.dask.org/v1",
    "kind": "DaskCluster",
    "metadata": {"name": "d"},
    "spec": {"worker": {"spec": {"containers": [{"name": "worker"}]}}},
}
TASK: dict[str, Any] = {
    "type": "python-task",
    "id": {"name": "t"},
    "container": {"image": "img", "args": ["x"]},
}


def pod(*containers: Any, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        **POD,
        "metadata": {"name": "p", **(metadata or {})},
        "spec": {"containers": list(containers) or POD["spec"]["containers"], **spec},
    }


HEAD = "spec.headGroupSpec.template"
WORKER = "spec.workerGroupSpecs[0].template"
TOLERATION = {"key": "t", "operator": "Exists"}


@pytest.mark.parametrize(
    ("use", "parameters", "obj", "changes"),
    [
        pytest.param("tolerations", {"add": [TOLERATION]}, POD, {"spec.tolerations": [TOLERATION]}, id="tolerations"),
        pytest.param(
            "tolerations",
            {"add": [TOLERATION], "remove": [{"key": "t"}, {"effect": "NoExecute"}]},
            pod(tolerations=[TOLERATION, {"key": "t"}, {"operator": "Exists", "effect": "NoExecute"}]),
            {"spec.tolerations": [TOLERATION]},
            id="tolerations: what is added is not removed",
        ),
        pytest.param(
            "tolerations",
            {"add": [TOLERATION]},
            RAY,
            {f"{HEAD}.spec.tolerations": [TOLERATION], f"{WORKER}.spec.tolerations": [TOLERATION]},
            id="tolerations: every pod",
        ),
        pytest.param(
            "node_selector",
            {"set": {"a": True, "b": "x"}, "remove": ["c", "b"]},
            pod(nodeSelector={"b": "y", "c": "z"}),
            {"spec.nodeSelector": {"b": "x", "a": "true"}},
            id="node_selector: the bool True of Python is text",
        ),
        pytest.param("node_selector", {"remove": ["a"]}, pod(nodeSelector={"a": "x"}), {"spec.nodeSelector": ABSENT}, id="node_selector: emptied"),
        pytest.param(
            "node_affinity",
            {"require": [{"key": "z", "operator": "In", "values": ["b"]}, {"key": "y", "operator": "Exists"}], "remove": ["z"]},
            pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "NotIn", "values": ["a"]}, {"key": "z", "operator": "In", "values": ["a"]}]}]}}}),
            {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions": [{"key": "z", "operator": "In", "values": ["b"]}, {"key": "y", "operator": "Exists"}]},
            id="node_affinity",
        ),
        pytest.param("labels", {"set": {"a": 1}}, POD, {"metadata.labels": {"a": "1"}}, id="labels: a pod is its own object"),
        pytest.param(
            "labels",
            {"set": {"a": "x"}},
            RAY,
            {"metadata.labels": {"a": "x"}, f"{HEAD}.metadata": {"labels": {"a": "x"}}, f"{WORKER}.metadata": {"labels": {"a": "x"}}},
            id="labels: object and pods",
        ),
        pytest.param("labels", {"set": {"a": "x"}, "on": ["object"]}, RAY, {"metadata.labels": {"a": "x"}}, id="labels: object"),
        pytest.param(
            "annotations",
            {"set": {"a": "any text"}, "on": ["pods"]},
            RAY,
            {f"{HEAD}.metadata": {"annotations": {"a": "any text"}}, f"{WORKER}.metadata": {"annotations": {"a": "any text"}}},
            id="annotations: pods",
        ),
        pytest.param("labels", {"set": {"a": "x"}}, DASK, {"metadata.labels": {"a": "x"}}, id="labels: copied by the operator"),
        pytest.param(
            "labels",
            {"set": {"a": "x"}, "remove": ["b", "a"]},
            pod(metadata={"labels": {"a": "y", "b": "z"}}),
            {"metadata.labels": {"a": "x"}},
            id="labels: set and removed",
        ),
        pytest.param("labels", {"set": {"a": "x"}}, TASK, {"metadata": {"metadata": {"labels": {"a": "x"}}}}, id="labels: a task stays a container task"),
        pytest.param(
            "env",
            {"set": {"A": "1", "C": "$(A)"}, "remove": ["B", "A"]},
            pod({"name": "main", "env": [{"name": "A", "value": "0"}, {"name": "B", "value": "x"}]}),
            {"spec.containers[main].env": [{"name": "A", "value": "1"}, {"name": "C", "value": "$(A)"}]},
            id="env",
        ),
        pytest.param("env", {"set": {"A": 1}}, TASK, {"container.env": [{"key": "A", "value": "1"}]}, id="env of a task"),
        pytest.param("env", {"remove": ["A"]}, pod({"name": "m", "env": [{"name": "A"}]}), {"spec.containers[m].env": ABSENT}, id="env: emptied"),
        pytest.param(
            "image",
            {"image": "new", "image_pull_policy": "Always", "container": "side"},
            pod({"name": "main"}, {"name": "side", "image": "x"}),
            {"spec.containers[side].image": "new", "spec.containers[side].imagePullPolicy": "Always"},
            id="image",
        ),
        pytest.param("image", {"image": "new"}, TASK, {"container.image": "new"}, id="image of a task"),
        pytest.param(
            "resources",
            {"requests": {"cpu": 2, "memory": None}, "limits": {"nvidia.com/gpu": "1"}},
            pod({"name": "main", "resources": {"requests": {"memory": "1Gi"}}}),
            {"spec.containers[main].resources": {"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": "1"}}},
            id="resources",
        ),
        pytest.param(
            "priority_class",
            {"name": "high"},
            pod(priorityClassName="low", priority=0, preemptionPolicy="Never"),
            {"spec.priorityClassName": "high", "spec.priority": ABSENT, "spec.preemptionPolicy": ABSENT},
            id="priority_class: what was derived is derived again",
        ),
        pytest.param("priority_class", {"name": "low"}, pod(priorityClassName="low", priority=5), {}, id="priority_class: there already"),
        pytest.param(
            "shared_memory",
            {},
            POD,
            {
                "spec.volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
                "spec.containers[main].volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
            },
            id="shared_memory",
        ),
        pytest.param(
            "shared_memory",
            {"size_limit": "2Gi"},
            {**TASK, "extendedResources": {"sharedMemory": {"mountName": "x", "sizeLimit": "1Gi"}}},
            {"extendedResources.sharedMemory.sizeLimit": "2Gi"},
            id="shared_memory: what the task asks for is resized",
        ),
        pytest.param(
            "kueue",
            {"queue": "q", "priority_class": "p"},
            TASK,
            {"metadata": {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/priority-class": "p"}}}},
            id="kueue: a task",
        ),
        pytest.param(
            "patch",
            {"pod": {"hostNetwork": True, "dnsConfig": {"options": [{"name": "a"}]}}, "object": {"metadata": {"finalizers": ["x"]}}},
            POD,
            {"spec.hostNetwork": True, "spec.dnsConfig": {"options": [{"name": "a"}]}, "metadata.finalizers": ["x"]},
            id="patch",
        ),
    ],
)  # fmt: skip
def test_what_they_do(
    tailor: TailorBench, use: str, parameters: Any, obj: Any, changes: dict[str, Any]
) -> None:
    outcome = tailor.prove(use, obj, **parameters)
    outcome.assert_changes(changes)
    assert outcome.warnings == []


@pytest.mark.parametrize(
    "use",
    [
        "tolerations",
        "node_selector",
        "labels",
        "annotations",
        "env",
        "image",
        "resources",
        "node_affinity",
        "patch",
    ],
)
@pytest.mark.parametrize("obj", [POD, RAY, DASK, TASK], ids=["pod", "ray", "dask", "task"])
def test_a_step_that_asks_for_nothing_changes_nothing(
    tailor: TailorBench, use: str, obj: Any
) -> None:
    outcome = tailor.prove(use, obj)
    assert outcome.after is obj
    assert outcome.warnings == []


def test_labels_of_pods_that_have_none_of_their_own(tailor: TailorBench) -> None:
    outcome = tailor.transform("labels", DASK, set={"a": "x"}, on=["pods"])
    outcome.assert_unchanged()
    assert "its operator copies the object's: set them with `on: [object]`" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("value", "how", "label"),
    [
        ("ok", "hash", "ok"),
        ("a b/c", "sanitize", "a-b-c"),
        ("__a__", "sanitize", "a"),
        ("@", "sanitize", ""),
        ("x" * 70, "sanitize", "x" * 63),
        ("x" * 53 + "-" * 20 + "y", "hash", None),
    ],
)  # fmt: skip
def test_values_that_kubernetes_would_refuse(
    tailor: TailorBench, value: str, how: str, label: str | None
) -> None:
    outcome = tailor.prove("labels", POD, set={"k": value}, on_invalid=how)
    found = outcome["metadata.labels.k"]
    if label is None:
        assert found.startswith("x" * 53 + "-")
        assert len(found) <= 63
    else:
        assert found == label
    assert outcome["metadata.annotations.k"] == (None if found == value else value)
    assert bool(outcome.warnings) is (label == "")


@pytest.mark.parametrize("how", ["sanitize", "hash"])
@pytest.mark.parametrize("value", ["日本", "@", "--", "-" * 80])
def test_a_label_of_which_nothing_is_left_is_said_to_be_empty(
    tailor: TailorBench, value: str, how: str
) -> None:
    outcome = tailor.transform("labels", POD, set={"k": value}, on_invalid=how)
    said = [text for text in outcome.warnings if "nothing of" in text]
    assert bool(said) is (outcome["metadata.labels.k"] == "")
    assert outcome["metadata.annotations.k"] == value
    if value == "日本":
        assert said[0].startswith("step 'labels': label k: nothing of '日本' can be kept")


def test_two_long_values_that_differ_at_the_end_get_labels_that_differ(tailor: TailorBench) -> None:
    labels = {
        tailor.transform("labels", POD, set={"k": "x" * 70 + end}, on_invalid="hash")[
            "metadata.labels.k"
        ]
        for end in "ab"
    }
    assert len(labels) == 2


def test_shared_memory_of_another_source_is_left_alone(tailor: TailorBench) -> None:
    mount = {"name": "v", "mountPath": "/dev/shm"}
    for volumes, message in (
        ([{"name": "v", "hostPath": {"path": "/"}}], "a mount of volume 'v', which is no emptyDir"),
        ([], "mounts the volume 'v', which there is not"),
    ):
        with pytest.raises(StepError, match=message):
            tailor.transform(
                "shared_memory", pod({"name": "m", "volumeMounts": [mount]}, volumes=volumes)
            )


def test_kueue_does_not_manage_every_kind(tailor: TailorBench) -> None:
    outcome = tailor.transform("kueue", DASK, queue="q")
    outcome.assert_unchanged()
    assert (
        "a DaskCluster of kubernetes.dask.org takes no queue label: Kueue does"
        in outcome.warnings[0]
    )


def test_a_patch_of_pods_picks_them_by_when(tailor: TailorBench) -> None:
    outcome = tailor.prove("patch", RAY, when={"role": "worker"}, pod={"hostNetwork": True})
    outcome.assert_changes({f"{WORKER}.spec.hostNetwork": True})


def test_a_patch_names_a_container_that_is_not_there(tailor: TailorBench) -> None:
    outcome = tailor.transform("patch", POD, pod={"containers": [{"name": "nope", "tty": True}]})
    outcome.assert_unchanged()
    assert "no container 'nope' to patch; the containers are main" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("use", "parameters", "message"),
    [
        ("tolerations", {"add": [{"key": "a", "operator": "exists"}]}, "'Equal' or 'Exists'"),
        ("tolerations", {"add": [{"keyy": "a"}]}, "add.0: no key 'keyy' here; did you mean key"),
        (
            "tolerations",
            {"add": [{"key": "a", "effect": "NoRun"}]},
            "'NoSchedule', 'PreferNoSchedule' or 'NoExecute'",
        ),
        ("node_affinity", {"require": [{"key": "a", "operator": "in"}]}, "'In', 'NotIn'"),
        ("labels", {"on": ["object", "pod"]}, "'object' or 'pods'"),
        ("image", {"image_pull_policy": "always"}, "'Always', 'IfNotPresent' or 'Never'"),
        ("env", {"set": {"A": {"valuefrom": {}}}}, "set.A"),
        ("resources", {"limits": {"memory": "1g"}}, "write 1G or 1Gi"),
        ("kueue", {}, "the parameter 'queue' is required"),
    ],
)
def test_parameters_are_checked_when_they_are_read(
    tailor: TailorBench, use: str, parameters: Any, message: str
) -> None:
    with pytest.raises((ParameterError, ConfigError), match=message):
        tailor.transform(use, POD, **parameters)
