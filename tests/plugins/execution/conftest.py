"""One real FlyteWorkflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

REVIEWS = Path(__file__).parent.parent / "webhook" / "reviews"


@pytest.fixture
def real() -> dict[str, Any]:
    """The FlyteWorkflow of one real execution, as FlyteAdmin made it."""
    review = json.loads((REVIEWS / "flyteworkflow.json").read_text())
    found: dict[str, Any] = review["request"]["object"]
    return found
