"""`kubetailor launch` and `override annotate`, against a FlyteAdmin."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from flytekit import LaunchPlan, task
from flytekit.models.common import Annotations
from flytekit.remote import FlyteRemote
from flytekit.types.directory import FlyteDirectory
from flytekit.types.file import FlyteFile

from kubetailor.plugins.client.inputs import read_inputs
from kubetailor.registry import KubetailorError, Override
from kubetailor.registry.overrides.document import OVERRIDE

from ..flyte.flyteadmin import FlyteAdmin
from . import workflows as _workflows

workflows: Any = _workflows
TRAIN = "speech/development/nightly"
FIT = f"{workflows.__name__}.fit"
H100 = ("--set", "gpu.type=nvidia-h100-80gb", "--on", "task=*.fit")
H100_STEP = {"use": "gpu", "when": {"task": "*.fit"}, "with": {"type": "nvidia-h100-80gb"}}

Run = Callable[..., Result]


@pytest.fixture
def registered(remote: FlyteRemote, configure: Callable[[str], Path], folder: Path) -> None:
    """A launch plan of two tasks, and a config."""
    configure("{phases: [launch], chains: {}}")
    (folder / "x.yaml").write_text("x: 3\n")
    nightly = LaunchPlan.get_or_create(
        workflows.train, "nightly", annotations=Annotations({"team": "speech"})
    )
    remote.register_launch_plan(nightly, version="v1")


def sent(admin: FlyteAdmin) -> dict[str, Any]:
    """The annotations of the only execution's request."""
    (request,) = admin.executions
    found = dict(request.spec.annotations.values)
    return {key: json.loads(text) if key == OVERRIDE else text for key, text in found.items()}


@pytest.mark.usefixtures("registered")
def test_a_launch_plan(run: Run, admin: FlyteAdmin) -> None:
    options = ("--annotation", "a=b", "--label", "c=d", "--name", "run1", "--overwrite-cache")
    done = run("launch", f"{TRAIN}@v1", "--inputs", "x.yaml", *H100, *options)
    assert done.exit_code == 0, done.output
    name, page = done.stdout.splitlines()
    assert name == "run1"
    assert page.endswith("/console/projects/speech/domains/development/executions/run1")
    assert sent(admin) == {"team": "speech", "a": "b", OVERRIDE: {"steps": [H100_STEP]}}
    (request,) = admin.executions
    assert request.inputs.literals["x"].scalar.primitive.integer == 3
    assert dict(request.spec.labels.values) == {"c": "d"}
    assert request.spec.overwrite_cache
    assert request.spec.launch_plan.name == "nightly"
    rows = [line.split() for line in done.stderr.splitlines() if FIT in line]
    assert rows == [["n1", FIT, "gpu", '{"type":', '"nvidia-h100-80gb"}']]


@pytest.mark.usefixtures("registered")
def test_without_an_override_the_launch_plans_annotations_hold(run: Run, admin: FlyteAdmin) -> None:
    done = run("launch", TRAIN, "--inputs", "x.yaml")
    assert done.exit_code == 0, done.output
    assert sent(admin) == {}


@pytest.mark.usefixtures("registered")
def test_a_task(run: Run, admin: FlyteAdmin) -> None:
    done = run("launch", f"speech/development/{FIT}", "--inputs", "x.yaml", *H100)
    assert done.exit_code == 0, done.output
    assert sent(admin) == {OVERRIDE: {"steps": [H100_STEP]}}
    assert admin.executions[0].spec.launch_plan.name == FIT


@pytest.mark.usefixtures("registered")
def test_a_dry_run_shows_every_node_and_launches_nothing(run: Run, admin: FlyteAdmin) -> None:
    done = run("launch", TRAIN, "--inputs", "x.yaml", *H100, "--dry-run")
    assert done.exit_code == 0, done.output
    assert f"--- n1 ({FIT}, registered)" in done.stdout
    assert "+      cloud.google.com/gke-accelerator: nvidia-h100-80gb" in done.stdout
    assert "prepare" not in done.stdout
    _, _, said = done.stdout.rpartition("annotations:\n")
    found = yaml.safe_load(said)
    assert found["team"] == "speech"
    assert json.loads(found[OVERRIDE]) == {"steps": [H100_STEP]}
    assert admin.executions == []


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("more", [(), ("--overwrite-cache",), ("--set", "cache.cache=false")])
def test_what_will_not_happen_is_said(run: Run, more: tuple[str, ...]) -> None:
    words = ("--set", "retries.retries=5", "--on", "task=*.prepare")
    done = run("launch", TRAIN, "--inputs", "x.yaml", *words, *more)
    assert done.exit_code == 0, done.output
    assert ("Note: node n0: its task is cached" in done.stderr) is not bool(more)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((TRAIN, "--set", "gpu.type=nvidia-h100-80gb", "--on", "task=*.fti"), FIT),
        ((TRAIN, "--set", "image.image=evil:1"), "image may not be overridden"),
        ((TRAIN, "--inputs", "no.yaml"), "no.yaml: No such file"),
        (("speech/development",), "PROJECT/DOMAIN/NAME"),
        (("speech/development/nightyl",), "nightyl"),
        ((f"{TRAIN}@v2",), "v2"),
        ((TRAIN, "--label", "a"), "expected KEY=VALUE"),
    ],
)
def test_a_fault_is_said_and_nothing_is_launched(
    run: Run, admin: FlyteAdmin, arguments: tuple[str, ...], said: str
) -> None:
    done = run("launch", *arguments)
    assert (done.exit_code, done.stdout, admin.executions) == (2, "", [])
    assert said in done.stderr


