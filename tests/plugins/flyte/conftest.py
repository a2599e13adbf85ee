"""flytekit in this process, and pyflyte in another, in a folder of their own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ... import forks
from .flyteadmin import FlyteAdmin

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for `zoo`, and for `conftest` where no fixture reaches

CONFIG = """
chains:
  default:
    defaults:
      - use: priority_class
        with: {name: batch-low}
    steps:
      - use: tolerations
        with: {add: [{key: example.com/spot, operator: Exists, effect: NoSchedule}]}
      - use: node_selector
        with: {set: {example.com/pool: spot}}
      - use: labels
        with: {set: {team: speech}}
      - use: env
        with: {set: {NEW: "2"}}
"""
"""A chain that concerns every task."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; nothing of kubetailor or of a task pod is configured."""
    for name in os.environ:
        if name.startswith(("KUBETAILOR", "FLYTE")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def flyte() -> type[Flyte]:
    """flytekit in this process, pyflyte in another."""
    return Flyte


@pytest.fixture
def configure(folder: Path) -> Callable[[str], Path]:
    """Write ``kubetailor.yaml``."""

    def write(text: str) -> Path:
        path = folder / "kubetailor.yaml"
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture(scope="session")
def zoo() -> Iterator[ModuleType]:
    """The zoo, imported once: flytekit keeps every task that it has seen."""
    sys.path.insert(0, str(HERE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # flytekit's plugins warn of their own arguments
        yield importlib.import_module("zoo")
    sys.path.remove(str(HERE))


@pytest.fixture
def admin() -> Iterator[FlyteAdmin]:
    """A FlyteAdmin of this test's own."""
    with FlyteAdmin().running() as running:
        yield running


class Flyte:
    """What tests do with flytekit."""

    CONFIG = CONFIG

    @staticmethod
    def serialize(*entities: Any, fast: bool = False, **ids: Any) -> OrderedDict[Any, Any]:
        """flytekit's serialization of entities: entity -> model."""
        from flytekit.configuration import (
            FastSerializationSettings,
            ImageConfig,
            SerializationSettings,
        )
        from flytekit.tools import translator

        given: dict[str, Any] = {
            "project": "speech",
            "domain": "development",
            "version": "v1",
            **ids,
        }
        settings = SerializationSettings(
            ImageConfig.auto_default_image(),
            **given,
            fast_serialization_settings=FastSerializationSettings(
                enabled=fast, destination_dir="/root", distribution_location="s3://b/code.tgz"
            )
            if fast
            else None,
        )
        mapping: OrderedDict[Any, Any] = OrderedDict()
        for entity in entities:
            translator.get_serializable(mapping, settings, entity)
        return mapping

    @staticmethod
    def templates(mapping: OrderedDict[Any, Any]) -> dict[str, Any]:
        """The task templates of a serialization, as messages, by task name."""
        from flytekit.models.task import TaskSpec

        specs = (spec for spec in mapping.values() if isinstance(spec, TaskSpec))
        return {spec.template.id.name: spec.template.to_flyte_idl() for spec in specs}

    @staticmethod
    def template_of(entity: Any, **ids: Any) -> Any:
        """The template of one task, as a message."""
        (found,) = Flyte.templates(Flyte.serialize(entity, **ids)).values()
        return found

    @staticmethod
    def protobufs(mapping: OrderedDict[Any, Any]) -> list[bytes]:
        """Every entity of a serialization that is registered, as bytes."""
        from flytekit.tools.serialize_helpers import _should_register_with_admin

        return [
            model.to_flyte_idl().SerializeToString(deterministic=True)
            for model in mapping.values()
            if _should_register_with_admin(model)
        ]

    @staticmethod
    def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment that the tests run in, with flytekit imported before."""
        program = Path(sys.executable).with_name(command[0])
        return forks.run(program, *command[1:], cwd=cwd, env=Flyte.environ(**env))

    @staticmethod
    def start(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command as `run` does, but in a new process: where the import is what is tested."""
        program = Path(sys.executable).with_name(command[0])
        return subprocess.run(
            [str(program), *command[1:]],
            cwd=cwd,
            env=Flyte.environ(**env),
            capture_output=True,
            text=True,
            check=False,
        )

    @staticmethod
    def environ(**env: str) -> dict[str, str]:
        """The environment of a command: nothing of kubetailor or flytekit but what is given."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KUBETAILOR", "FLYTE"))}
        return {**kept, "COLUMNS": "400", "FLYTE_SDK_LOGGING_LEVEL": "50", **env}
