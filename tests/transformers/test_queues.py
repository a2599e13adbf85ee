"""The transformers of queues, on every kind that they know; each run is proved idempotent."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import json
from typing import Any

import pytest

from kubetailor.registry import ConfigError, StepError
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.testing import ABSENT, TailorBench
from kubetailor.workloads import deep_copy

KUEUE = "kueue.x-k8s.io/"
QUEUE = f"{KUEUE}queue-name"
TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "main", "image": "img"}]}}
PYTORCH_TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "pytorch", "image": "img"}]}}
LABELLED: dict[str, Any] = {"metadata": {"labels": {"app": "a"}}, **PYTORCH_TEMPLATE}


def obj(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


POD = obj("v1", "Pod", **TEMPLATE["spec"])
JOB = obj("batch/v1", "Job", template=TEMPLATE)
DEPLOYMENT = obj("apps/v1", "Deployment", template=TEMPLATE)
JOBSET = obj(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    replicatedJobs=[{"name": "worker", "template": {"spec": {"template": TEMPLATE}}}],
)
PYTORCH = obj(
    "kubeflow.org/v1",
    "PyTorchJob",
    pytorchReplicaSpecs={
        "Master": {"template": PYTORCH_TEMPLATE},
        "Worker": {"template": LABELLED},
    },
)
RAYJOB = obj(
    "ray.io/v1",
    "RayJob",
    submissionMode="HTTPMode",
    rayClusterSpec={
        "headGroupSpec": {"template": TEMPLATE},
        "workerGroupSpecs": [{"groupName": "g", "template": TEMPLATE}],
    },
)
SPARK = obj("sparkoperator.k8s.io/v1beta2", "SparkApplication", driver={"cores": 1}, executor={})
DASK = obj("kubernetes.dask.org/v1", "DaskCluster", worker=TEMPLATE)
OBJECTS = [POD, JOB, DEPLOYMENT, JOBSET, PYTORCH, RAYJOB, SPARK]
"""What has pods with labels of their own."""

MASTER = "spec.pytorchReplicaSpecs.Master.template"
WORKER = "spec.pytorchReplicaSpecs.Worker.template"
HEAD = "spec.rayClusterSpec.headGroupSpec.template"
GROUP = "spec.rayClusterSpec.workerGroupSpecs[0].template"


def task(kind: str, **custom: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "id": {"name": "t"},
        "container": {"image": "img", "args": ["x"]},
        "custom": custom,
    }


TASKS = [
    task("python-task"),
    task("pytorch", workerReplicas={"replicas": 2}),
    task("mpi"),
    task("ray", rayCluster={"headGroupSpec": {}, "workerGroupSpec": [{"groupName": "g"}]}),
    task("spark"),
    task("dask"),
]
USES: dict[str, dict[str, Any]] = {
    "kueue": {"queue": "q"},
    "volcano": {"queue": "q"},
    "yunikorn": {"queue": "root.q"},
    "kai": {"queue": "q"},
}


def name_of(value: Any) -> str:
    return str(value.get("kind") or value.get("type"))


def child_of(obj: dict[str, Any]) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


# what all of them have in common ----------------------------------------------------------------


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("given", OBJECTS, ids=name_of)
def test_the_root_gets_a_queue(tailor: TailorBench, use: str, given: dict[str, Any]) -> None:
    outcome = tailor.prove(use, given, **USES[use])
    assert outcome.changes
    spark = ["may copy owner labels"] if (use, given["kind"]) == ("kueue", SPARK["kind"]) else []
    assert len(outcome.warnings) == len(spark)


@pytest.mark.parametrize("use", [*USES, "pod_group"])
@pytest.mark.parametrize("given", OBJECTS, ids=name_of)
def test_a_child_gets_none(tailor: TailorBench, use: str, given: dict[str, Any]) -> None:
    step = json.dumps({"use": use, "with": USES.get(use, {"count": 2})})
    outcome = tailor.chain(f"chains: {{default: {{steps: [{step}]}}}}").run(child_of(given))
    outcome.assert_unchanged()
    assert len(outcome.warnings) == 1


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("given", TASKS, ids=name_of)
def test_a_task_gets_one_or_waits_for_its_object(
    tailor: TailorBench, use: str, given: dict[str, Any]
) -> None:
    waits = use == "volcano" and given["type"] in ("pytorch", "mpi", "spark")
    refused = use == "kueue" and given["type"] == "dask"
    chain = tailor.chain(
        "phases: [serialize, launch, admit]\nchains: {default: {steps: ["
        f"{json.dumps({'use': use, 'with': USES[use]})}]}}}}"
    )
    outcome = chain.prove(given, "launch", execution="e", node="n0")
    assert outcome.deferred == ((use,) if waits else ())
    assert bool(outcome.changes) == (not waits and not refused)


@pytest.mark.parametrize("use", USES)
def test_as_a_default_it_is_whole_or_not_at_all(tailor: TailorBench, use: str) -> None:
    step = json.dumps({"use": use, "with": USES[use]})
    chain = tailor.chain(f"chains: {{default: {{defaults: [{step}]}}}}")
    given = deep_copy(JOB)
    chain.prove(given)
    given["metadata"]["labels"] = {
        QUEUE: "own",
        "yunikorn.apache.org/queue": "own",
        "kai.scheduler/queue": "own",
    }
    given["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "own"}
    chain.prove(given).assert_unchanged()


@pytest.mark.parametrize("use", [*USES, "pod_group"])
def test_it_is_the_roots(use: str) -> None:
    options = Plugins.load(entry_points=False).transformers[use].options
    assert (options.queue, options.atomic) == (True, True)


@pytest.mark.parametrize("use", ["volcano", "yunikorn", "kai"])
def test_what_has_no_pods_takes_no_queue(tailor: TailorBench, use: str) -> None:
    outcome = tailor.transform(use, obj("batch/v1", "Job"), **USES[use])
    outcome.assert_unchanged()
    assert "a Job without pods takes no queue" in outcome.warnings[0]


# Kueue ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "given", "changes"),
    [
        pytest.param(
            {"priority_class": "p", "max_execution_time": "1h30m"},
            PYTORCH,
            {"metadata.labels": {QUEUE: "q", f"{KUEUE}priority-class": "p", f"{KUEUE}max-exec-time-seconds": "5400"}},
            id="labels of the object",
        ),
        pytest.param(
            {"topology": {"*": {"required": "rack"}}},
            RAYJOB,
            {
                "metadata.labels": {QUEUE: "q"},
                f"{HEAD}.metadata": {"annotations": {f"{KUEUE}podset-required-topology": "rack"}},
                f"{GROUP}.metadata": {"annotations": {f"{KUEUE}podset-required-topology": "rack"}},
            },
            id="topology of every pod set",
        ),
        pytest.param(
            {"topology": {"worker": {"preferred": "rack"}, "*": {"unconstrained": True}}},
            PYTORCH,
            {
                "metadata.labels": {QUEUE: "q"},
                f"{MASTER}.metadata": {"annotations": {f"{KUEUE}podset-unconstrained-topology": "true"}},
                f"{WORKER}.metadata.annotations": {f"{KUEUE}podset-preferred-topology": "rack"},
            },
            id="topology by role",
        ),
        pytest.param(
            {"topology": {"worker:g": {"required": "block"}, "worker": {"required": "rack"}}},
            RAYJOB,
            {"metadata.labels": {QUEUE: "q"}, f"{GROUP}.metadata": {"annotations": {f"{KUEUE}podset-required-topology": "block"}}},
            id="topology of one group",
        ),
        pytest.param(
            {"topology": {"*": {"preferred": "rack"}}},
            {**POD, "metadata": {"name": "x", "annotations": {f"{KUEUE}podset-required-topology": "block"}}},
            {"metadata.labels": {QUEUE: "q"}, "metadata.annotations": {f"{KUEUE}podset-preferred-topology": "rack"}},
            id="another topology request goes",
        ),
        pytest.param({"suspend": True}, JOB, {"metadata.labels": {QUEUE: "q"}, "spec.suspend": True}, id="suspend"),
        pytest.param({"suspend": True}, PYTORCH, {"metadata.labels": {QUEUE: "q"}, "spec.runPolicy": {"suspend": True}}, id="suspend by the run policy"),
        pytest.param({"suspend": True}, POD, {"metadata.labels": {QUEUE: "q"}}, id="suspend: Kueue gates a pod"),
        pytest.param({"suspend": False}, {**JOB, "spec": {"suspend": True, **JOB["spec"]}}, {"metadata.labels": {QUEUE: "q"}}, id="suspend is never taken off"),
    ],
)  # fmt: skip
def test_kueue(
    tailor: TailorBench, parameters: Any, given: dict[str, Any], changes: dict[str, Any]
) -> None:
    outcome = tailor.prove("kueue", given, queue="q", **parameters)
    outcome.assert_changes(changes)
    assert outcome.warnings == []


@pytest.mark.parametrize("suspend", [True, False])
@pytest.mark.parametrize("kind", ["SparkApplication", "ScheduledSparkApplication"])
def test_an_older_spark_operator_cannot_be_suspended(
    tailor: TailorBench, kind: str, suspend: bool
) -> None:
    given = deep_copy(SPARK)
    if kind != SPARK["kind"]:
        given = {**given, "kind": kind, "spec": {"schedule": "@daily", "template": given["spec"]}}
    outcome = tailor.prove("kueue", given, queue="q", suspend=suspend)
    said = [text for text in outcome.warnings if "has `suspend` from 2.4 on" in text]
    assert len(said) == suspend
    assert (outcome["spec.suspend"] or outcome["spec.template.suspend"]) is (suspend or None)


def test_kueue_takes_its_labels_off_where_they_do_harm_or_nothing(tailor: TailorBench) -> None:
    given = deep_copy(PYTORCH)
    given["metadata"]["annotations"] = {QUEUE: "q"}
    worker = given["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["metadata"]
    worker["labels"] |= {QUEUE: "other", f"{KUEUE}max-exec-time-seconds": "5"}
    worker["annotations"] = {QUEUE: "q", "mine": "kept"}
    outcome = tailor.prove("kueue", given, queue="q", max_execution_time=60)
    outcome.assert_changes(
        {
            "metadata.labels": {QUEUE: "q", f"{KUEUE}max-exec-time-seconds": "60"},
            "metadata.annotations": ABSENT,
            f"{WORKER}.metadata.labels": {"app": "a"},
            f"{WORKER}.metadata.annotations": {"mine": "kept"},
        }
    )
    assert len(outcome.warnings) == 4
    assert sum("Kueue reads the label alone" in warning for warning in outcome.warnings) == 2


def test_kueue_and_an_object_whose_jobs_are_what_is_queued(tailor: TailorBench) -> None:
    given = obj(
        "batch/v1", "CronJob", schedule="@daily", jobTemplate={"spec": {"template": TEMPLATE}}
    )
    outcome = tailor.prove("kueue", given, queue="q", suspend=True)
    outcome.assert_changes(
        {
            "spec.jobTemplate.metadata": {"labels": {QUEUE: "q"}},
            "spec.jobTemplate.spec.suspend": True,
        }
    )


@pytest.mark.parametrize("use", ["labels", "annotations"])
@pytest.mark.parametrize("given", [JOB, PYTORCH, RAYJOB, SPARK], ids=name_of)
def test_the_queue_is_no_label_of_pods_and_no_annotation(
    tailor: TailorBench, use: str, given: dict[str, Any]
) -> None:
    if use == "annotations":
        for key in (QUEUE, f"{KUEUE}priority-class", f"{KUEUE}max-exec-time-seconds"):
            step = f"{{use: annotations, with: {{set: {{{key}: q}}}}}}"
            with pytest.raises(ConfigError, match="does nothing as an annotation: use `kueue`"):
                tailor.chain(f"chains: {{default: {{steps: [{step}]}}}}")
        return
    outcome = tailor.transform("labels", given, set={QUEUE: "q"})
    outcome.assert_unchanged()
    assert f"{QUEUE} belongs on the {given['kind']}, not on its" in outcome.warnings[0]
    outcome = tailor.prove("labels", given, set={QUEUE: "q"}, on=["object"])
    outcome.assert_changes({"metadata.labels": {QUEUE: "q"}})


CRONJOB = obj(
    "batch/v1", "CronJob", schedule="@daily", jobTemplate={"spec": {"template": TEMPLATE}}
)
WORKFLOW = obj(
    "argoproj.io/v1alpha1", "Workflow", templates=[{"name": "main", "container": {"image": "a"}}]
)
VOLCANO_JOB = obj(
    "batch.volcano.sh/v1alpha1", "Job", tasks=[{"name": "worker", "template": TEMPLATE}]
)
DAEMON_SET = obj("apps/v1", "DaemonSet", template=TEMPLATE)
POD_TEMPLATE = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {}, "template": TEMPLATE}


@pytest.mark.parametrize("on", [None, ["object"], ["pods"]], ids=str)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (CRONJOB, "of a CronJob belongs at spec.jobTemplate.metadata.labels: use `kueue`"),
        (WORKFLOW, "of a Workflow belongs at spec.podMetadata.labels: use `kueue`"),
        (VOLCANO_JOB, "a Job of batch.volcano.sh takes no queue label: Kueue does not manage it"),
        (DAEMON_SET, "a DaemonSet of apps takes no queue label: Kueue does not manage it"),
        (POD_TEMPLATE, "a PodTemplate takes no queue label: Kueue does not manage it"),
        (child_of(POD), "a Pod takes no queue label: its owner carries the queue"),
        (child_of(JOB), "a Job of batch takes no queue label: its owner carries the queue"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_the_queue_is_no_label_where_it_would_do_nothing(
    tailor: TailorBench, given: dict[str, Any], message: str, on: list[str] | None
) -> None:
    step = json.dumps({"use": "labels", "with": {"set": {QUEUE: "q"}, "on": on}})
    outcome = tailor.chain(f"chains: {{default: {{steps: [{step}]}}}}").run(given)
    outcome.assert_unchanged()
    assert message in outcome.warnings[0]


def test_a_bare_pod_may_be_labelled_by_hand(tailor: TailorBench) -> None:
    for on in (None, ["pods"]):
        outcome = tailor.prove("labels", POD, set={QUEUE: "q"}, on=on)
        outcome.assert_changes({"metadata.labels": {QUEUE: "q"}})


def test_topology_of_a_role_that_is_not_there(tailor: TailorBench) -> None:
    """A quota holds all the same."""
    outcome = tailor.prove("kueue", JOB, queue="q", topology={"worker": {"required": "rack"}})
    outcome.assert_changes({"metadata.labels": {QUEUE: "q"}})
    assert "no pod has a role of `topology`, worker, so it gets the queue" in outcome.warnings[0]
    assert "roles present: primary" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("topology", "deferred"),
    [
        ({"*": {"required": "rack"}}, ()),
        ({"worker": {"required": "rack"}}, ("kueue",)),
        ({"master": {"required": "rack"}, "worker": {"required": "rack"}}, ()),
    ],
)
def test_topology_of_some_of_the_roles_that_share_a_pod_waits(
    tailor: TailorBench, topology: Any, deferred: tuple[str, ...]
) -> None:
    step = json.dumps({"use": "kueue", "with": {"queue": "q", "topology": topology}})
    chain = tailor.chain(f"phases: [serialize, admit]\nchains: {{default: {{steps: [{step}]}}}}")
    outcome = chain.prove(task("pytorch", workerReplicas={"replicas": 2}), "serialize")
    assert outcome.deferred == deferred
    if deferred:
        outcome.assert_unchanged()
    else:
        assert outcome["k8sPod.metadata.annotations"] == {
            f"{KUEUE}podset-required-topology": "rack"
        }
        assert outcome["metadata.metadata.labels"] == {QUEUE: "q"}


def test_a_task_cannot_say_that_its_object_is_suspended(tailor: TailorBench) -> None:
    text = "chains: {default: {steps: [{use: kueue, with: {queue: q, suspend: true}}]}}"
    chain = tailor.chain(f"phases: [serialize, admit]\n{text}")
    chain.prove(task("python-task"), "serialize").assert_changes(
        {"metadata": {"metadata": {"labels": {QUEUE: "q"}}}}
    )
    assert chain.prove(task("ray"), "serialize").deferred == ("kueue",)
    with pytest.raises(StepError, match="it needs the object itself, which the phase 'serialize'"):
        tailor.chain(text).run(task("ray"), "serialize")


@pytest.mark.parametrize(
    ("use", "parameters", "fault"),
    [
        ("kueue", {"topology": {"*": {}}}, "exactly one of required, preferred, unconstrained"),
        ("kueue", {"topology": {"*": {"required": "a", "preferred": "b"}}}, "exactly one"),
        ("kueue", {"topology": {"*": {"required": "a b"}}}, "a b"),
        ("kueue", {"topology": {"*": {"unconstrained": False}}}, "unconstrained"),
        ("kueue", {"topology": {"required": "rack"}}, "topology.required"),
        ("kueue", {"max_execution_time": "1500ms"}, "whole number of seconds"),
        ("kueue", {"max_execution_time": 0}, "from 1 to"),
        ("kueue", {"max_execution_time": "700000h"}, "from 1 to"),
        ("volcano", {"queue": "a b"}, "a b"),
        ("kai", {"queue": ""}, "must not be empty"),
        ("pod_group", {"count": 0}, "greater than or equal to 1"),
        ("pod_group", {"count": 2, "name": "G_1"}, "name 'G_1': must be at most"),
        ("pod_group", {"count": 2, "name": "g" * 64}, "64 characters, at most 63"),
    ],
)
def test_what_cannot_be_is_refused_at_load(
    tailor: TailorBench, use: str, parameters: Any, fault: str
) -> None:
    given = parameters if use == "pod_group" else {"queue": "q", **parameters}
    step = json.dumps({"use": use, "with": given})
    with pytest.raises(ConfigError, match=fault):
        tailor.chain(f"chains: {{default: {{steps: [{step}]}}}}")


# groups of pods ---------------------------------------------------------------------------------


def test_a_pod_group(tailor: TailorBench) -> None:
    outcome = tailor.prove("pod_group", POD, name="g", count=4)
    outcome.assert_changes(
        {
            "metadata.labels": {f"{KUEUE}pod-group-name": "g"},
            "metadata.annotations": {f"{KUEUE}pod-group-total-count": "4"},
        }
    )


def test_the_pods_of_a_node_are_one_group_in_every_phase(tailor: TailorBench) -> None:
    text = "phases: [serialize, launch, admit]\nchains: {default: {steps: [{use: pod_group, with: {count: 4}}]}}"
    chain = tailor.chain(text)
    given = task("python-task")
    assert chain.prove(given, "serialize").deferred == ("pod_group",)
    label = f"['{KUEUE}pod-group-name']"
    known = {"execution": "e1", "node": "n0"}
    assert chain.prove(given, "launch", **known)[f"metadata.metadata.labels{label}"] == "e1-n0"
    assert chain.prove(POD, "admit", **known)[f"metadata.labels{label}"] == "e1-n0"


@pytest.mark.parametrize("given", [JOB, PYTORCH, task("pytorch"), task("dask")], ids=name_of)
def test_only_bare_pods_are_grouped(tailor: TailorBench, given: dict[str, Any]) -> None:
    outcome = tailor.transform("pod_group", given, name="g", count=2)
    outcome.assert_unchanged()
    assert "Kueue groups pods that are their own owners" in outcome.warnings[0]


@pytest.mark.parametrize("known", [{}, {"execution": None, "node": None}, {"execution": "e"}])
def test_a_group_that_no_node_could_name(tailor: TailorBench, known: dict[str, Any]) -> None:
    chain = tailor.chain("chains: {default: {steps: [{use: pod_group, with: {count: 4}}]}}")
    outcome = chain.run(POD, "admit", **known)
    outcome.assert_unchanged()
    assert "give the group's `name`" in outcome.warnings[0]


# Volcano, YuniKorn, KAI -------------------------------------------------------------------------


def everywhere(scheduler: str, metadata: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What is written on the object and on each of the pods, whatever the kind."""
    (field,) = metadata
    found: dict[str, Any] = {f"metadata.{field}": metadata[field]}
    places = {
        "Pod": [],
        "Job": ["spec.template"],
        "PyTorchJob": [MASTER, WORKER],
        "RayJob": [HEAD, GROUP],
    }[given["kind"]]
    if not places:
        found["spec.schedulerName"] = scheduler
    for place in places:
        found[f"{place}.spec.schedulerName"] = scheduler
        own = {} if place != WORKER else LABELLED["metadata"]
        found[f"{place}.metadata"] = {**own, field: {**own.get(field, {}), **metadata[field]}}
    return found


