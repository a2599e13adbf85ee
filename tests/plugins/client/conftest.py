"""A FlyteAdmin, what is registered with it, and commands that launch there."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flytekit.configuration import Config, ImageConfig, SerializationSettings
from flytekit.core.base_task import PythonTask
from flytekit.core.context_manager import FlyteEntities
from flytekit.core.launch_plan import LaunchPlan
from flytekit.remote import FlyteRemote

from kubetailor.plugins.cli.root import cli

from ..flyte.conftest import admin, configure, flyte, folder
from ..flyte.flyteadmin import FlyteAdmin

__all__ = ["admin", "configure", "flyte", "folder", "register", "remote_of"]


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # rich_click asks click for what is deprecated
    importlib.import_module("flytekit.interaction.click_types")


def remote_of(admin: FlyteAdmin) -> FlyteRemote:
    """flytekit's way to a FlyteAdmin."""
    return FlyteRemote(
        Config.for_endpoint(admin.endpoint, insecure=True),
        default_project="speech",
        default_domain="development",
    )


def register(remote: FlyteRemote, workflow: Any, version: str = "v1") -> None:
    """Register a workflow, launch plan or task with all that it uses, as pyflyte does."""
    place: dict[str, Any] = {"project": remote.default_project, "domain": remote.default_domain}
    settings = SerializationSettings(ImageConfig.auto_default_image(), **place, version=version)
    if isinstance(workflow, LaunchPlan):
        remote.register_launch_plan(workflow, version=version, serialization_settings=settings)
    elif isinstance(workflow, PythonTask):
        remote.register_task(workflow, settings, version)
    else:
        remote.register_workflow(workflow, settings, version)


@pytest.fixture
def remote(admin: FlyteAdmin) -> FlyteRemote:
    """flytekit's way to the FlyteAdmin of this test."""
    return remote_of(admin)


@pytest.fixture
def run(admin: FlyteAdmin, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command of kubetailor in this process."""
    monkeypatch.setenv("FLYTE_PLATFORM_URL", admin.endpoint)
    monkeypatch.setenv("FLYTE_PLATFORM_INSECURE", "true")

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(cli, list(arguments))

    return invoke


@pytest.fixture(autouse=True)
def entities() -> Iterator[None]:
    """flytekit's own lists, which keep all that was ever made, as they were before the test."""
    kept: Any = (list(FlyteEntities.entities), dict(LaunchPlan.CACHE))
    yield
    FlyteEntities.entities[:] = kept[0]
    LaunchPlan.CACHE.clear()
    LaunchPlan.CACHE.update(kept[1])
