"""Every row of the kinds table: where its pods are, and what its operator reads."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetailor.workloads import (
    BUILTIN_KINDS,
    CannotChangeError,
    ConflictError,
    InvalidObjectError,
    Kind,
    KindTable,
    KubetailorError,
    PodPath,
    Workload,
)
from kubetailor.workloads.form import check_form

TABLE = KindTable(BUILTIN_KINDS)
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference" / "examples" / "kinds"
EXAMPLES = [yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))]
IN_TABLE = [(kind, obj) for obj in EXAMPLES if (kind := TABLE.of(obj)) is not None]
NAMES = [f"{kind.name}-{kind.group}" for kind, _ in IN_TABLE]


def spec(name: str = "c") -> Any:
    return {"containers": [{"name": name, "image": "img"}]}


def template(name: str = "c") -> Any:
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec(name)}


def replicas(**names: str) -> Any:
    return {role: {"replicas": 1, "template": template(name)} for role, name in names.items()}


RAY = {
    "headGroupSpec": {"template": template("ray-head")},
    "workerGroupSpecs": [
        {"groupName": "cpu", "template": template("ray-worker")},
        {"groupName": "gpu", "template": template("ray-worker")},
    ],
}
DASK = {"worker": {"spec": spec("worker")}, "scheduler": {"spec": spec("scheduler")}}

# apiVersion, kind, spec (or whole object), {role: path of its pod spec}
ROWS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("v1", "Pod", spec(), {"primary": "spec"}),
    ("batch/v1", "Job", {"template": template()}, {"primary": "spec.template.spec"}),
    *(
        ("apps/v1", kind, {"template": template()}, {"primary": "spec.template.spec"})
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
    ),
    (
        "batch/v1",
        "CronJob",
        {"jobTemplate": {"spec": {"template": template()}}},
        {"primary": "spec.jobTemplate.spec.template.spec"},
    ),
    (
        "ray.io/v1",
        "RayService",
        {"rayClusterConfig": RAY},
        {
            "head": "spec.rayClusterConfig.headGroupSpec.template.spec",
            "worker:cpu": "spec.rayClusterConfig.workerGroupSpecs[0].template.spec",
            "worker:gpu": "spec.rayClusterConfig.workerGroupSpecs[1].template.spec",
        },
    ),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        {"pytorchReplicaSpecs": replicas(Master="pytorch", Worker="pytorch")},
        {
            "master": "spec.pytorchReplicaSpecs.Master.template.spec",
            "worker": "spec.pytorchReplicaSpecs.Worker.template.spec",
        },
    ),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        {"elasticPolicy": {}, "pytorchReplicaSpecs": replicas(Worker="pytorch")},
        {"worker": "spec.pytorchReplicaSpecs.Worker.template.spec"},
    ),
    (
        "kubeflow.org/v1",
        "TFJob",
        {"tfReplicaSpecs": replicas(Chief="tensorflow", PS="tensorflow", Evaluator="tensorflow")},
        {
            "chief": "spec.tfReplicaSpecs.Chief.template.spec",
            "ps": "spec.tfReplicaSpecs.PS.template.spec",
            "evaluator": "spec.tfReplicaSpecs.Evaluator.template.spec",
        },
    ),
    *(
        (
            "kubeflow.org/v1",
            f"{name}Job",
            {f"{field}ReplicaSpecs": replicas(Worker=container)},
            {"worker": f"spec.{field}ReplicaSpecs.Worker.template.spec"},
        )
        for name, field, container in (
            ("XGBoost", "xgb", "xgboost"),
            ("Paddle", "paddle", "paddle"),
            ("JAX", "jax", "jax"),
        )
    ),
    *(
        (
            f"kubeflow.org/{version}",
            "MPIJob",
            {"mpiReplicaSpecs": replicas(Launcher="mpi", Worker="mpi")},
            {
                "launcher": "spec.mpiReplicaSpecs.Launcher.template.spec",
                "worker": "spec.mpiReplicaSpecs.Worker.template.spec",
            },
        )
        for version in ("v1", "v2beta1")
    ),
    (
        "ray.io/v1",
        "RayJob",
        {"rayClusterSpec": RAY, "submitterPodTemplate": template("ray-job-submitter")},
        {
            "head": "spec.rayClusterSpec.headGroupSpec.template.spec",
            "worker:cpu": "spec.rayClusterSpec.workerGroupSpecs[0].template.spec",
            "worker:gpu": "spec.rayClusterSpec.workerGroupSpecs[1].template.spec",
            "submitter": "spec.submitterPodTemplate.spec",
        },
    ),
    (
        "ray.io/v1",
        "RayCluster",
        RAY,
        {
            "head": "spec.headGroupSpec.template.spec",
            "worker:cpu": "spec.workerGroupSpecs[0].template.spec",
            "worker:gpu": "spec.workerGroupSpecs[1].template.spec",
        },
    ),
    (
        "kubernetes.dask.org/v1",
        "DaskJob",
        {"job": {"spec": spec("job")}, "cluster": {"spec": DASK}},
        {
            "job-runner": "spec.job.spec",
            "scheduler": "spec.cluster.spec.scheduler.spec",
            "worker": "spec.cluster.spec.worker.spec",
        },
    ),
    (
        "kubernetes.dask.org/v1",
        "DaskCluster",
        DASK,
        {"scheduler": "spec.scheduler.spec", "worker": "spec.worker.spec"},
    ),
    (
        "kubernetes.dask.org/v1",
        "DaskWorkerGroup",
        {"cluster": "c", "worker": {"replicas": 2, "spec": spec("worker")}},
        {"worker": "spec.worker.spec"},
    ),
    (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"leaderTemplate": template(), "workerTemplate": template()}},
        {
            "leader": "spec.leaderWorkerTemplate.leaderTemplate.spec",
            "worker": "spec.leaderWorkerTemplate.workerTemplate.spec",
        },
    ),
    (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"workerTemplate": template()}},
        {"worker": "spec.leaderWorkerTemplate.workerTemplate.spec"},
    ),
    (
        "batch.volcano.sh/v1alpha1",
        "Job",
        {"tasks": [{"name": "ps", "template": template()}, {"name": "w", "template": template()}]},
        {"ps": "spec.tasks[0].template.spec", "w": "spec.tasks[1].template.spec"},
    ),
    (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "leader", "template": {"spec": {"template": template()}}}]},
        {"leader": "spec.replicatedJobs[0].template.spec.template.spec"},
    ),
]
QUEUES = {
    ("", "Pod"): "metadata",
    ("apps", "Deployment"): "metadata",
    ("apps", "StatefulSet"): "metadata",
    ("batch", "Job"): "metadata",
    ("batch", "CronJob"): "spec.jobTemplate.metadata",
    ("kubeflow.org", "PyTorchJob"): "metadata",
    ("kubeflow.org", "TFJob"): "metadata",
    ("kubeflow.org", "MPIJob"): "metadata",
    ("kubeflow.org", "XGBoostJob"): "metadata",
    ("kubeflow.org", "PaddleJob"): "metadata",
    ("kubeflow.org", "JAXJob"): "metadata",
    ("trainer.kubeflow.org", "TrainJob"): "metadata",
    ("ray.io", "RayJob"): "metadata",
    ("ray.io", "RayCluster"): "metadata",
    ("ray.io", "RayService"): "metadata",
    ("sparkoperator.k8s.io", "SparkApplication"): "metadata",
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): "metadata",
    ("jobset.x-k8s.io", "JobSet"): "metadata",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "metadata",
    ("workload.codeflare.dev", "AppWrapper"): "metadata",
    ("serving.kserve.io", "InferenceService"): "metadata",
    ("argoproj.io", "Workflow"): "spec.podMetadata",
    ("argoproj.io", "WorkflowTemplate"): "spec.podMetadata",
    ("argoproj.io", "CronWorkflow"): "spec.workflowSpec.podMetadata",
    ("flyte", "TaskTemplate"): "metadata.metadata",
}
"""Where Kueue, or what an operator makes for it, reads the queue label."""


def object_of(version: str, kind: str, body: Any) -> Any:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "j"},
        "spec": copy.deepcopy(body),
    }


def workload_of(obj: Any, table: KindTable = TABLE) -> Workload:
    kind = table.of(obj)
    assert kind is not None
    return Workload(obj, kind)


@pytest.mark.parametrize(
    ("version", "kind", "body", "places"),
    ROWS,
    ids=[f"{row[1]}-{row[0]}-{len(row[3])}" for row in ROWS],
)
def test_roles_and_places(version: str, kind: str, body: Any, places: dict[str, str]) -> None:
    obj = object_of(version, kind, body)
    workload = workload_of(obj)
    assert {role: pod.where() for pod in workload.pods() for role in pod.roles} == places
    for pod in workload.pods():
        pod.tolerate("t")
        pod.select_node("k", pod.role.replace(":", "-"))
        assert pod.primary.name == pod.containers[0].name
        if pod.has_metadata:
            pod.label("l", "v")
    after = workload.commit()
    assert obj == object_of(version, kind, body), "the input is not changed"
    # Taken off again at the places that the table names, nothing else is left.
    for pod in workload_of(after).pods():
        assert pod.node_selector == {"k": pod.role.replace(":", "-")}
        pod.untolerate("t")
        pod.deselect_node("k")
        pod.unlabel("l")
        after = pod.workload.commit()
    assert after == obj


# ------------------------------------------------------------------------------ the whole table


def test_each_row_has_an_example() -> None:
    """Of the reference, where the built-ins are tried on each too."""
    assert {(kind.group, kind.name) for kind, _ in IN_TABLE} == set(TABLE)


def test_each_row_of_templates_has_its_places_tested() -> None:
    tested = {(version.rpartition("/")[0], kind) for version, kind, _, _ in ROWS}
    plain = {key for key, kind in TABLE.items() if type(kind) is Kind or key[0] == "ray.io"}
    assert plain == tested | {("", "PodTemplate")}


def written(workload: Workload) -> None:
    """What every kind with pods has a place for."""
    for pod in workload.pods():
        pod.tolerate("t", effect="NoSchedule")
        pod.select_node("k", "v")
        pod.require_node("r", "In", ["x"])
        pod.add_volume("scratch", {"emptyDir": {}})
        if pod.containers:
            pod.mount("scratch", "/scratch")
            pod.set_env("A", "1")
        if pod.has_metadata:
            pod.label("l", "v")
            pod.annotate("a", "v")


def taken_off(workload: Workload) -> None:
    for pod in workload.pods():
        if pod.containers:
            pod.unmount("/scratch")
            pod.remove_env("A")
        pod.remove_volume("scratch")
        pod.untolerate("t")
        pod.deselect_node("k")
        pod.unrequire_node("r")
        pod.unlabel("l")
        pod.unannotate("a")


@pytest.mark.parametrize(("kind", "obj"), IN_TABLE, ids=NAMES)
def test_what_is_written_is_read_again_and_can_be_taken_off(kind: Kind, obj: Any) -> None:
    given = copy.deepcopy(obj)
    first = workload_of(obj)
    assert first.pods()
    assert first.commit() is obj, "what is only looked at stays as it is"
    written(first)
    after = first.commit()
    assert obj == given, "the input is not changed"
    again = workload_of(after)
    for pod in again.pods():
        assert pod.node_selector == {"k": "v"}
        assert {"key": "t", "operator": "Exists", "effect": "NoSchedule"} in pod.tolerations
        if pod.has_metadata:
            assert (pod.labels["l"], pod.annotations["a"]) == ("v", "v")
    written(again)
    assert again.commit() == after, "once more changes nothing"
    taken_off(again)
    if kind.name != "TaskTemplate":  # a container that has become a pod stays one
        assert without_empty_metadata(again.commit()) == obj


def without_empty_metadata(value: Any) -> Any:
    """The map of labels goes with the last, and what it was in stays."""
    if isinstance(value, dict):
        found = {key: without_empty_metadata(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if key != "metadata" or item}
    return [without_empty_metadata(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("kind", "obj"), IN_TABLE, ids=NAMES)
def test_messages_tell_the_pods_of_an_object_apart(kind: Kind, obj: Any) -> None:
    workload = workload_of(obj)
    pods = workload.pods()
    places = {pod.where() for pod in pods}
    assert len(places) == len(pods)
    root = workload.draft.root
    for pod in pods:  # each is a place in the object, or one that a step would make
        assert pod.where().partition(".")[0].partition("[")[0] in {*root, "podSpec"}
        assert pod.serving("x").where("a") == f"{pod.where()}.a"


def test_a_step_for_one_role_is_not_told_of_what_another_role_got() -> None:
    app = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
        "spec": {"driver": {}, "executor": {"nodeSelector": {"zone": "a"}, "image": "a"}},
    }
    workload = workload_of(app)
    driver, executor = workload.pods()
    workload.writer = ("steps", "first", 0)
    driver.select_node("zone", "a")
    driver.primary.set_image("a")
    workload.writer = ("steps", "second", 0)
    executor.select_node("zone", "b")
    executor.primary.set_image("b")
    assert workload.notes == []
    driver.select_node("zone", "b")
    driver.primary.set_image("b")
    assert [note.field for note in workload.notes] == [
        "spec.driver.nodeSelector.zone",
        "spec.driver.containers[0].image",
    ]


@pytest.mark.parametrize(("kind", "obj"), IN_TABLE, ids=NAMES)
def test_the_queue_label_goes_where_kueue_reads_it(kind: Kind, obj: Any) -> None:
    workload = workload_of(obj)
    place = QUEUES.get((kind.group, kind.name), "")
    assert kind.queue_place == place
    if not place:
        assert workload.queue_owner is None
        return
    owner = workload.queue_owner
    assert owner is not None
    owner.label("kueue.x-k8s.io/queue-name", "q")
    found: Any = workload.commit()
    for key in place.split("."):
        found = found[key]
    assert found["labels"]["kueue.x-k8s.io/queue-name"] == "q"
    if owner is not workload.metadata:
        assert "kueue.x-k8s.io/queue-name" not in workload.labels
    assert Workload(obj, kind, is_child=True).queue_owner is None


@pytest.mark.parametrize(("kind", "obj"), IN_TABLE, ids=NAMES)
def test_what_an_operator_ignores_is_refused(kind: Kind, obj: Any) -> None:
    """A field that is said to be ignored, and one that is not among those that are read."""
    fields = [field for field in kind.ignored if "[]" not in field]
    if kind.reads and "runtimeClassName" not in kind.reads:
        fields.append("runtimeClassName")
    for field in fields:
        given = copy.deepcopy(obj)
        if field == "hostname" and kind.name == "Job":
            given["spec"]["completionMode"] = "Indexed"
        if kind.name == "JobSet":
            given["spec"]["network"] = {"enableDNSHostnames": True}
        if kind.name == "MPIJob":
            given["apiVersion"] = "kubeflow.org/v2beta1"
        for role in [pod.role for pod in workload_of(given).pods()]:
            workload = workload_of(given)
            (pod,) = workload.pods(role)
            pod.set_field(field, "x")
            with pytest.raises(CannotChangeError, match=rf"{field} of .* is not read by"):
                workload.commit()


def test_what_is_ignored_in_each_entry_of_a_list() -> None:
    """A native sidecar would become an init container that never ends."""
    given = {"worker": {"spec": {**spec("worker"), "initContainers": [{"name": "a"}]}}}
    workload = workload_of(object_of("kubernetes.dask.org/v1", "DaskWorkerGroup", given))
    (pod,) = workload.pods()
    pod.edit("initContainers", 0)["image"] = "i"
    workload.commit()
    pod.edit("initContainers", empty=list).append({"name": "b", "restartPolicy": "Always"})
    with pytest.raises(CannotChangeError, match=r"initContainers\[\].restartPolicy of the pods of"):
        workload.commit()


@pytest.mark.parametrize(
    ("kind", "field"),
    [("Job", "hostname"), ("JobSet", "subdomain"), ("MPIJob", "hostname")],
)
def test_what_is_ignored_for_some_objects_is_read_of_others(kind: str, field: str) -> None:
    (obj,) = (obj for row, obj in IN_TABLE if row.name == kind and "volcano" not in row.group)
    workload = workload_of(obj)
    pod = workload.pods()[0]
    pod.set_field(field, "x")
    workload.commit()
    assert workload_of(workload.committed).pods()[0].get(field) == "x"


def test_a_hundred_replicas_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step changed is found by what two versions share, not by a walk over all."""
    jobs = [{"name": f"j{n}", "template": {"spec": {"template": template()}}} for n in range(100)]
    obj = object_of("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})
    obj["spec"]["network"] = {"enableDNSHostnames": True}
    workload = workload_of(obj)
    seen: list[Any] = []
    changed = PodPath.changed

    def counted(self: PodPath, before: Any, after: Any) -> Any:
        found = list(changed(self, before, after))
        seen.extend(found)
        return iter(found)

    monkeypatch.setattr(PodPath, "changed", counted)
    for pod in workload.pods():
        pod.tolerate("t")
        workload.commit()
    assert len(seen) == 100


def test_a_pod_template_object_has_its_pod_at_the_top() -> None:
    workload = workload_of({"apiVersion": "v1", "kind": "PodTemplate", "template": template()})
    (pod,) = workload.pods()
    assert (pod.where(), pod.labels, pod.is_object) == ("template.spec", {"app": "x"}, False)


def test_roles_with_a_group_are_found_by_the_role_alone() -> None:
    workload = workload_of(object_of("ray.io/v1", "RayCluster", RAY))
    assert [pod.role for pod in workload.pods("worker")] == ["worker:cpu", "worker:gpu"]
    assert [pod.role for pod in workload.pods("worker:gpu")] == ["worker:gpu"]
    assert workload.pods("work") == ()


def test_the_container_that_the_operator_runs_is_the_primary_one() -> None:
    body = {"pytorchReplicaSpecs": replicas(Worker="pytorch")}
    containers = body["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    containers[:0] = [{"name": "main"}, {"name": "other"}]
    (pod,) = workload_of(object_of("kubeflow.org/v1", "PyTorchJob", body)).pods()
    assert pod.primary.name == "pytorch"


def test_parts_that_are_missing_or_of_another_form_hold_no_pods() -> None:
    for body in (None, {}, {"pytorchReplicaSpecs": None}, {"pytorchReplicaSpecs": {"Worker": "x"}}):
        obj = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": body}
        assert workload_of(obj).pods() == ()
    ray = object_of(
        "ray.io/v1", "RayCluster", {"workerGroupSpecs": [None, "x", {"template": spec()}]}
    )
    assert [pod.role for pod in workload_of(ray).pods()] == ["worker:{groupName}"]


# ------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"kind": "Pod"},
        {"apiVersion": "v1"},
        {"kind": 1, "apiVersion": "v1"},
        {"kind": "", "apiVersion": "v1"},
    ],
)
def test_an_object_without_a_kind_is_none(obj: Any) -> None:
    with pytest.raises(InvalidObjectError, match="an object needs `apiVersion` and `kind`"):
        TABLE.of(obj)