VOLCANO = {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}
YUNIKORN = {"labels": {"yunikorn.apache.org/queue": "root.q", "yunikorn.apache.org/app-id": "x"}}
KAI = {"labels": {"kai.scheduler/queue": "q"}}


@pytest.mark.parametrize(
    ("use", "scheduler", "metadata", "given", "more"),
    [
        ("volcano", "volcano", VOLCANO, POD, {}),
        ("volcano", "volcano", VOLCANO, JOB, {}),
        ("volcano", "volcano", VOLCANO, PYTORCH, {"spec.runPolicy": {"schedulingPolicy": {"queue": "q"}}}),
        ("volcano", "volcano", VOLCANO, RAYJOB, {"metadata.labels": {"volcano.sh/queue-name": "q"}}),
        ("yunikorn", "yunikorn", YUNIKORN, POD, {}),
        ("yunikorn", "yunikorn", YUNIKORN, PYTORCH, {}),
        ("yunikorn", "yunikorn", YUNIKORN, RAYJOB, {}),
        ("kai", "kai-scheduler", KAI, POD, {}),
        ("kai", "kai-scheduler", KAI, PYTORCH, {}),
        ("kai", "kai-scheduler", KAI, RAYJOB, {}),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.get("kind", "")),
)  # fmt: skip
def test_object_and_pods_say_the_queue(
    tailor: TailorBench,
    use: str,
    scheduler: str,
    metadata: dict[str, Any],
    given: dict[str, Any],
    more: dict[str, Any],
) -> None:
    outcome = tailor.prove(use, given, **USES[use])
    outcome.assert_changes({**everywhere(scheduler, metadata, given), **more})
    assert outcome.warnings == []


