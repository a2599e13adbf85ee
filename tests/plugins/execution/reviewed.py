"""The workflow of which `real` was an execution."""

from __future__ import annotations

from typing import Any

import flytekit
from flytekit import (
    ContainerTask,
    LaunchPlan,
    PodTemplate,
    Resources,
    dynamic,
    kwtypes,
    map_task,
    task,
)
from flytekit.extras.accelerators import A100
from flytekitplugins.dask import Dask, Scheduler, WorkerGroup
from flytekitplugins.kfmpi import Launcher, MPIJob
from flytekitplugins.kfmpi import Worker as MPIWorker
from flytekitplugins.kfpytorch import Master, PyTorch, Worker
from flytekitplugins.kftensorflow import PS, Chief, TfJob
from flytekitplugins.kftensorflow import Worker as TFWorker
from flytekitplugins.ray import HeadNodeConfig, RayJobConfig, WorkerNodeConfig
from kubernetes.client import (
    V1Container,
    V1EnvVar,
    V1PodSpec,
    V1ResourceRequirements,
    V1Toleration,
)

workflow: Any = flytekit.workflow  # what it makes of a function no type checker knows

IMAGE = "example.com/train:1"
SMALL = Resources(cpu="1", mem="1Gi")
TWO = Resources(cpu="4", mem="16Gi", gpu="2")
ONE = Resources(cpu="2", mem="8Gi", gpu="1")


@task(
    container_image=IMAGE,
    requests=SMALL,
    labels={"team": "speech"},
    annotations={"note": "x"},
    environment={"A": "1"},
)
def prepare(n: int) -> list[int]:
    return list(range(n))


@task(
    container_image=IMAGE,
    requests=TWO,
    limits=TWO,
    accelerator=A100.unpartitioned,
    retries=2,
    cache=True,
    cache_version="1.0",
    interruptible=True,
)
def train(x: int) -> int:
    return x


@task(container_image=IMAGE, requests=Resources(cpu="1", mem="2Gi"))
def shard(i: int) -> int:
    return i


@task(
    container_image=IMAGE,
    pod_template=PodTemplate(
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
            tolerations=[V1Toleration(key="x", operator="Exists")],
        ),
    ),
)
def with_sidecar(x: int) -> int:
    return x


@task(container_image=IMAGE, pod_template_name="team-template", requests=SMALL)
def named_template(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    task_config=PyTorch(master=Master(), worker=Worker(replicas=3)),
    requests=TWO,
    limits=TWO,
)
def torch_job(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    task_config=MPIJob(launcher=Launcher(replicas=1), worker=MPIWorker(replicas=2)),
    requests=TWO,
    limits=TWO,
)
def mpi_job(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    task_config=TfJob(chief=Chief(replicas=1), ps=PS(replicas=1), worker=TFWorker(replicas=2)),
    requests=SMALL,
)
def tf_job(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "1"}),
        worker_node_config=[
            WorkerNodeConfig(group_name="gpu", replicas=2, requests=ONE, limits=ONE)
        ],
    ),
    requests=Resources(cpu="1", mem="2Gi"),
)
def ray_job(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    task_config=Dask(
        scheduler=Scheduler(),
        workers=WorkerGroup(number_of_workers=2, limits=Resources(cpu="1", mem="2Gi")),
    ),
    requests=SMALL,
)
def dask_job(x: int) -> int:
    return x


raw = ContainerTask(
    name=f"{__name__}.raw",
    image="example.com/raw:1",
    input_data_dir="/in",
    output_data_dir="/out",
    inputs=kwtypes(x=int),
    outputs=kwtypes(y=int),
    command=["sh", "-c", "echo {{.inputs.x}}"],
    requests=SMALL,
)


@dynamic(container_image=IMAGE, requests=SMALL)
def fan_out(n: int) -> int:
    found: Any = train(x=n)
    return found  # type: ignore[no-any-return]  # a promise


@workflow
def inner(x: int) -> int:
    found: Any = train(x=x)
    return found  # type: ignore[no-any-return]  # a promise


child = LaunchPlan.get_or_create(workflow=inner, name=f"{__name__}.child")


@workflow
def everything(x: int = 3) -> int:
    xs: Any = prepare(n=x)
    map_task(shard)(i=xs)
    four = Resources(gpu="4")
    trained: Any = train(x=x)
    trained.with_overrides(node_name="big", requests=four, limits=four)
    with_sidecar(x=x)
    named_template(x=x)
    torch_job(x=x)
    mpi_job(x=x)
    tf_job(x=x)
    ray_job(x=x)
    dask_job(x=x)
    raw(x=x)
    fan_out(n=x)
    inner(x=x)
    child(x=x)
    return trained  # type: ignore[no-any-return]  # a promise
