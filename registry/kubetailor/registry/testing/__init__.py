"""For the tests of a team's plugin: an opt-in plugin of pytest with one fixture, `tailor`.

In a `conftest.py`::

    pytest_plugins = "kubetailor.registry.testing"

and in a test::

    def test_spot(tailor):
        outcome = tailor.prove(acme_platform.spot, POD, pool="spot")
        outcome.assert_changes({"spec.nodeSelector": {"example.com/pool": "spot"}})
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kubetailor.registry.fieldpath import ABSENT
from kubetailor.registry.testing.bench import ChainBench, TailorBench
from kubetailor.registry.testing.outcome import Outcome

__all__ = ["ABSENT", "ChainBench", "Outcome", "TailorBench", "tailor"]


@pytest.fixture
def tailor(tmp_path: Path) -> TailorBench:
    """Runs transformers and chains over objects, and proves what they promise."""
    return TailorBench(tmp_path)