RULES = """
phases: [launch]
chains: {}
overridable:
  - {use: gpu, when: {project: speech, domain: production}}
  - {use: gpu, when: {project: speech, task: "*.fit"}, allow: {type: {in: [nvidia-h100-80gb]}}}
  - {use: labels, allow: {set: {pattern: "[a-z]+"}}}
  - {use: retries, allow: {retries: {max: 3}}}
"""


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("word", "rule", "said"),
    [
        ("gpu.type=nvidia-h100-80gb", None, ""),
        ("gpu.type=nvidia-l4", 6, "type: nvidia-l4; allowed: nvidia-h100-80gb"),
        ("retries.retries=4", 8, "retries: 4; allowed: at most 3"),
        ("labels.set.a=B", 7, "set: a: B; allowed: what matches [a-z]+"),
        ("env.set.A=b", 4, "env may not be overridden; allowed: gpu, labels, retries"),
    ],
)
def test_what_a_rule_refuses_is_refused_before_the_launch(
    run: Run,
    admin: FlyteAdmin,
    configure: Callable[[str], Path],
    word: str,
    rule: int | None,
    said: str,
) -> None:
    path = configure(RULES)
    done = run("launch", TRAIN, "--inputs", "x.yaml", "--set", word, "--on", "task=*.fit")
    if rule is None:
        assert (done.exit_code, len(admin.executions)) == (0, 1), done.output
        return
    assert (done.exit_code, admin.executions) == (2, [])
    assert said in done.stderr
    assert f"({path}:{rule}:" in done.stderr


@pytest.mark.usefixtures("registered")
def test_where_no_rule_is_about_a_task_it_is_named(
    run: Run, admin: FlyteAdmin, configure: Callable[[str], Path]
) -> None:
    configure(RULES.replace('"*.fit"', '"*.other"'))
    done = run("launch", TRAIN, "--inputs", "x.yaml", *H100)
    assert (done.exit_code, admin.executions) == (2, [])
    for part in ("node n1", 'only where {"project": "speech", "domain": "production"}', "*.other"):
        assert part in done.stderr, done.stderr


@pytest.mark.usefixtures("registered")
def test_what_flyteadmin_refuses_is_a_fault_of_its_own(run: Run, admin: FlyteAdmin) -> None:
    admin.refusal = "missing required input x"
    done = run("launch", TRAIN, *H100)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "missing required input x" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"Error: launch of {TRAIN}@v1: ")


@pytest.mark.usefixtures("configure")
def test_a_flyteadmin_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYTE_PLATFORM_URL", "127.0.0.1:1")
    done = run("launch", TRAIN, *H100)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "127.0.0.1:1" in done.stderr


def test_without_flytekit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubetailor.plugins.client.remote.find_spec", lambda _: None)
    done = run("launch", TRAIN, *H100)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "pip install 'kubetailor[flyte]'" in done.stderr


# inputs -------------------------------------------------------------------------------------------


@task(container_image="i:1")
def many(
    i: int, f: float, s: str, b: bool, n: list[int], m: dict[str, str], d: datetime, t: timedelta
) -> None:
    pass