def test_kinds_are_told_apart_by_group_and_not_by_version() -> None:
    assert TABLE.of({"apiVersion": "kubeflow.org/v9", "kind": "PyTorchJob"}) is not None
    assert TABLE.of({"apiVersion": "batch/v1", "kind": "Pod"}) is None
    assert TABLE.of({"apiVersion": "v1", "kind": "Service"}) is None


def test_a_plugin_adds_rows_and_replaces_none() -> None:
    table = KindTable(BUILTIN_KINDS)
    row = Kind("Run", "acme.example.com", (PodPath("{name}", "spec.parts[].template"),))
    table.add(row)
    table.add(row)
    obj = {
        "apiVersion": "acme.example.com/v1",
        "kind": "Run",
        "spec": {"parts": [{"name": "a", "template": template()}]},
    }
    assert [pod.role for pod in workload_of(obj, table).pods()] == ["a"]
    with pytest.raises(
        ConflictError, match=r"kind Run of group 'acme.example.com' is there already"
    ):
        table.add(Kind("Run", "acme.example.com"))
    with pytest.raises(ConflictError):
        table.add(Kind("Pod", ""))


@pytest.mark.parametrize(
    ("owners", "child"),
    [
        (None, False),
        ([], False),
        ([{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "controller": True}], True),
        ([{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}], False),
        (
            [
                {
                    "apiVersion": "flyte.lyft.com/v1alpha1",
                    "kind": "FlyteWorkflow",
                    "controller": True,
                }
            ],
            False,
        ),
        (["x", {"apiVersion": "batch/v1", "kind": "Job", "controller": True}], True),
        *(
            ([{"apiVersion": version, "kind": kind, "controller": True}], True)
            for version, kind in (
                ("apps/v1", "ReplicaSet"),
                ("batch/v1", "CronJob"),
                ("argoproj.io/v1alpha1", "Workflow"),
                ("argoproj.io/v1alpha1", "CronWorkflow"),
                ("workload.codeflare.dev/v1beta2", "AppWrapper"),
                ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
                ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
                ("batch.volcano.sh/v1alpha1", "Job"),
                ("kubernetes.dask.org/v1", "DaskWorkerGroup"),
                ("serving.kserve.io/v1beta1", "InferenceService"),
                ("sparkoperator.k8s.io/v1beta2", "ScheduledSparkApplication"),
            )
        ),
    ],
)
def test_children_of_workloads(owners: Any, child: bool) -> None:
    assert TABLE.is_child({"ownerReferences": owners}) is child
    pod = object_of("v1", "Pod", spec())
    kind = TABLE.of(pod)
    assert kind is not None
    assert (Workload(pod, kind, is_child=child).queue_owner is None) is child


