"""What an execution is asked for with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Request"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is said of one execution, besides its override.

    Attributes:
        annotations: its annotations; none for the launch plan's.
        labels: the same.
        inputs: its inputs, by name; the launch plan's stand for those not given. None if they are
            not known yet.
        overwrite_cache: cached results are not used, as with `--overwrite-cache`.
        project: where it runs; None where the project is not said.
        domain: the same.
    """

    annotations: Mapping[str, str] | None = None
    labels: Mapping[str, str] | None = None
    inputs: Mapping[str, Any] | None = None
    overwrite_cache: bool = False
    project: str | None = None
    domain: str | None = None
