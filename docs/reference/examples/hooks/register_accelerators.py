"""A pool of GPUs that only this cluster has."""

from collections.abc import Callable, Mapping
from typing import Any

from kubetailor.registry import hookimpl


@hookimpl
def register_accelerators(register: Callable[[str, Mapping[str, Any]], None]) -> None:
    register(
        "h100-pool", {"extends": "nvidia-h100-80gb", "node_selector": {"example.com/pool": "h"}}
    )
