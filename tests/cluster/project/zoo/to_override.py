"""Registered once: what executions change of it is in the tests."""

from flytekit import LaunchPlan, Resources, map_task, task, workflow
from flytekit.exceptions.user import FlyteRecoverableException
from flytekitplugins.kfpytorch import Master, PyTorch, Worker
from flytekitplugins.spark import Spark

IMAGE = "example.com/train:1"
SMALL = Resources(cpu="1", mem="1Gi")
GPU = Resources(cpu="4", mem="16Gi", gpu="1")


@task(container_image=IMAGE, requests=GPU, limits=GPU)
def train(x: int) -> int:
    return x


@task(
    container_image=IMAGE,
    requests=GPU,
    limits=GPU,
    task_config=PyTorch(master=Master(), worker=Worker(replicas=1)),
)
def torch_job(x: int) -> int:
    return x


@workflow
def training(x: int = 3) -> None:
    train(x=x).with_overrides(node_name="one")
    train(x=x).with_overrides(node_name="other")
    map_task(train)(x=[1, 2]).with_overrides(node_name="map")
    torch_job(x=x).with_overrides(node_name="job")


@workflow
def inner(x: int = 3) -> None:
    train(x=x).with_overrides(node_name="train")


child = LaunchPlan.get_or_create(workflow=inner, name="zoo.to_override.child")


@workflow
def nested(x: int = 3) -> None:
    train(x=x).with_overrides(node_name="train")
    inner(x=x).with_overrides(node_name="sub")
    child(x=x).with_overrides(node_name="child")


@task(
    container_image=IMAGE,
    requests=GPU,
    limits=GPU,
    task_config=PyTorch(master=Master(), worker=Worker(replicas=1)),
)
def queued_job(x: int) -> int:
    return x


@task(container_image=IMAGE, requests=SMALL, cache=True, cache_version="1")
def cached(x: int) -> int:
    return x


@task(container_image=IMAGE, requests=SMALL)
def flaky(x: int) -> int:
    if x:
        raise FlyteRecoverableException("try again")
    return x


@task(
    container_image=IMAGE,
    requests=SMALL,
    task_config=Spark(spark_conf={"spark.executor.instances": "2", "spark.executor.cores": "1"}),
)
def count(x: int) -> int:
    return x
