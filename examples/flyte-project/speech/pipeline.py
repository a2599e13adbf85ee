"""A pipeline with a task of each kind. None of them knows the cluster that it will run on."""

from flytekit import (
    ContainerTask,
    PodTemplate,
    Resources,
    dynamic,
    kwtypes,
    map_task,
    task,
    workflow,
)
from flytekitplugins.kfmpi import Launcher, MPIJob
from flytekitplugins.kfmpi import Worker as MPIWorker
from flytekitplugins.kfpytorch import Master, PyTorch, Worker
from flytekitplugins.ray import HeadNodeConfig, RayJobConfig, WorkerNodeConfig
from flytekitplugins.spark import Spark
from kubernetes.client import V1Container, V1PodSpec

from speech.a100 import a100_pod

SMALL = {"requests": Resources(cpu="1", mem="2Gi"), "limits": Resources(cpu="1", mem="2Gi")}


def gpus(count: int) -> dict[str, Resources]:
    return {"requests": Resources(gpu=str(count)), "limits": Resources(gpu=str(count))}


@task(**SMALL)
def prepare(hours: int) -> list[int]:
    """A plain Python task."""
    return list(range(hours))


@task(**SMALL)
def clean(shard: int) -> int:
    """Runs as a map task."""
    return shard


@task(
    pod_template=PodTemplate(
        primary_container_name="align",
        labels={"app": "aligner"},
        pod_spec=V1PodSpec(
            containers=[
                V1Container(name="align"),
                V1Container(name="dictionary", image="registry.example.com/dictionary:3"),
            ]
        ),
    ),
    **SMALL,
)
def align(shards: list[int]) -> int:
    """A pod template with a sidecar."""
    return len(shards)


@task(pod_template=a100_pod(gpus=4))
def fit_by_hand(rows: int) -> int:
    """Four A100, with the pod written by hand."""
    return rows


@task(**gpus(4))
def fit(rows: int) -> int:
    """Four A100, with the pod left to the platform: it comes out as that of `fit_by_hand`."""
    return rows


@task(
    task_config=PyTorch(master=Master(), worker=Worker(replicas=3), increase_shared_mem=False),
    **gpus(8),
)
def fit_distributed(rows: int) -> int:
    """A PyTorchJob: 32 A100 on four machines."""
    return rows


@task(
    task_config=MPIJob(launcher=Launcher(replicas=1), worker=MPIWorker(replicas=2)),
    **gpus(2),
)
def finetune(model: int) -> int:
    """An MPIJob."""
    return model


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "0"}),
        worker_node_config=[
            WorkerNodeConfig(
                group_name="search",
                replicas=4,
                requests=Resources(cpu="4", mem="16Gi"),
                limits=Resources(cpu="4", mem="16Gi"),
            )
        ],
    ),
    **SMALL,
)
def tune(model: int) -> int:
    """A RayJob with one group of workers."""
    return model


@task(task_config=Spark(spark_conf={"spark.executor.instances": "4"}), **SMALL)
def features(hours: int) -> int:
    """A SparkApplication."""
    return hours


score = ContainerTask(
    name="speech.score",
    image="registry.example.com/scorer:7",
    input_data_dir="/in",
    output_data_dir="/out",
    inputs=kwtypes(model=int),
    outputs=kwtypes(errors=int),
    command=["score", "{{.inputs.model}}"],
    **SMALL,
)


@dynamic(**SMALL)
def fit_each(rows: int) -> int:
    """A dynamic task; what it makes at run time is not in the package."""
    return fit(rows=rows)


@workflow
def train(hours: int = 1000) -> int:
    shards = map_task(clean)(shard=prepare(hours=hours))
    rows = align(shards=shards)
    features(hours=hours)
    fit_by_hand(rows=rows)
    fit_each(rows=rows)
    model = fit_distributed(rows=fit(rows=rows))
    return score(model=tune(model=finetune(model=model)))
