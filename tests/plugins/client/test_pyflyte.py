"""`pyflyte run --remote` with `--override`, `--set` and `--on`, against a FlyteAdmin."""

from __future__ import annotations

import importlib
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubetailor.plugins.client.pyflyte import install
from kubetailor.registry.overrides.document import OVERRIDE

from ..flyte.flyteadmin import FlyteAdmin

WHERE = ("--project", "speech", "--domain", "development")
FLOW = """
from flytekit import LaunchPlan, Resources, task, workflow
from flytekit.extras.accelerators import A100
from flytekit.models.common import Annotations

@task(container_image="i:1", requests=Resources(gpu="2"), accelerator=A100)
def fit(x: int) -> int:
    return x

@workflow
def train(x: int) -> int:
    return fit(x=x)

nightly = LaunchPlan.get_or_create(train, "nightly", annotations=Annotations({"team": "speech"}))
"""
H100 = ("--set", "gpu.type=nvidia-h100-80gb", "--on", "task=*.fit")
H100_STEP = {"use": "gpu", "when": {"task": "*.fit"}, "with": {"type": "nvidia-h100-80gb"}}

Pyflyte = Callable[..., Result]


@pytest.fixture
def flow(folder: Path, configure: Callable[[str], Path]) -> None:
    """A file to run, and a config."""
    (folder / "flow.py").write_text(FLOW)
    configure("{phases: [launch], chains: {}}")


@pytest.fixture
def pyflyte(flow: None, admin: FlyteAdmin, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pyflyte]:
    """`pyflyte run`, in this process."""
    monkeypatch.setenv("FLYTE_PLATFORM_URL", admin.endpoint)
    monkeypatch.setenv("FLYTE_PLATFORM_INSECURE", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # flytekit's own
        main = importlib.import_module("flytekit.clis.sdk_in_container.pyflyte").main
        yield lambda *words: CliRunner().invoke(main, ["run", *words], env={"COLUMNS": "400"})
    sys.modules.pop("flow", None)


def sent(admin: FlyteAdmin) -> dict[str, Any]:
    """The annotations of the last execution's request."""
    found = dict(admin.executions[-1].spec.annotations.values)
    return {key: json.loads(text) if key == OVERRIDE else text for key, text in found.items()}


def test_a_pyflyte_that_has_changed_goes_on_without_them(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flytekit").addHandler(caplog.handler)
    try:
        install(ModuleType("run"))
    finally:
        logging.getLogger("flytekit").removeHandler(caplog.handler)
    assert "pyflyte run has no --override" in caplog.text


def test_nothing_heavy_is_imported_for_them(flyte: Any, folder: Path) -> None:
    code = """
import sys
import flytekit
print(sorted(name for name in sys.modules if name.startswith("kubetailor.plugins.")))
from flytekit.clis.sdk_in_container import run
print([option for param in run.run.params for option in param.opts if option == "--override"])
print(sorted(name for name in sys.modules if name.startswith(("kubetailor.r", "kubetailor.w"))))
"""
    done = flyte.start(Path(sys.executable).name, "-c", code, cwd=folder)
    before, options, heavy = map(json.loads, done.stdout.replace("'", '"').splitlines())
    assert before == ["kubetailor.plugins.flyte", "kubetailor.plugins.flyte.install"]
    assert (options, heavy) == (["--override"], [])


def test_the_help_shows_them(pyflyte: Pyflyte) -> None:
    done = pyflyte("--help")
    assert done.exit_code == 0, done.stderr
    assert all(option in done.stdout for option in ("--override", "--set", "--on", "--labels"))


@pytest.mark.parametrize("entity", ["train", "fit", "nightly"])
def test_a_local_entity(pyflyte: Pyflyte, admin: FlyteAdmin, entity: str) -> None:
    done = pyflyte("--remote", *WHERE, *H100, "--annotations", "a=b", "flow.py", entity, "--x", "1")
    assert done.exit_code == 0, done.output
    own = {"team": "speech"} if entity == "nightly" else {}
    assert sent(admin) == {**own, "a": "b", OVERRIDE: {"steps": [H100_STEP]}}
    assert all(OVERRIDE not in each.spec.annotations.values for each in admin.launch_plans.values())
    before = len(admin.tasks), len(admin.workflows), len(admin.launch_plans)
    done = pyflyte("--remote", *WHERE, "flow.py", entity, "--x", "1")
    assert done.exit_code == 0, done.output
    assert sent(admin) == {}
    assert (len(admin.tasks), len(admin.workflows), len(admin.launch_plans)) == before


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("remote-launchplan", "nightly"),
        ("remote-workflow", "flow.train"),
        ("remote-task", "flow.fit"),
    ],
)
def test_what_is_registered(pyflyte: Pyflyte, admin: FlyteAdmin, group: str, name: str) -> None:
    for entity in ("nightly", "train"):
        assert pyflyte("--remote", *WHERE, "flow.py", entity, "--x", "1").exit_code == 0
    ((_, version),) = admin.tasks
    before = len(admin.tasks), len(admin.workflows), len(admin.launch_plans)
    options = ("--label", "a=b", "--overwrite-cache", "--name", "run1")
    done = pyflyte(*WHERE, *H100, *options, group, f"{name}:{version}", "--x", "2")
    assert done.exit_code == 0, done.output
    own = {"team": "speech"} if name == "nightly" else {}
    assert sent(admin) == {**own, OVERRIDE: {"steps": [H100_STEP]}}
    request = admin.executions[-1]
    assert (dict(request.spec.labels.values), request.name) == ({"a": "b"}, "run1")
    assert request.spec.overwrite_cache
    assert (len(admin.tasks), len(admin.workflows), len(admin.launch_plans)) == before


