"""What every test has: settings of hypothesis, and the strategies that several of them use."""

from __future__ import annotations

import os

import hypothesis

pytest_plugins = ["kubetailor.registry.testing"]

hypothesis.settings.register_profile(
    "default", max_examples=60, deadline=None, print_blob=True, database=None
)
hypothesis.settings.register_profile(
    "ci", parent=hypothesis.settings.get_profile("default"), derandomize=True
)
# pytest --hypothesis-profile=thorough
hypothesis.settings.register_profile(
    "thorough", parent=hypothesis.settings.get_profile("default"), max_examples=1000
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")
