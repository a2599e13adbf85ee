"""What a step writes into a task is what flytekit makes of the same words in `@task`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from flyteidl.plugins import dask_pb2, ray_pb2, spark_pb2
from flyteidl.plugins.kubeflow import mpi_pb2, pytorch_pb2, tensorflow_pb2
from flytekit import Resources, map_task, task, workflow
from flytekit.core.cache import Cache
from flytekit.models.task import TaskSpec
from flytekitplugins.dask import Dask, Scheduler, WorkerGroup
from flytekitplugins.kfmpi import HorovodJob, Launcher, MPIJob
from flytekitplugins.kfmpi import Worker as MPIWorker
from flytekitplugins.kfpytorch import CleanPodPolicy, Elastic, Master, PyTorch, RunPolicy, Worker
from flytekitplugins.kftensorflow import PS, Chief, TfJob
from flytekitplugins.kftensorflow import Worker as TFWorker
from flytekitplugins.ray import HeadNodeConfig, RayJobConfig, WorkerNodeConfig
from flytekitplugins.spark import Spark

from kubetailor.plugins.flyte.entities import Entities, task_nodes
from kubetailor.plugins.flyte.messages import as_json
from kubetailor.plugins.flyte.report import Report
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.undo import UNDO, undo
from kubetailor.registry.tailor import Tailor
from kubetailor.transformers._task_config_fields import FIELDS, STRINGS
from kubetailor.workloads import Draft, Path


def work(x: int) -> int:
    return x


def bare(template: Any) -> dict[str, Any]:
    """A template without what kubetailor notes on it."""
    draft = Draft(as_json(template))
    holders: tuple[tuple[Path, str], ...] = (
        (("config",), UNDO),
        (("metadata", "metadata", "annotations"), STAMP),
        (("k8sPod", "metadata", "annotations"), STAMP),
    )
    for path, key in holders:
        draft.drop((*path, key))
        if draft.get(path) == {}:
            draft.drop(path)
    return draft.root


def torch(replicas: int, **policy: Any) -> Any:
    return PyTorch(
        master=Master(),
        worker=Worker(replicas=replicas),
        increase_shared_mem=False,
        run_policy=RunPolicy(**policy) if policy else None,
    )


def mpi(replicas: int, slots: int = 1, kind: Any = MPIJob) -> Any:
    return kind(launcher=Launcher(replicas=1), worker=MPIWorker(replicas=replicas), slots=slots)


def elastic(**given: Any) -> Any:
    return Elastic(increase_shared_mem=False, **given)


def tf(workers: int, servers: int) -> Any:
    return TfJob(
        chief=Chief(replicas=1), ps=PS(replicas=servers), worker=TFWorker(replicas=workers)
    )


def ray(*groups: tuple[str, int, int | None, int | None], **given: Any) -> Any:
    return RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params=given.pop("start", {"n": "1"})),
        worker_node_config=[
            WorkerNodeConfig(group_name=name, replicas=number, min_replicas=low, max_replicas=high)
            for name, number, low, high in groups
        ],
        **given,
    )


def dask(workers: int) -> Any:
    return Dask(scheduler=Scheduler(), workers=WorkerGroup(number_of_workers=workers))


METADATA: list[Any] = [
    ("retries", {"retries": 5}, {}, {"retries": 5}),
    ("retries", {"retries": 5}, {"retries": 2}, {"retries": 5}),
    ("retries", {"retries": 0}, {"retries": 2}, {}),
    ("timeout", {"timeout": "90m"}, {}, {"timeout": 5400}),
    ("timeout", {"timeout": 90}, {"timeout": 5}, {"timeout": 90}),
    ("timeout", {"timeout": 0}, {"timeout": 5}, {}),
    ("timeout", {"timeout": None}, {"timeout": 5}, {}),
    ("interruptible", {"interruptible": True}, {}, {"interruptible": True}),
    ("interruptible", {"interruptible": False}, {"interruptible": True}, {"interruptible": False}),
    ("interruptible", {"interruptible": None}, {"interruptible": True}, {}),
    ("cache", {"cache": True, "version": "2"}, {}, {"cache": Cache(version="2")}),
    (
        "cache",
        {"cache": True, "version": 2, "serialize": True, "ignored_inputs": ["x"]},
        {},
        {"cache": Cache(version="2", serialize=True, ignored_inputs=("x",))},
    ),
    ("cache", {"version": "2"}, {"cache": Cache(version="1")}, {"cache": Cache(version="2")}),
    (
        "cache",
        {"version": "2"},
        {"cache": Cache(version="1", serialize=True, ignored_inputs=("x",))},
        {"cache": Cache(version="2", serialize=True, ignored_inputs=("x",))},
    ),
    (
        "cache",
        {"serialize": False, "ignored_inputs": []},
        {"cache": Cache(version="1", serialize=True, ignored_inputs=("x",))},
        {"cache": Cache(version="1")},
    ),
    (
        "cache",
        {"cache": False},
        {"cache": Cache(version="1", serialize=True, ignored_inputs=("x",))},
        {"cache": False, "cache_version": "1"},
    ),
    (
        "cache",
        {"cache": True},
        {"cache": False, "cache_version": "1"},
        {"cache": Cache(version="1")},
    ),
    ("cache", {"version": "2"}, {}, {}),
]


@pytest.mark.parametrize(("use", "given", "author", "expected"), METADATA)
def test_metadata(
    flyte: Any,
    configure: Callable[[str], Any],
    use: str,
    given: dict[str, Any],
    author: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    as_written = flyte.template_of(task(**author)(work))
    wanted = flyte.template_of(task(**expected)(work))
    configure(f"chains: {{default: {{steps: [{{use: {use}, with: {json.dumps(given)}}}]}}}}")
    found = flyte.template_of(task(**author)(work))
    assert bare(found) == bare(wanted)
    assert undo(as_json(found)) == (as_json(as_written), [])


CONFIGS: dict[str, Any] = {
    "pytorch": ({"replicas": 7}, torch(3), torch(7)),
    "pytorch: no worker": ({"replicas": 0}, torch(3), torch(0)),
    "pytorch: policy": (
        {"set": {"runPolicy": {"backoffLimit": 3, "cleanPodPolicy": "CLEANPOD_POLICY_ALL"}}},
        torch(3, ttl_seconds_after_finished=60),
        torch(
            3,
            ttl_seconds_after_finished=60,
            backoff_limit=3,
            clean_pod_policy=CleanPodPolicy.ALL,
        ),
    ),
    "pytorch: less policy": (
        {"remove": ["runPolicy.backoffLimit"]},
        torch(3, ttl_seconds_after_finished=60, backoff_limit=3),
        torch(3, ttl_seconds_after_finished=60),
    ),
    "elastic": (
        {"replicas": 8, "set": {"elasticConfig": {"nprocPerNode": 4}}},
        elastic(nnodes=4),
        elastic(nnodes=8, nproc_per_node=4),
    ),
    "elastic: a range": (
        {"min_replicas": 2, "max_replicas": 6},
        elastic(nnodes=4),
        elastic(nnodes="2:6"),
    ),
    "elastic: the least": ({"min_replicas": 1}, elastic(nnodes="2:6"), elastic(nnodes="1:6")),
    "mpi": ({"replicas": 4}, mpi(2), mpi(4)),
    "mpi: slots": ({"replicas": 4, "set": {"slots": 3}}, mpi(2, 2), mpi(4, 3)),
    "horovod": (
        {"replicas": 4, "set": {"slots": 3}},
        mpi(2, 2, HorovodJob),
        mpi(4, 3, HorovodJob),
    ),
    "tensorflow": ({"replicas": 4}, tf(2, 1), tf(4, 1)),
    "tensorflow: ps": ({"replicas": 3, "role": "ps"}, tf(2, 1), tf(2, 3)),
    "ray": ({"replicas": 4}, ray(("g", 2, None, None)), ray(("g", 4, None, None))),
    "ray: a range stays": ({"replicas": 4}, ray(("g", 2, 1, 8)), ray(("g", 4, 1, 8))),
    "ray: a range grows": ({"replicas": 9}, ray(("g", 2, 1, 8)), ray(("g", 9, 1, 8))),
    "ray: one group": (
        {"replicas": 4, "role": "worker:h"},
        ray(("g", 2, None, None), ("h", 1, None, None)),
        ray(("g", 2, None, None), ("h", 4, None, None)),
    ),
    "ray: autoscaling": (
        {"max_replicas": 8, "set": {"rayCluster": {"enableAutoscaling": True}}},
        ray(("g", 2, None, None)),
        ray(("g", 2, None, 8), enable_autoscaling=True),
    ),
    "ray: fields": (
        {
            "set": {
                "ttlSecondsAfterFinished": 60,
                "shutdownAfterJobFinishes": True,
                "rayCluster": {"headGroupSpec": {"rayStartParams": {"m": "2", "n": None}}},
            }
        },
        ray(("g", 2, None, None)),
        ray(
            ("g", 2, None, None),
            start={"m": "2"},
            ttl_seconds_after_finished=60,
            shutdown_after_job_finishes=True,
        ),
    ),
    "dask": ({"replicas": 5}, dask(2), dask(5)),
    "spark: hadoop": (
        {"set": {"hadoopConf": {"fs.a": "b"}}, "remove": ["hadoopConf.fs.c"]},
        Spark(hadoop_conf={"fs.c": "d"}),
        Spark(hadoop_conf={"fs.a": "b"}),
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_task_config(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any], name: str
) -> None:
    given, author, expected = CONFIGS[name]
    check_config(flyte, zoo, configure, "task_config", given, author, expected)


@pytest.mark.parametrize(
    ("given", "author", "expected"),
    [
        (
            {"set": {"spark.executor.instances": 8}, "remove": ["spark.a"]},
            {"spark.a": "b", "spark.executor.instances": "2", "spark.c": "d"},
            {"spark.executor.instances": "8", "spark.c": "d"},
        ),
        ({"set": {"spark.a": True}}, {}, {"spark.a": "true"}),
        ({"remove": ["spark.a", "spark.b"]}, {"spark.a": "b"}, {}),
    ],
)
def test_spark_conf(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    given: dict[str, Any],
    author: dict[str, str],
    expected: dict[str, str],
) -> None:
    old, new = Spark(spark_conf=author), Spark(spark_conf=expected)
    check_config(flyte, zoo, configure, "spark_conf", given, old, new)


def check_config(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    use: str,
    given: dict[str, Any],
    author: Any,
    expected: Any,
) -> None:
    def make(config: Any) -> Any:
        with zoo.torch_can_be_imported():
            return task(task_config=config)(work)

    as_written, wanted = (flyte.template_of(make(config)) for config in (author, expected))
    configure(f"chains: {{default: {{steps: [{{use: {use}, with: {json.dumps(given)}}}]}}}}")
    found = flyte.template_of(make(author))
    assert bare(found) == bare(wanted)
    assert bare(found) != bare(as_written)
    assert undo(as_json(found)) == (as_json(as_written), [])


# nodes, which flytekit makes before the chain runs -----------------------------------------------


def shard(x: int) -> int:
    return x


def flow_of(**of_task: Any) -> Any:
    train, part = task(**of_task)(work), task(**of_task)(shard)

    @workflow
    def flow(x: int, xs: list[int]) -> int:
        call: Any = train
        map_task(part)(x=xs)
        call(x=x).with_overrides(
            node_name="own", retries=9, timeout=timedelta(seconds=7), interruptible=False
        )
        call(x=x).with_overrides(node_name="big", limits=Resources(cpu="2"))
        result: int = call(x=x)
        return result

    return flow


def metadata_of(flyte: Any, flow: Any) -> dict[str, Any]:
    spec = flyte.serialize(flow)[flow].to_flyte_idl()
    return {
        node.id + node.metadata.name: as_json(node.metadata)
        for node in task_nodes(spec.template.nodes)
    }


CHANGES: list[Any] = [
    ({}, {"retries": 4, "timeout": 60, "interruptible": True}),
    (
        {"retries": 2, "timeout": 90, "interruptible": True},
        {"retries": 4, "timeout": 60, "interruptible": None},
    ),
    (
        {"retries": 2, "timeout": 90, "interruptible": True},
        {"retries": 0, "timeout": 0, "interruptible": None},
    ),
]


def chain_of(changes: dict[str, Any]) -> str:
    steps = [{"use": use, "with": {use: value}} for use, value in changes.items()]
    return json.dumps({"chains": {"default": {"steps": steps}}})


@pytest.mark.parametrize(("author", "changes"), CHANGES)
def test_nodes_follow_their_task(
    flyte: Any, configure: Callable[[str], Any], author: dict[str, Any], changes: dict[str, Any]
) -> None:
    flow = flow_of(**author)
    as_written, wanted = metadata_of(flyte, flow), metadata_of(flyte, flow_of(**changes))
    configure(chain_of(changes))
    assert metadata_of(flyte, flow) == wanted
    configure("chains: {default: {steps: [{use: labels, with: {set: {a: b}}}]}}")
    assert metadata_of(flyte, flow) == as_written  # what flytekit shares is not changed
    assert wanted["ownwork"] == {
        "name": "work",
        "retries": {"retries": 9},
        "timeout": "7s",
        "interruptible": False,
    }


@pytest.mark.parametrize(("author", "changes"), CHANGES)
def test_nodes_of_a_package_follow_their_task(
    flyte: Any, configure: Callable[[str], Any], author: dict[str, Any], changes: dict[str, Any]
) -> None:
    flow, config = flow_of(**author), configure(chain_of(changes))
    directly = flyte.serialize(flow)
    config.unlink()
    registered = flyte.serialize(flow)
    for _ in range(2):  # a tailored package is tailored from what the author wrote
        entities = Entities(
            [m.to_flyte_idl() for m in registered.values() if isinstance(m, TaskSpec)],
            [registered[flow].to_flyte_idl()],
        )
        tailor = Tailor.find(configure(chain_of(changes)), environ={})
        assert tailor is not None
        list(entities.tailor(tailor, Report()))
        assert as_json(entities.workflows[0]) == as_json(directly[flow].to_flyte_idl())
        registered = directly
    entities = Entities(
        [m.to_flyte_idl() for m in directly.values() if isinstance(m, TaskSpec)],
        [directly[flow].to_flyte_idl()],
    )
    none = Tailor.find(configure("chains: {default: {steps: []}}"), environ={})
    assert none is not None
    list(entities.tailor(none, Report()))
    config.unlink()
    assert as_json(entities.workflows[0]) == as_json(flyte.serialize(flow)[flow].to_flyte_idl())


# what there is to set --------------------------------------------------------------------------

MESSAGES = {
    "dask": dask_pb2.DaskJob,
    "mpi": mpi_pb2.DistributedMPITrainingTask,
    "pytorch": pytorch_pb2.DistributedPyTorchTrainingTask,
    "ray": ray_pb2.RayJob,
    "spark": spark_pb2.SparkJob,
    "tensorflow": tensorflow_pb2.DistributedTensorflowTrainingTask,
}


def check_fields(fields: Any, descriptor: Any) -> None:
    by_name = {field.json_name: field for field in descriptor.fields}
    for name, wanted in fields.items():
        field = by_name[name]
        if wanted is STRINGS:
            assert field.message_type.GetOptions().map_entry
        elif isinstance(wanted, tuple):
            assert wanted == tuple(value.name for value in field.enum_type.values)
        elif isinstance(wanted, type):
            types = {int: field.CPPTYPE_INT32, bool: field.CPPTYPE_BOOL, str: field.CPPTYPE_STRING}
            assert field.cpp_type == types[wanted]
        else:
            check_fields(wanted, field.message_type)


@pytest.mark.parametrize("kind", FIELDS)
def test_the_fields_of_a_task_config_are_flytes(kind: str) -> None:
    check_fields(FIELDS[kind], MESSAGES[kind].DESCRIPTOR)