# ------------------------------------------------------------------------------- SparkApplication


def spark(**extra: Any) -> Any:
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
        "spec": {
            "driver": {"cores": 1, "memory": "2g"},
            "executor": {
                "cores": 4,
                "instances": 8,
                "gpu": {"name": "nvidia.com/gpu", "quantity": 1},
            },
            **extra,
        },
    }


def test_driver_and_executor_are_written_where_the_operator_reads_them() -> None:
    obj = spark()
    workload = workload_of(obj)
    driver, executor = workload.pods()
    assert (driver.roles, executor.roles) == (("driver",), ("executor",))
    for pod in workload.pods():
        pod.tolerate("t")
        pod.set_env("A", "1")
        pod.label("l", "v")
        pod.edit("securityContext")["runAsUser"] = 1
    executor.set_resources(limits={"amd.com/gpu": "2", "nvidia.com/gpu": None})
    common = {
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "env": [{"name": "A", "value": "1"}],
        "labels": {"l": "v"},
        "podSecurityContext": {"runAsUser": 1},
    }
    after = workload.commit()
    assert after["spec"] == {
        "driver": {"cores": 1, "memory": "2g", **common},
        "executor": {
            "cores": 4,
            "instances": 8,
            "gpu": {"name": "amd.com/gpu", "quantity": 2},
            **common,
        },
    }
    assert obj == spark()
    for pod in workload_of(after).pods():
        assert pod.tolerations == common["tolerations"]


