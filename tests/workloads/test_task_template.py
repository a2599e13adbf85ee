"""The Flyte TaskTemplate, against what flytekit itself writes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from flytekit import ContainerTask, PodTemplate, Resources, task
from flytekit.configuration import Image, ImageConfig, SerializationSettings
from flytekit.tools.translator import get_serializable
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.workloads import (
    BUILTIN_KINDS,
    CannotChangeError,
    KindTable,
    Workload,
    deep_copy,
    validate,
)
from kubetailor.workloads.task_target import as_pod_task, container_as_pod

TABLE = KindTable(BUILTIN_KINDS)
SETTINGS = SerializationSettings(
    project="p",
    domain="d",
    version="v",
    env={"FROM": "settings"},
    image_config=ImageConfig(default_image=Image("i", "img", "1")),
)


def template_of(entity: Any) -> Any:
    """A task's template in protobuf's JSON form."""
    from collections import OrderedDict

    spec: Any = get_serializable(OrderedDict(), SETTINGS, entity)
    return MessageToDict(spec.template.to_flyte_idl())


def with_what_propeller_adds(template: Any) -> Any:
    """A pod task of flytekit's, with what FlytePropeller sets on containers of its own alone.

    Source: flyteplugins, flytek8s/container_helper.go, `BuildRawContainer`.
    """
    found = deep_copy(template)
    (container,) = found["k8sPod"]["podSpec"]["containers"]
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return found


def workload_of(template: Any) -> Workload:
    kind = TABLE.of(template)
    assert kind is not None
    return Workload(template, kind)


NAMES = st.sampled_from(["A", "B", "LONG_NAME"])
QUANTITIES = st.sampled_from(["1", "500m", "2Gi"])


@given(
    env=st.dictionaries(NAMES, st.sampled_from(["", "x", "$(A)"]), max_size=3),
    requests=st.fixed_dictionaries(
        {}, optional={"cpu": QUANTITIES, "mem": QUANTITIES, "gpu": st.just("1")}
    ),
    limits=st.fixed_dictionaries(
        {}, optional={"cpu": QUANTITIES, "mem": QUANTITIES, "ephemeral_storage": QUANTITIES}
    ),
)
def test_a_container_is_shown_as_the_pod_that_flytekit_makes(
    env: Any, requests: Any, limits: Any
) -> None:
    def written(**how: Any) -> Any:
        @task(
            environment=env,
            requests=Resources(**requests),
            limits=Resources(**limits),
            **how,
        )
        def t(a: int) -> int:
            return a

        return template_of(t)

    plain, pod = written(), with_what_propeller_adds(written(pod_template=PodTemplate()))
    assert container_as_pod(plain) == pod["k8sPod"]
    assert as_pod_task(plain, pod) == pod
    assert as_pod_task(plain, plain) is plain


def test_a_container_task_too() -> None:
    def written(**how: Any) -> Any:
        return template_of(
            ContainerTask(
                name="c",
                image="img",
                command=["sh", "-c", "true"],
                input_data_dir="/in",
                output_data_dir="/out",
                **how,
            )
        )

    plain, pod = written(), with_what_propeller_adds(written(pod_template=PodTemplate()))
    assert as_pod_task(plain, pod) == pod


@task(
    environment={"OWN": "x"},
    requests=Resources(cpu="1", gpu="1"),
    limits=Resources(cpu="2", gpu="1"),
)
def plain(a: int) -> int:
    return a


PLAIN = template_of(plain)


def test_what_a_container_can_say_leaves_it_a_container() -> None:
    before = deep_copy(PLAIN)
    workload = workload_of(PLAIN)
    (pod,) = workload.pods()
    assert (pod.roles, pod.is_object) == (("primary",), True)
    assert pod.requests("nvidia.com/gpu")
    pod.set_env("NEW", "1")
    pod.remove_env("OWN")
    pod.primary.set_image("other")
    pod.set_resources(requests={"memory": "1Gi", "cpu": "1000m"}, limits={"nvidia.com/gpu": "2"})
    pod.label("l", "v")
    pod.annotate("a", "v")
    after = workload.commit()
    assert before == PLAIN
    expected = deep_copy(PLAIN)
    expected["container"]["image"] = "other"
    expected["container"]["env"] = [
        {"key": "FROM", "value": "settings"},
        {"key": "NEW", "value": "1"},
    ]
    expected["container"]["resources"] = {
        "requests": [
            {"name": "CPU", "value": "1"},
            {"name": "GPU", "value": "2"},
            {"name": "MEMORY", "value": "1Gi"},
        ],
        "limits": [{"name": "CPU", "value": "2"}, {"name": "GPU", "value": "2"}],
    }
    expected["metadata"]["metadata"] = {"labels": {"l": "v"}, "annotations": {"a": "v"}}

    def sorted_resources(template: Any) -> Any:
        for part in template["container"]["resources"].values():
            part.sort(key=lambda entry: entry["name"])
        return template

    assert sorted_resources(deep_copy(after)) == sorted_resources(expected)
    validate(PLAIN, after)


@pytest.mark.parametrize(
    "verb",
    [
        lambda p: p.tolerate("t"),
        lambda p: p.select_node("a", "b"),
        lambda p: p.set_env("S", value_from={"secretKeyRef": {"name": "s", "key": "k"}}),
        lambda p: p.mount("v", "/v"),
        lambda p: p.set_resources(limits={"example.com/fpga": "1"}),
        lambda p: p.primary.set_field("imagePullPolicy", "Always"),
        lambda p: p.primary.set_field("terminationMessagePolicy", "File"),
        lambda p: p.primary.edit().pop("terminationMessagePolicy"),
    ],
)
def test_what_only_a_pod_can_say_makes_it_the_pod_that_flytekit_would_make(verb: Any) -> None:
    workload = workload_of(PLAIN)
    (pod,) = workload.pods()
    verb(pod)
    after = workload.commit()
    assert "container" not in after
    assert after["config"]["primary_container_name"] == "primary"

    # The same verb on the template that flytekit writes for `pod_template`.
    written = as_pod_task(PLAIN, {"k8sPod": {}})
    other = workload_of(written)
    verb(other.pods()[0])
    assert after == other.commit()

    pod.set_env("LATER", "1")
    assert pod.where() == "k8sPod.podSpec", "the view follows the pod spec to its new place"
    again = workload.commit()
    assert again["k8sPod"]["podSpec"]["containers"][0]["env"][-1] == {"name": "LATER", "value": "1"}


def test_a_failed_task_keeps_the_end_of_its_log() -> None:
    def policies(*verbs: Any, **fields: Any) -> Any:
        workload = workload_of({**PLAIN, **fields})
        (pod,) = workload.pods()
        for verb in verbs:
            verb(pod)
            workload.commit()
        containers = workload.committed["k8sPod"]["podSpec"]["containers"]
        return [(c["name"], c.get("terminationMessagePolicy")) for c in containers]

    def sidecar_first(pod: Any) -> None:
        pod.edit("containers", empty=list).insert(0, {"name": "sidecar", "image": "s"})

    def tolerate(pod: Any) -> None:
        pod.tolerate("t")

    def say_file(pod: Any) -> None:
        pod.primary.set_field("terminationMessagePolicy", "File")

    kept = ("primary", "FallbackToLogsOnError")
    for kind in ("python-task", "raw-container", "container_array", "pytorch", "ray", "dask"):
        assert policies(tolerate, type=kind) == [kept], kind
    assert policies(tolerate, type="spark") == [("primary", None)], "its plugin does not read it"
    assert policies(sidecar_first) == [("sidecar", None), kept]
    for verbs in ((say_file, tolerate), (tolerate, say_file)):
        assert policies(*verbs) == [("primary", "File")], "a step's word counts, in any order"


def test_what_propeller_sets_is_no_reason_to_become_a_pod() -> None:
    workload = workload_of(PLAIN)
    (pod,) = workload.pods()
    pod.primary.set_field("terminationMessagePolicy", "FallbackToLogsOnError")
    assert workload.commit() is PLAIN
    pod.set_env("A", "1")
    assert "k8sPod" not in workload.commit()


def test_a_pod_of_the_authors_own_gets_no_field_of_propellers() -> None:
    container = {"name": "main", "image": "i"}
    template = {
        "type": "python-task",
        "config": {"primary_container_name": "main"},
        "k8sPod": {"podSpec": {"containers": [container]}},
    }
    workload = workload_of(deep_copy(template))
    workload.pods()[0].tolerate("t")
    assert workload.commit()["k8sPod"]["podSpec"]["containers"] == [container]
    assert as_pod_task(template, template) is template


def test_a_container_with_parts_that_a_pod_task_would_lose_stays_one() -> None:
    template = {
        **PLAIN,
        "container": {**PLAIN["container"], "config": [{"key": "a", "value": "b"}]},
    }
    workload = workload_of(template)
    workload.pods()[0].tolerate("t")
    with pytest.raises(CannotChangeError, match="its config would be lost"):
        workload.commit()


def test_flytekits_gpu_is_read_and_the_full_name_is_written() -> None:
    container = {"name": "primary", "resources": {"requests": {"gpu": "1"}, "limits": {"gpu": "1"}}}
    template = {"type": "python-task", "k8sPod": {"podSpec": {"containers": [container]}}}
    for part in ("requests", "limits"):
        workload = workload_of(copy.deepcopy(template))
        (pod,) = workload.pods()
        assert pod.requests("nvidia.com/gpu")
        amounts: dict[str, Any] = {part: {"nvidia.com/gpu": "4"}}
        pod.set_resources(**amounts)
        (entry,) = workload.commit()["k8sPod"]["podSpec"]["containers"]
        both = {"nvidia.com/gpu": "4"}
        assert entry["resources"] == {"requests": both, "limits": both}
        version = workload.commit()
        pod.set_resources(**amounts)
        assert workload.commit() is version


def test_labels_of_the_pod_are_the_objects_where_the_object_is_the_pod() -> None:
    template = {
        "type": "python-task",
        "k8sPod": {
            "metadata": {"labels": {"own": "x", "gone": "y"}},
            "podSpec": {"containers": [{}]},
        },
    }
    workload = workload_of(template)
    (pod,) = workload.pods()
    assert pod.labels == workload.labels == {"own": "x", "gone": "y"}
    pod.label("own", "z")
    pod.unlabel("gone")
    assert workload.commit()["k8sPod"]["metadata"] == {"labels": {"own": "x"}}
    assert workload.labels == {"own": "z"}, "the object's entry wins at the end"


TYPES: list[tuple[str, Any, list[tuple[str, ...]], str]] = [
    ("python-task", {}, [("primary",)], "Pod"),
    ("container_array", {}, [("primary",)], "Pod"),
    ("pytorch", {"workerReplicas": {"replicas": 2}}, [("master", "worker")], "PyTorchJob"),
    ("pytorch", {"elasticConfig": {"nprocPerNode": 1}}, [("worker",)], "PyTorchJob"),
    (
        "tensorflow",
        {"workerReplicas": {"replicas": 1}, "psReplicas": {"replicas": 1, "image": "x"}},
        [("worker", "ps"), ("ps",)],
        "TFJob",
    ),
    (
        "mpi",
        {
            "launcherReplicas": {
                "replicas": 1,
                "resources": {"limits": [{"name": "CPU", "value": "1"}]},
            }
        },
        [("launcher", "worker"), ("launcher",)],
        "MPIJob",
    ),
    (
        "ray",
        {
            "rayCluster": {
                "headGroupSpec": {"k8sPod": {"podSpec": {"containers": [{"name": "ray-head"}]}}},
                "workerGroupSpec": [
                    {"groupName": "cpu"},
                    {"groupName": "gpu", "k8sPod": {"podSpec": {}}},
                ],
            }
        },
        [("head", "worker:cpu", "worker:gpu", "submitter"), ("head",), ("worker:gpu",)],
        "RayJob",
    ),
    (
        "spark",
        {"driverPod": {"podSpec": {}}, "executorPod": {"podSpec": {}}},
        [("driver", "executor"), ("driver",), ("executor",)],
        "SparkApplication",
    ),
    ("dask", {"workers": {}}, [("job-runner", "scheduler", "worker")], "DaskJob"),
]


@pytest.mark.parametrize(
    ("kind", "custom", "roles", "name"), TYPES, ids=[f"{row[0]}-{i}" for i, row in enumerate(TYPES)]
)
@pytest.mark.parametrize("target", ["container", "k8sPod"])
def test_roles_by_task_type(target: str, kind: str, custom: Any, roles: Any, name: str) -> None:
    template = {**PLAIN, "type": kind, "custom": custom}
    if target == "k8sPod":
        template = as_pod_task(template, {"k8sPod": {}})
    workload = workload_of(template)
    assert [pod.roles for pod in workload.pods()] == roles
    assert workload.kind_name == name
    assert workload.name == PLAIN["id"]["name"]
    assert (workload.queue_owner is None) is (kind == "dask")
    base, *others = workload.pods()
    base.tolerate("t")
    for pod in others:
        pod.tolerate("t")  # there already: the task's own pod has it, over which this one is laid
    after = workload.commit()
    assert after["k8sPod"]["podSpec"]["tolerations"] == [{"key": "t", "operator": "Exists"}]
    assert after["custom"] == custom


def test_replicas_take_image_and_resources_alone() -> None:
    custom = {
        "workerReplicas": {
            "replicas": 2,
            "image": "w",
            "resources": {"requests": [{"name": "CPU", "value": "1"}]},
        }
    }
    template = {**PLAIN, "type": "pytorch", "custom": custom}
    workload = workload_of(template)
    _, worker = workload.pods()
    assert worker.is_replica
    worker.primary.set_image("x")
    worker.set_resources(requests={"cpu": "2"}, limits={"nvidia.com/gpu": 1})
    after = workload.commit()
    assert after["custom"]["workerReplicas"] == {
        "replicas": 2,
        "image": "x",
        "resources": {
            "requests": [{"name": "CPU", "value": "2"}],
            "limits": [{"name": "GPU", "value": "1"}],
        },
    }
    assert after["container"] is PLAIN["container"]
    worker.tolerate("t")
    with pytest.raises(CannotChangeError, match="image and resources alone"):
        workload.commit()
    workload.reset(template)
    _, worker = workload.pods()
    worker.set_resources(limits={"example.com/fpga": 1})
    with pytest.raises(CannotChangeError, match=r"cannot ask for example.com/fpga; it knows"):
        workload.commit()


def test_a_groups_own_label_that_would_beat_the_tasks_is_taken_off() -> None:
    group = {"metadata": {"labels": {"team": "old", "own": "x"}}, "podSpec": {"containers": []}}
    template = {
        **PLAIN,
        "type": "ray",
        "custom": {"rayCluster": {"headGroupSpec": {"k8sPod": group}, "workerGroupSpec": []}},
    }
    workload = workload_of(template)
    for pod in workload.pods():
        pod.label("team", "new")
    after = workload.commit()
    head = after["custom"]["rayCluster"]["headGroupSpec"]["k8sPod"]
    assert head["metadata"] == {"labels": {"own": "x"}}
    assert after["k8sPod"]["metadata"] == {"labels": {"team": "new"}}


def test_spark_reads_some_fields_of_a_tasks_pod() -> None:
    workload = workload_of({**PLAIN, "type": "spark", "custom": {}})
    (pod,) = workload.pods()
    pod.tolerate("t")
    pod.set_env("A", "1")
    workload.commit()
    pod.set_field("runtimeClassName", "nvidia")
    with pytest.raises(
        CannotChangeError, match="runtimeClassName of a Spark task's podSpec is not read"
    ):
        workload.commit()


def test_a_template_without_a_pod_has_none() -> None:
    workload = workload_of({"type": "bigquery_query_job_task", "custom": {}, "id": {"name": "q"}})
    assert workload.pods() == ()
    assert workload.queue_owner is None
    workload.label("a", "b")
    assert workload.commit()["metadata"] == {"metadata": {"labels": {"a": "b"}}}


@pytest.mark.parametrize("config", [None, {"a": "b"}])
def test_a_container_that_becomes_a_pod_keeps_its_place(config: dict[str, str] | None) -> None:
    template = {
        "id": {"name": "t"},
        **({"config": config} if config else {}),
        "container": {"image": "i:1", "args": ["x"]},
        "type": "python-task",
    }
    workload = workload_of(template)
    workload.pods()[0].select_node("pool", "a")
    after = workload.commit()
    config_last = [] if config else ["config"]
    names = ["id", *(["config"] if config else []), "k8sPod", "type", *config_last]
    assert list(after) == names
    assert list(as_pod_task(template, after)) == names
    # Whatever the order of the later version is, as out of protobuf.
    later = dict(sorted(after.items()))
    assert list(as_pod_task(template, later)) == sorted(names)


@pytest.mark.parametrize("kind", ["spark", "pytorch", "python-task"])
def test_a_container_that_became_a_pod_for_a_step_that_failed_is_one_again(kind: str) -> None:
    """A target is one of the two: with both, protobuf keeps only one."""
    workload = workload_of({**PLAIN, "type": kind, "custom": {}})
    views, root = workload.pods(), workload.draft.root
    views[0].set_field("runtimeClassName", "nvidia")
    try:
        workload.commit()
    except CannotChangeError:
        assert kind == "spark"
    workload.reset(root, views)
    for pod in workload.pods():
        pod.annotate("a", "b")
    after = workload.commit()
    assert ("container" in after) != ("podSpec" in after.get("k8sPod", {}))
    assert ("container" in after) != ("k8sPod" in after)