@pytest.mark.parametrize(
    "written",
    [
        "{i: 3, f: 1, s: 1.10, b: false, n: [1, 2], m: {a: b}, d: 2026-01-02, t: 1h}",
        '{"i": "3", "f": 1.0, "s": "1.10", "b": false, "n": [1, 2], "m": {"a": "b"}, '
        '"d": "2026-01-02", "t": "1h"}',
    ],
)
def test_inputs_are_converted_as_pyflyte_does(
    remote: FlyteRemote, folder: Path, written: str
) -> None:
    (folder / "in.yaml").write_text(written)
    assert read_inputs(Path("in.yaml"), remote, many).values == {
        "i": 3,
        "f": 1.0,
        "s": "1.10",
        "b": False,
        "n": [1, 2],
        "m": {"a": "b"},
        "d": datetime(2026, 1, 2),
        "t": timedelta(hours=1),
    }


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("i: many", ["in.yaml: input 'i'", "many"]),
        ("{j: 1, k: 1}", ["in.yaml: no input 'j'", "in.yaml: no input 'k'"]),
        ("[1]", ["in.yaml:1:1: expected a map of inputs"]),
        ("i: [", ["in.yaml"]),
        ("m: 3", ["in.yaml: input 'm'"]),
    ],
)
def test_inputs_that_cannot_be_are_said(
    remote: FlyteRemote, folder: Path, written: str, said: list[str]
) -> None:
    (folder / "in.yaml").write_text(written)
    with pytest.raises(KubetailorError) as raised:
        read_inputs(Path("in.yaml"), remote, many)
    assert all(text in str(raised.value) for text in said), str(raised.value)


# override annotate --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "read"),
    [
        ("raw", lambda text: dict([text.rstrip("\n").split("=", 1)])),
        ("yaml", yaml.safe_load),
        ("json", json.loads),
    ],
)
def test_annotate_prints_what_a_client_sends(
    run: Run, configure: Callable[[str], Path], form: str, read: Callable[[str], Any]
) -> None:
    configure("chains: {}")
    done = run("override", "annotate", *H100, "-o", form)
    assert done.exit_code == 0, done.output
    found = read(done.stdout)
    assert found.keys() == {OVERRIDE}
    assert Override.parse(found[OVERRIDE]).steps[0].data == H100_STEP
    assert "gpu: " in done.stderr
    assert "kubetailor.yaml" in done.stderr


def test_annotate_refuses_what_the_config_does(run: Run, configure: Callable[[str], Path]) -> None:
    words = ("override", "annotate", "--set", "image.image=a:1")
    assert run(*words).exit_code == 0  # nothing says what may be
    path = configure("{chains: {}, overridable: [{use: gpu}]}")
    done = run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"image may not be overridden; allowed: gpu ({path}:1:" in done.stderr


def test_annotate_says_where_it_may_be(run: Run, configure: Callable[[str], Path]) -> None:
    entry = "{use: gpu, when: {domain: development}, allow: {type: null}}"
    configure(f"{{chains: {{}}, overridable: [{entry}, {{use: gpu, when: {{project: a}}}}]}}")
    done = run("override", "annotate", *H100)
    assert done.exit_code == 0, done.output
    assert 'gpu: only where {"domain": "development"} or {"project": "a"}\n' in done.stderr
    assert '{"domain"' not in run("override", "annotate", *H100, "--set", "gpu.count=2").stderr
    configure(f"{{chains: {{}}, overridable: [{entry}, {{use: gpu}}]}}")
    assert "only where" not in run("override", "annotate", *H100).stderr


def test_annotate_without_an_override(run: Run) -> None:
    done = run("override", "annotate")
    assert done.exit_code == 2
    assert "--override FILE or --set" in done.stderr


def _reads(file: Any, directory: Any) -> None:
    pass


_reads.__annotations__.update(file=FlyteFile, directory=FlyteDirectory)
reads: Any = task(_reads, container_image="i:1")


def test_files_that_are_there_are_not_copied(
    run: Run, remote: FlyteRemote, admin: FlyteAdmin, configure: Callable[[str], Path], folder: Path
) -> None:
    configure("{phases: [launch], chains: {}}")
    remote.register_task(reads, version="v1")
    (folder / "files.yaml").write_text("{file: s3://b/f, directory: s3://b/d}")
    done = run("launch", f"speech/development/{reads.name}", "--inputs", "files.yaml")
    assert done.exit_code == 0, done.output
    sent = admin.executions[0].inputs.literals
    assert sent["file"].scalar.blob.uri == "s3://b/f"
    assert sent["directory"].scalar.blob.uri == "s3://b/d"


def test_a_file_that_is_not_there_is_said(
    run: Run, remote: FlyteRemote, admin: FlyteAdmin, configure: Callable[[str], Path], folder: Path
) -> None:
    configure("{phases: [launch], chains: {}}")
    remote.register_task(reads, version="v1")
    (folder / "files.yaml").write_text("{file: /nowhere/f, directory: /nowhere/d}")
    done = run("launch", f"speech/development/{reads.name}", "--inputs", "files.yaml")
    assert done.exit_code == 2
    assert (
        "input 'file', FlyteFile: parameter should be a valid file path, /nowhere/f" in done.output
    )
    assert "input 'directory', FlyteDirectory: parameter should be a valid " in done.output
    assert admin.executions == []