def test_each_role_keeps_the_volumes_of_the_other() -> None:
    workload = workload_of(
        spark(volumes=[{"name": "own", "emptyDir": {}}, {"name": "old", "emptyDir": {}}])
    )
    driver, executor = workload.pods()
    driver.add_volume("a", {"emptyDir": {}})
    driver.remove_volume("old")
    executor.add_volume("b", {"emptyDir": {}})
    names = [volume["name"] for volume in workload.commit()["spec"]["volumes"]]
    assert names == ["own", "a", "b"]
    executor.add_volume("c", {"emptyDir": {}})
    names = [volume["name"] for volume in workload.commit()["spec"]["volumes"]]
    assert names == ["own", "a", "b", "c"]


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (
            lambda p: p.set_field("runtimeClassName", "nvidia"),
            "runtimeClassName of the driver is not read",
        ),
        (lambda p: p.set_resources(limits={"memory": "1Gi"}), "cores and memory are Spark's own"),
        (lambda p: p.set_resources(limits={"a.com/x": 1, "b.com/y": 1}), "one GPU resource"),
        (
            lambda p: p.primary.set_field("imagePullPolicy", "Always"),
            "imagePullPolicy of the driver",
        ),
    ],
)
def test_what_the_operator_does_not_read_is_refused(verb: Any, message: str) -> None:
    workload = workload_of(spark())
    verb(workload.pods()[0])
    with pytest.raises(CannotChangeError, match=message):
        workload.commit()


