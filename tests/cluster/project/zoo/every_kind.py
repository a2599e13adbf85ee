"""A task of every kind that the stack has a plugin for. Its pods need not run to be looked at."""

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
from flytekit.extras.accelerators import A100
from flytekitplugins.dask import Dask, Scheduler, WorkerGroup
from flytekitplugins.kfmpi import Launcher, MPIJob
from flytekitplugins.kfmpi import Worker as MPIWorker
from flytekitplugins.kfpytorch import Master, PyTorch
from flytekitplugins.kfpytorch import Worker as TorchWorker
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

IMAGE = "example.com/train:1"
SMALL = Resources(cpu="1", mem="1Gi")
GPUS = Resources(cpu="4", mem="16Gi", gpu="2")


@task(
    container_image=IMAGE,
    requests=SMALL,
    labels={"stage": "prepare"},
    annotations={"note": "first"},
    environment={"A": "1"},
)
def prepare(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    requests=GPUS,
    limits=GPUS,
    accelerator=A100.unpartitioned,
    retries=2,
    interruptible=True,
)
def train(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    pod_template=PodTemplate(
        primary_container_name="main",
        labels={"template": "own"},
        annotations={"template": "own"},
        pod_spec=V1PodSpec(
            containers=[
                V1Container(
                    name="main",
                    env=[V1EnvVar(name="B", value="2")],
                    resources=V1ResourceRequirements(limits={"cpu": "2", "memory": "2Gi"}),
                ),
                V1Container(name="sidecar", image="example.com/sidecar:1"),
            ],
            tolerations=[V1Toleration(key="own", operator="Exists")],
        ),
    ),
)
def with_sidecar(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    requests=GPUS,
    limits=GPUS,
    accelerator=A100.unpartitioned,
    task_config=PyTorch(master=Master(), worker=TorchWorker(replicas=2)),
)
def torch_job(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    requests=GPUS,
    limits=GPUS,
    accelerator=A100.unpartitioned,
    task_config=MPIJob(launcher=Launcher(replicas=1), worker=MPIWorker(replicas=2)),
)
def mpi_job(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    requests=SMALL,
    task_config=TfJob(chief=Chief(replicas=1), ps=PS(replicas=1), worker=TFWorker(replicas=2)),
)
def tf_job(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    requests=SMALL,
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "1"}),
        worker_node_config=[WorkerNodeConfig(group_name="cpu", replicas=2, requests=SMALL)],
    ),
)
def ray_job(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    requests=SMALL,
    task_config=Dask(scheduler=Scheduler(), workers=WorkerGroup(number_of_workers=2)),
)
def dask_job(x: int) -> int:
    return x


raw = ContainerTask(
    name="zoo.raw",
    image="example.com/raw:1",
    inputs=kwtypes(x=int),
    command=["sh", "-c", "echo {{.inputs.x}}"],
    requests=SMALL,
)


# It stays on a node that only says that it runs, so that it makes nothing.
@dynamic(container_image=IMAGE, requests=GPUS, limits=GPUS, accelerator=A100.unpartitioned)
def fan_out(x: int) -> int:
    return train(x=x)


@workflow
def inner(x: int) -> int:
    return train(x=x)


child = LaunchPlan.get_or_create(workflow=inner, name="zoo.child")


@workflow
def every_kind(x: int = 3) -> None:
    prepare(x=x)
    train(x=x).with_overrides(
        node_name="big", requests=Resources(gpu="4"), limits=Resources(gpu="4")
    )
    with_sidecar(x=x)
    torch_job(x=x)
    mpi_job(x=x)
    tf_job(x=x)
    ray_job(x=x)
    dask_job(x=x)
    raw(x=x)
    map_task(train)(x=[x, x])
    fan_out(x=x)
    inner(x=x)
    child(x=x)