def test_spark_is_told_of_volcano_by_fields_of_its_own(tailor: TailorBench) -> None:
    outcome = tailor.prove("volcano", SPARK, queue="q")
    part = {"annotations": {"scheduling.volcano.sh/queue-name": "q"}, "schedulerName": "volcano"}
    outcome.assert_changes(
        {
            "metadata.annotations": {"scheduling.volcano.sh/queue-name": "q"},
            "spec.driver": {"cores": 1, **part},
            "spec.executor": part,
            "spec.batchScheduler": "volcano",
            "spec.batchSchedulerOptions": {"queue": "q"},
        }
    )


def test_a_job_of_volcano_has_a_queue_of_its_own(tailor: TailorBench) -> None:
    given = obj(
        "batch.volcano.sh/v1alpha1", "Job", tasks=[{"name": "worker", "template": TEMPLATE}]
    )
    queue = {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    outcome = tailor.prove("volcano", given, queue="q")
    outcome.assert_changes(
        {
            "metadata.annotations": queue["annotations"],
            "spec.queue": "q",
            "spec.schedulerName": "volcano",
            "spec.tasks[worker].template": {
                "spec": {**TEMPLATE["spec"], "schedulerName": "volcano"},
                "metadata": queue,
            },
        }
    )


def test_a_task_whose_operator_reads_a_field_waits_for_admission(tailor: TailorBench) -> None:
    text = "chains: {default: {steps: [{use: volcano, with: {queue: q}}]}}"
    chain = tailor.chain(f"phases: [serialize, launch, admit]\n{text}")
    for kind in ("pytorch", "tensorflow", "mpi", "spark"):
        outcome = chain.prove(task(kind), "launch", execution="e", node="n")
        outcome.assert_unchanged()
        assert (outcome.deferred, outcome.result.until) == (("volcano",), "admit")
    with pytest.raises(StepError, match="list a later phase in `phases`"):
        tailor.chain(text).run(task("pytorch"), "serialize")


def test_volcano_and_a_task_whose_object_has_all_that_is_read(tailor: TailorBench) -> None:
    queue = {"scheduling.volcano.sh/queue-name": "q"}
    outcome = tailor.prove("volcano", task("python-task"), queue="q")
    assert outcome["metadata.metadata.annotations"] == queue
    assert outcome["k8sPod.podSpec.schedulerName"] == "volcano"
    outcome = tailor.prove("volcano", TASKS[3], queue="q")  # Ray
    assert outcome["metadata.metadata"] == {
        "annotations": queue,
        "labels": {"volcano.sh/queue-name": "q"},
    }
    assert outcome["k8sPod.metadata.annotations"] == queue


def test_an_application_of_yunikorn(tailor: TailorBench) -> None:
    text = "phases: [serialize, launch, admit]\nchains: {default: {steps: [{use: yunikorn, with: {queue: root.q}}]}}"
    chain = tailor.chain(text)
    label = "['yunikorn.apache.org/app-id']"
    assert chain.prove(task("ray"), "serialize").deferred == ("yunikorn",)
    known = {"execution": "e1", "node": "n0"}
    outcome = chain.prove(task("ray"), "launch", **known)
    assert outcome[f"metadata.metadata.labels{label}"] == "e1-n0"
    assert outcome[f"k8sPod.metadata.labels{label}"] == "e1-n0"
    assert chain.prove(RAYJOB, "admit", **known)[f"metadata.labels{label}"] == "e1-n0"
    assert chain.prove(RAYJOB, "admit")[f"metadata.labels{label}"] == "x"
    given = tailor.prove("yunikorn", RAYJOB, queue="root.q", application_id="a")
    assert given[f"metadata.labels{label}"] == "a"
    assert tailor.prove("yunikorn", SPARK, queue="root.q")["metadata.labels"] == {
        "yunikorn.apache.org/queue": "root.q"
    }


def test_an_application_of_an_object_that_has_no_name_yet(tailor: TailorBench) -> None:
    given = {**JOB, "metadata": {"generateName": "x-"}}
    outcome = tailor.prove("yunikorn", given, queue="root.q")
    assert outcome["metadata.labels"] == {"yunikorn.apache.org/queue": "root.q"}
    assert "give `application_id`" in outcome.warnings[0]


def test_the_priority_of_a_workload_is_a_label_to_kai(tailor: TailorBench) -> None:
    outcome = tailor.prove("kai", JOB, queue="q", priority_class="train")
    labels = {"kai.scheduler/queue": "q", "priorityClassName": "train"}
    assert outcome["metadata.labels"] == outcome["spec.template.metadata.labels"] == labels
    assert outcome["spec.template.spec"].get("priorityClassName") is None


def test_kuberay_refuses_a_submitter_of_its_own_for_kai(tailor: TailorBench) -> None:
    for mode in (None, "K8sJobMode"):
        given = {**RAYJOB, "spec": {**RAYJOB["spec"], "submissionMode": mode}}
        outcome = tailor.prove("kai", given, queue="q")
        assert "KubeRay refuses a RayJob for KAI" in outcome.warnings[0]


def test_pods_whose_labels_are_copied_from_the_object(tailor: TailorBench) -> None:
    outcome = tailor.prove("kai", DASK, queue="q")
    outcome.assert_changes(
        {
            "metadata.labels": {"kai.scheduler/queue": "q"},
            "spec.worker.spec.schedulerName": "kai-scheduler",
        }
    )