def test_a_gpu_comes_and_goes() -> None:
    workload = workload_of(spark())
    driver, executor = workload.pods()
    driver.set_resources(requests={"nvidia.com/gpu": "1e0"})
    executor.set_resources(limits={"nvidia.com/gpu": None})
    after = workload.commit()["spec"]
    assert after["driver"]["gpu"] == {"name": "nvidia.com/gpu", "quantity": 1}
    assert "gpu" not in after["executor"]


def test_a_view_that_is_out_of_date_refuses_changes() -> None:
    workload = workload_of(spark())
    driver, _ = workload.pods()
    workload.reset(spark())
    workload.pods()
    with pytest.raises(RuntimeError, match="out of date"):
        driver.tolerate("t")


# ------------------------------------------------------------------- objects of another form


def spoilt(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """(path, what is there instead) for each part of an object."""
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        others: list[Any] = ["x", 5, [], {}, None, [None], ["x"]]
        for other in others:
            if type(other) is not type(child) or isinstance(child, list):
                yield (*path, key), other
        yield from spoilt(child, (*path, key))


@pytest.mark.parametrize(("kind", "obj"), IN_TABLE, ids=NAMES)
def test_what_cannot_be_read_is_told_with_the_field_that_is_to_blame(kind: Kind, obj: Any) -> None:
    for path, other in spoilt(obj):
        if path[0] in ("apiVersion", "kind", "type"):
            continue
        given = copy.deepcopy(obj)
        parent = given
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = other
        workload = Workload(given, kind)
        try:
            written(workload)
            workload.commit()
        except KubetailorError:
            continue
        except Exception:
            with pytest.raises(InvalidObjectError, match=r"expected .*, found"):
                check_form(given, kind)
