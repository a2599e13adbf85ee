"""One subworkflow in two uses, with a branch, a map and a dynamic task in it."""

from flytekit import Resources, conditional, dynamic, map_task, task, workflow

IMAGE = "example.com/train:1"
SMALL = Resources(cpu="1", mem="1Gi")


@task(container_image=IMAGE, requests=SMALL, retries=1)
def one(x: int) -> int:
    return x


@dynamic(container_image=IMAGE, requests=SMALL)
def fan_out(x: int) -> int:
    return one(x=x)


@workflow
def inner(x: int) -> None:
    one(x=x)
    map_task(one)(x=[1])
    conditional("choice").if_(x > 0).then(one(x=x)).else_().fail("no")


@workflow
def twice(x: int = 3) -> None:
    inner(x=x)
    inner(x=x)
    fan_out(x=x)
