"""What one execution may hold: nodes that say otherwise than their task, and graphs in graphs."""

import datetime as dt
import time

from flytekit import (
    LaunchPlan,
    PodTemplate,
    Resources,
    conditional,
    dynamic,
    map_task,
    task,
    workflow,
)
from flytekit.exceptions.user import FlyteRecoverableException
from flytekit.extras.accelerators import T4
from flytekitplugins.kfpytorch import Master, PyTorch, Worker
from kubernetes.client import V1Container, V1PodSpec, V1Toleration

IMAGE = "example.com/train:1"
SMALL = Resources(cpu="1", mem="1Gi")
GPU = Resources(cpu="4", mem="16Gi", gpu="1")
FOUR = Resources(gpu="4")
OWN_POD = PodTemplate(
    primary_container_name="main",
    labels={"template": "own"},
    pod_spec=V1PodSpec(
        containers=[V1Container(name="main"), V1Container(name="side", image="side:1")],
        tolerations=[V1Toleration(key="own", operator="Exists")],
    ),
)


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
def overridden(x: int = 3) -> None:
    train(x=x).with_overrides(node_name="plain")
    train(x=x).with_overrides(node_name="too")
    train(x=x).with_overrides(node_name="other-type", accelerator=T4)
    train(x=x).with_overrides(node_name="own-pod", pod_template=OWN_POD)
    train(x=x).with_overrides(node_name="four", requests=FOUR, limits=FOUR)
    torch_job(x=x).with_overrides(node_name="job", accelerator=T4)


@task(container_image=IMAGE, requests=SMALL, retries=3)
def flaky(x: int) -> int:
    if x:
        raise FlyteRecoverableException("try again")
    return x


@workflow
def flaky_map(x: int = 3) -> None:
    map_task(flaky)(x=[1])


@task(container_image=IMAGE, requests=SMALL, timeout=dt.timedelta(hours=1))
def slow(x: int) -> int:
    time.sleep(3600)
    return x


@task(container_image=IMAGE, requests=SMALL, labels={"team": "own"})
def one(x: int) -> int:
    return x


@task(container_image=IMAGE, requests=SMALL)
def other(x: int) -> int:
    return x


@dynamic(container_image=IMAGE, requests=SMALL)
def fan_out(x: int) -> int:
    return one(x=x)


@workflow
def inner(x: int = 3) -> int:
    return one(x=x)


child = LaunchPlan.get_or_create(workflow=inner, name="zoo.at_launch.child")


@workflow
def both(x: int = 3) -> None:
    one(x=x)
    other(x=x)


@workflow
def nested(x: int = 3) -> None:
    map_task(one)(x=[1, 2]).with_overrides(node_name="map")
    inner(x=x).with_overrides(node_name="sub")
    child(x=x).with_overrides(node_name="child")
    fan_out(x=x).with_overrides(node_name="dynamic")
    conditional("choice").if_(x > 0).then(one(x=x)).else_().then(other(x=x))
