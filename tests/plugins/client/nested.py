"""Workflows that use others, with a branch, a map, a child, a dynamic and an eager task."""

from __future__ import annotations

from typing import Any

import flytekit
from flytekit import LaunchPlan, Resources, conditional, dynamic, map_task
from flytekit.extras.accelerators import A100

__all__ = ["CHILD", "alone", "chased", "fit", "inner", "innermost", "lively", "outer"]

# What they make of a function no type checker knows.
task: Any = flytekit.task
workflow: Any = flytekit.workflow
as_eager: Any = flytekit.eager

IMAGE = "registry.example.com/speech:1"


@task(container_image=IMAGE, requests=Resources(gpu="1", cpu="2"), accelerator=A100, retries=2)
def fit(x: int) -> int:
    return x


@task(container_image=IMAGE, cache=True, cache_version="1")
def prepare(x: int) -> int:
    return x


@workflow
def innermost(x: int) -> int:
    found: Any = fit(x=x)
    return found  # type: ignore[no-any-return]  # a promise


@workflow
def inner(x: int) -> int:
    one: Any = innermost(x=prepare(x=x))
    return one  # type: ignore[no-any-return]  # a promise


@workflow
def outer(x: int, kind: str = "plain") -> int:
    """n0 and n1 use one subworkflow; n2 is a branch, n3 states its own GPUs."""
    one: Any = inner(x=x)
    two: Any = inner(x=one)
    begun: Any = conditional("q")
    three: Any = begun.if_(two > 1).then(fit(x=two)).else_().then(prepare(x=two))
    four: Any = fit(x=three).with_overrides(limits=Resources(gpu="4"))
    return four  # type: ignore[no-any-return]  # a promise


CHILD = LaunchPlan.get_or_create(innermost, name="speech.child", default_inputs={"x": 3})


@dynamic(container_image=IMAGE)
def spread(x: int) -> int:
    found: Any = fit(x=x)
    return found  # type: ignore[no-any-return]  # a promise


@as_eager(container_image=IMAGE)
async def chased(x: int) -> int:
    return x


@workflow
def alone(x: int) -> int:
    """n0 launches another execution."""
    found: Any = CHILD(x=prepare(x=x))
    return found  # type: ignore[no-any-return]  # a promise


@workflow
def lively(xs: list[int]) -> int:
    """A map and a dynamic task."""
    map_task(prepare)(x=xs)
    found: Any = spread(x=1)
    return found  # type: ignore[no-any-return]  # a promise