@pytest.mark.usefixtures("flow")
def test_a_file_in_a_process_of_its_own(flyte: Any, admin: FlyteAdmin, folder: Path) -> None:
    (folder / "h100.yaml").write_text(
        "steps:\n- {use: gpu, with: {type: nvidia-h100-80gb}, when: {task: '*.fit'}}\n"
    )
    options = ("--override", "h100.yaml", "--set", "retries.retries=3")
    done = flyte.run(
        *("pyflyte", "run", "--remote", *WHERE, *options, "flow.py", "train", "--x", "1"),
        cwd=folder,
        FLYTE_PLATFORM_URL=admin.endpoint,
        FLYTE_PLATFORM_INSECURE="true",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    retries = {"use": "retries", "with": {"retries": 3}}
    assert sent(admin) == {OVERRIDE: {"steps": [H100_STEP, retries]}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (H100, "add --remote"),
        (("--remote", "--set", "image.image=evil:1"), "image may not be overridden"),
        (("--remote", "--set", "gpu.tpye=x"), "no parameter 'tpye'"),
        (("--remote", "--override", "no.yaml"), "no.yaml: No such file"),
        (("--remote", "--on", "task=x"), "it says where --set holds"),
    ],
)
def test_a_fault_is_said_before_anything_is_registered(
    pyflyte: Pyflyte, admin: FlyteAdmin, options: tuple[str, ...], said: str
) -> None:
    done = pyflyte(*WHERE, *options, "flow.py", "train", "--x", "1")
    assert done.exit_code == 2
    assert said in " ".join((done.output).split())
    assert "Traceback" not in done.output
    assert (admin.tasks, admin.uploads, admin.executions) == ({}, {}, [])


@pytest.mark.parametrize("more", [(), ("--overwrite-cache",), ("--set", "cache.version=2")])
@pytest.mark.parametrize("entity", ["train", "fit"])
def test_a_cached_task_that_would_not_run_again_is_said(
    pyflyte: Pyflyte, folder: Path, entity: str, more: tuple[str, ...]
) -> None:
    cached = FLOW.replace("@task(", "@task(cache=True, cache_version='1', ")
    (folder / "flow.py").write_text(cached)
    done = pyflyte("--remote", *WHERE, *H100, *more, "flow.py", entity, "--x", "1")
    assert done.exit_code == 0, done.output
    assert ("its task is cached" in done.stderr) is not bool(more), done.stderr
    assert ("--overwrite-cache" in done.stderr) is not bool(more)


def test_no_plugin_slot_of_flytekits_is_taken(pyflyte: Pyflyte) -> None:
    from flytekit.configuration.plugin import FlytekitPlugin, get_plugin

    assert pyflyte("--help").exit_code == 0
    assert get_plugin() in (FlytekitPlugin, FlytekitPlugin())
    found = entry_points(group="flytekit.configuration.plugin")
    assert not [each for each in found if each.value.startswith("kubetailor")]


@pytest.mark.parametrize(("x", "status"), [("7", 0), ("8", 2)])
@pytest.mark.parametrize("entity", ["flow.py train", "remote-launchplan nightly"])
def test_the_inputs_choose(
    pyflyte: Pyflyte, admin: FlyteAdmin, entity: str, x: str, status: int
) -> None:
    assert pyflyte("--remote", *WHERE, "flow.py", "nightly", "--x", "1").exit_code == 0
    options = ("--remote", "--set", "gpu.type=nvidia-h100-80gb", "--on", "inputs.x=7")
    done = pyflyte(*WHERE, *options, *entity.split(), "--x", x)
    assert done.exit_code == status, done.output
    assert len(admin.executions) == (2 if status == 0 else 1)


@pytest.mark.parametrize("entity", ["train", "fit", "nightly"])
def test_an_override_that_matches_no_task_is_not_launched(
    pyflyte: Pyflyte, admin: FlyteAdmin, entity: str
) -> None:
    options = ("--remote", "--set", "gpu.type=nvidia-h100-80gb", "--on", "task=*.fti")
    done = pyflyte(*WHERE, *options, "flow.py", entity, "--x", "1")
    assert done.exit_code == 2
    assert "flow.fit" in done.output
    assert "Traceback" not in done.output
    assert admin.executions == []
