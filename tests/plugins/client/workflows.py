"""Workflows to launch."""

from __future__ import annotations

from typing import Any

from flytekit import Resources, task, workflow
from flytekit.extras.accelerators import A100

__all__ = ["fit", "prepare", "small", "train"]

IMAGE = "registry.example.com/speech:1"


@task(container_image=IMAGE, cache=True, cache_version="1")
def prepare(x: int) -> int:
    return x


@task(container_image=IMAGE, requests=Resources(gpu="2"), accelerator=A100, retries=2)
def fit(x: int) -> int:
    return x


@workflow
def train(x: int) -> int:
    found: Any = fit(x=prepare(x=x))
    return found  # type: ignore[no-any-return]  # a promise


@workflow
def small(x: int) -> int:
    found: Any = prepare(x=x)
    return found  # type: ignore[no-any-return]  # a promise
