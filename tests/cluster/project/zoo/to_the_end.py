"""Workflows that run to their end: each task is plain Python."""

from flytekit import LaunchPlan, Resources, dynamic, map_task, task, workflow

IMAGE = "example.com/train:1"
SMALL = Resources(cpu="1", mem="1Gi")


@task(container_image=IMAGE, requests=SMALL, labels={"stage": "split", "team": "speech"})
def split(n: int) -> list[int]:
    return list(range(n))


@task(container_image=IMAGE, requests=SMALL)
def double(x: int) -> int:
    return 2 * x


@task(container_image=IMAGE, requests=SMALL)
def total(xs: list[int]) -> int:
    return sum(xs)


@dynamic(container_image=IMAGE, requests=SMALL)
def fan_out(xs: list[int]) -> int:
    return total(xs=[double(x=x) for x in xs])


@workflow
def mapped(n: int) -> list[int]:
    return map_task(double)(x=split(n=n))


@workflow
def inner(xs: list[int]) -> int:
    return total(xs=xs)


child = LaunchPlan.get_or_create(workflow=inner, name="zoo.to_the_end.child")


@workflow
def to_the_end(n: int = 2) -> tuple[int, int, int]:
    doubled = mapped(n=n)
    return fan_out(xs=doubled), inner(xs=doubled), child(xs=doubled)
