"""A workflow with a task of every kind. It is imported as `zoo`, so that is what its tasks say."""

# flytekit's annotations do not describe what a call in a workflow returns.
# mypy: disable-error-code="no-any-return"
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false, reportReturnType=false

import contextlib
import sys
import types
from collections.abc import Generator
from typing import Any
from unittest import mock

from flytekit import (
    ContainerTask,
    LaunchPlan,
    PodTemplate,
    Resources,
    dynamic,
    kwtypes,
    map_task,
    task,
    workflow,
)
from flytekit.extras.accelerators import A100, T4
from flytekitplugins.dask import Dask, Scheduler, WorkerGroup
from flytekitplugins.kfmpi import Launcher, MPIJob
from flytekitplugins.kfmpi import Worker as MPIWorker
from flytekitplugins.kfpytorch import Elastic, Master, PyTorch, Worker
from flytekitplugins.kftensorflow import PS, Chief, TfJob
from flytekitplugins.kftensorflow import Worker as TFWorker
from flytekitplugins.pod import Pod
from flytekitplugins.ray import HeadNodeConfig, RayJobConfig, WorkerNodeConfig
from flytekitplugins.spark import Spark
from kubernetes.client import (
    V1Container,
    V1EnvVar,
    V1PodSpec,
    V1ResourceRequirements,
    V1Toleration,
)


@contextlib.contextmanager
def torch_can_be_imported() -> Generator[None]:
    """Elastic asks for little more than that (`from torch.distributed import run`)."""
    stand_in = types.ModuleType("torch.distributed")
    vars(stand_in)["run"] = types.SimpleNamespace(parse_min_max_nnodes=_range)
    with mock.patch.dict(sys.modules, {stand_in.__name__: stand_in}):
        yield


def _range(nnodes: str) -> tuple[int, int]:
    least, _, most = nnodes.partition(":")
    return int(least), int(most or least)


IMG = "example.com/train:1"
CPU: dict[str, Any] = {"requests": Resources(cpu="1", mem="1Gi")}
GPU: dict[str, Any] = {
    "requests": Resources(cpu="4", mem="16Gi", gpu="2"),
    "limits": Resources(cpu="4", mem="16Gi", gpu="2"),
}


def sidecar_template() -> PodTemplate:
    return PodTemplate(
        primary_container_name="main",
        labels={"pt": "1"},
        annotations={"pa": "1"},
        pod_spec=V1PodSpec(
            containers=[
                V1Container(
                    name="main",
                    env=[V1EnvVar(name="B", value="2")],
                    resources=V1ResourceRequirements(limits={"cpu": "2", "memory": "2Gi"}),
                ),
                V1Container(name="sidecar", image="example.com/s:1"),
            ],
            # A tuple, which the client keeps.
            tolerations=(V1Toleration(key="x", operator="Exists"),),
            termination_grace_period_seconds=30,
        ),
    )


@task(
    container_image=IMG,
    **CPU,
    labels={"team": "vision"},
    annotations={"note": "x"},
    environment={"A": "1", "EMPTY": ""},
)
def prepare(n: int) -> list[int]:
    return list(range(n))


@task(
    container_image=IMG,
    **GPU,
    accelerator=A100.unpartitioned,
    retries=2,
    cache=True,
    cache_version="1.0",
    interruptible=True,
    timeout=90,
)
def train(x: int) -> int:
    return x


@task(container_image=IMG, **CPU)
def shard(i: int) -> int:
    return i


@task(container_image=IMG, **CPU, pod_template=sidecar_template())
def with_sidecar(x: int) -> int:
    return x


@task(container_image=IMG, **CPU, pod_template_name="team-template", shared_memory=True)
def named_template(x: int) -> int:
    return x


@task(
    container_image=IMG,
    **CPU,
    task_config=Pod(
        primary_container_name="main",
        labels={"pod": "1"},
        pod_spec=V1PodSpec(containers=[V1Container(name="main")]),
    ),
)
def pod_plugin(x: int) -> int:
    return x


@task(
    container_image=IMG,
    task_config=PyTorch(
        master=Master(),
        worker=Worker(replicas=3, limits=Resources(gpu="1")),
        increase_shared_mem=False,
    ),
    **GPU,
)
def torch_job(x: int) -> int:
    return x


with torch_can_be_imported():

    @task(container_image=IMG, task_config=Elastic(nnodes=1, increase_shared_mem=False), **GPU)
    def elastic_one(x: int) -> int:
        return x

    @task(container_image=IMG, task_config=Elastic(nnodes=4, increase_shared_mem=False), **GPU)
    def elastic_many(x: int) -> int:
        return x


@task(
    container_image=IMG,
    task_config=MPIJob(launcher=Launcher(replicas=1), worker=MPIWorker(replicas=2)),
    **GPU,
)
def mpi_job(x: int) -> int:
    return x


@task(
    container_image=IMG,
    task_config=TfJob(chief=Chief(replicas=1), ps=PS(replicas=1), worker=TFWorker(replicas=2)),
    **CPU,
)
def tf_job(x: int) -> int:
    return x


@task(
    container_image=IMG,
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "1"}),
        worker_node_config=[
            WorkerNodeConfig(
                group_name="gpu",
                replicas=2,
                requests=Resources(cpu="2", mem="8Gi", gpu="1"),
                limits=Resources(cpu="2", mem="8Gi", gpu="1"),
            )
        ],
    ),
    **CPU,
)
def ray_job(x: int) -> int:
    return x


@task(
    container_image=IMG,
    task_config=Dask(
        scheduler=Scheduler(),
        workers=WorkerGroup(number_of_workers=2, limits=Resources(cpu="1", mem="2Gi")),
    ),
    **CPU,
)
def dask_job(x: int) -> int:
    return x


@task(
    container_image=IMG,
    task_config=Spark(spark_conf={"spark.driver.memory": "1g", "spark.executor.instances": "2"}),
    **CPU,
)
def spark_job(x: int) -> int:
    return x


raw = ContainerTask(
    name="zoo.raw",
    image="example.com/raw:1",
    input_data_dir="/in",
    output_data_dir="/out",
    metadata_format=ContainerTask.MetadataFormat.JSON,
    inputs=kwtypes(x=int),
    outputs=kwtypes(y=int),
    command=["sh", "-c", "echo {{.inputs.x}}"],
    **CPU,
)


@dynamic(container_image=IMG, **CPU)
def fan_out(n: int) -> int:
    return train(x=n)


@workflow
def inner(x: int) -> int:
    return train(x=x)


child = LaunchPlan.get_or_create(workflow=inner, name="zoo.child")


@workflow
def everything(x: int = 3) -> int:
    xs = prepare(n=x)
    map_task(shard)(i=xs)
    big = Resources(gpu="4")
    t = train(x=x).with_overrides(node_name="big", requests=big, limits=big, accelerator=T4)
    with_sidecar(x=x)
    named_template(x=x)
    pod_plugin(x=x)
    torch_job(x=x)
    elastic_one(x=x)
    elastic_many(x=x)
    mpi_job(x=x)
    tf_job(x=x)
    ray_job(x=x)
    dask_job(x=x)
    spark_job(x=x)
    raw(x=x)
    fan_out(n=x)
    inner(x=x)
    child(x=x)
    return t


@workflow
def overridden(x: int = 3) -> int:
    """Nodes that give their tasks another pod."""
    xs = prepare(n=x)
    map_task(shard)(i=xs).with_overrides(pod_template=sidecar_template())
    torch_job(x=x).with_overrides(node_name="torch", pod_template=sidecar_template())
    return train(x=x).with_overrides(node_name="train", pod_template=sidecar_template())
