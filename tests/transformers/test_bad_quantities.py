"""What an author wrote and is no quantity is told with its field; nothing is cut."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubetailor.registry import StepError
from kubetailor.registry.testing import TailorBench

STEPS: list[tuple[str, dict[str, Any]]] = [
    ("gpu", {"type": "nvidia-h100-80gb"}),
    ("resource_caps", {"max": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}}),
    ("resources", {"requests": {"cpu": 1, "memory": "1Gi"}, "raise_limits": True}),
    ("shared_memory", {"size_limit": "1Gi"}),
]


def pod(resource: str, quantity: Any) -> Any:
    limits = {"limits": {resource: quantity}}
    container = {"name": "main", "image": "a:1", "resources": limits}
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}


@pytest.mark.parametrize(("use", "given"), STEPS, ids=[use for use, _ in STEPS])
@pytest.mark.parametrize("resource", ["cpu", "memory", "nvidia.com/gpu"])
@pytest.mark.parametrize(
    "quantity", ["", "x", "1e3Gi", "1 Gi", "1Gb", "1e400", "\uff11", True, [1]]
)
def test_its_field_is_told(
    tailor: TailorBench, use: str, given: Any, resource: str, quantity: Any
) -> None:
    said = told(tailor, use, pod(resource, quantity), given)
    assert not said or re.search(r" spec\.containers\b.*: .*is not a quantity", said)


def told(tailor: TailorBench, use: str, obj: Any, given: dict[str, Any]) -> str:
    """Why a step refuses an object; "" if it does not read what is wrong."""
    try:
        tailor.transform(use, obj, **given)
    except StepError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("use", ["gpu", "resource_caps"])
def test_one_that_is_read_is_never_passed_over(tailor: TailorBench, use: str) -> None:
    with pytest.raises(StepError, match="'x' is not a quantity"):
        tailor.transform(use, pod("nvidia.com/gpu", "x"), **dict(STEPS)[use])


def test_a_part_of_a_gpu_is_not_cut(tailor: TailorBench) -> None:
    with pytest.raises(StepError, match=r"nvidia\.com/gpu must be a whole number, found 1\.5"):
        tailor.transform("gpu", pod("nvidia.com/gpu", "1.5"), type="nvidia-h100-80gb")


@pytest.mark.parametrize("quantity", ["1e0", "1000m", "1.0", 1])
def test_one_gpu_is_one_however_it_is_written(tailor: TailorBench, quantity: Any) -> None:
    outcome = tailor.prove("gpu", pod("nvidia.com/gpu", quantity), type="nvidia-h100-80gb")
    assert outcome["spec.containers[main].resources.limits['nvidia.com/gpu']"] == quantity
