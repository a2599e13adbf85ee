"""The table of what the API server makes of steps' work is right: it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry.testing import TailorBench

from ..written_again import POD, STEPS, as_kept
from .stack.client import Client


@pytest.fixture(scope="module")
def place(client: Client) -> str:
    """A namespace."""
    return client.namespace("written-again")


@pytest.mark.parametrize(("use", "given", "kept"), STEPS.values(), ids=STEPS)
def test_the_api_server_agrees(
    client: Client, place: str, tmp_path: Path, use: str, given: Any, kept: Any
) -> None:
    bench = TailorBench(tmp_path)
    pod = {**POD, "metadata": {**POD["metadata"], "namespace": place}}
    written = bench.transform(use, pod, **given).after
    answer = client.create(written, dryRun="All", fieldValidation="Strict")
    assert as_kept(answer, kept) == answer
    bench.prove(use, answer, **given).assert_unchanged()
