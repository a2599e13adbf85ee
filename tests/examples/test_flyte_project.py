"""The Flyte project, with the real pyflyte and the real flytekit plugins."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from flyteidl.admin import launch_plan_pb2, task_pb2, workflow_pb2
from flytekit import Resources, task
from flytekit.configuration import ImageConfig, SerializationSettings
from flytekit.models.task import TaskSpec
from flytekit.tools.translator import get_serializable
from google.protobuf.json_format import MessageToDict

from kubetailor.workloads import diff

from .conftest import EXAMPLES, Run

IMAGE = "registry.example.com/speech:1"
CONFIG = "cluster/kubetailor.yaml"
KNOWN = "project=speech,domain=development"
STAMP, UNDO = "kubetailor.dev/applied", "kubetailor.dev/undo"
MESSAGES: dict[str, Any] = {
    "1": task_pb2.TaskSpec,
    "2": workflow_pb2.WorkflowSpec,
    "3": launch_plan_pb2.LaunchPlan,
}

# As pyflyte is without kubetailor: no entry point leads to it.
WITHOUT = """
import importlib.metadata, sys
def entry_points(_all=importlib.metadata.entry_points, **which):
    found = _all(**which)
    if which.get("group") != "flytekit.plugins":
        return found
    return [point for point in found if not point.value.startswith("kubetailor")]
importlib.metadata.entry_points = entry_points
from flytekit.clis.sdk_in_container.pyflyte import main
main(standalone_mode=False)
assert not any(name.startswith("kubetailor") for name in sys.modules)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, with the config where it is not found but has to be named.

    flytekit writes the working directory into dynamic tasks, so all packages are made in this one.
    """
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(EXAMPLES / "flyte-project", folder, dirs_exist_ok=True)
    (folder / "cluster").mkdir()
    (folder / "kubetailor.yaml").rename(folder / CONFIG)
    return folder


@pytest.fixture(scope="module")
def plain(python: Run, project: Path) -> Path:
    """The project as flytekit packages it where kubetailor is not installed."""
    arguments = package("plain.tgz")[1:]
    python("-c", WITHOUT, *arguments, cwd=project)
    return project / "plain.tgz"


@pytest.fixture(scope="module")
def tailored(run: Run, project: Path) -> Path:
    run(*package("tailored.tgz"), cwd=project, KUBETAILOR_CONFIG=CONFIG, KUBETAILOR_TASK=KNOWN)
    return project / "tailored.tgz"


def package(output: str) -> list[str]:
    return ["pyflyte", "--pkgs", "speech", "package", "--image", IMAGE, "--output", output]


def entities(path: Path) -> dict[str, Any]:
    """The messages in a package, by file name."""
    found: dict[str, Any] = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            data = archive.extractfile(member)
            assert data is not None
            message = MESSAGES[member.name.removesuffix(".pb")[-1]]()
            message.ParseFromString(data.read())
            found[member.name] = message
    return found


def contents(path: Path) -> dict[str, bytes]:
    """The same as bytes, with maps in one order."""
    return {
        name: message.SerializeToString(deterministic=True)
        for name, message in entities(path).items()
    }


def tasks(path: Path) -> dict[str, dict[str, Any]]:
    """The task templates of a package in JSON form, by the last part of their names."""
    templates = [
        MessageToDict(message.template)
        for message in entities(path).values()
        if isinstance(message, task_pb2.TaskSpec)
    ]
    return {template["id"]["name"].rpartition(".")[2]: template for template in templates}


def labels(template: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = template["metadata"]["metadata"].get("labels", {})
    return found


def test_without_a_config_nothing_changes(run: Run, project: Path, plain: Path) -> None:
    run(*package("installed.tgz"), cwd=project)
    assert contents(project / "installed.tgz") == contents(plain)


def test_with_an_empty_chain_nothing_changes(run: Run, project: Path, plain: Path) -> None:
    (project / "cluster" / "empty.yaml").write_text("chains: {default: {}}\n")
    run(*package("empty.tgz"), cwd=project, KUBETAILOR_CONFIG="cluster/empty.yaml")
    assert contents(project / "empty.tgz") == contents(plain)


def test_a_package_comes_out_the_same_whenever_the_chain_runs(
    run: Run, project: Path, plain: Path, tailored: Path
) -> None:
    given = {"KUBETAILOR_CONFIG": CONFIG, "KUBETAILOR_TASK": KNOWN}
    command = ("kubetailor", "flyte", "package")
    run(*command, plain.name, "-o", "later.tgz", cwd=project, **given)
    assert contents(project / "later.tgz") == contents(tailored)
    run(*command, tailored.name, "-o", "twice.tgz", cwd=project, **given)
    assert contents(project / "twice.tgz") == contents(tailored)


def test_every_task_is_tailored_and_nothing_else(plain: Path, tailored: Path) -> None:
    before, after = contents(plain), contents(tailored)
    assert before.keys() == after.keys()
    changed = {name for name, data in before.items() if after[name] != data}
    assert changed == {name for name in before if name.endswith("_1.pb")}  # the tasks


def test_what_becomes_of_the_tasks(tailored: Path) -> None:
    found = tasks(tailored)
    for name, template in found.items():
        spec = template["k8sPod"]["podSpec"]
        assert labels(template)["acme.example.com/cost-centre"] == "speech", name
        assert spec["priorityClassName"] == "batch-low", name
        asks = name in ("fit", "fit_by_hand", "fit_distributed", "finetune")
        assert (spec["nodeSelector"].get("acme.example.com/pool") == "spot") is not asks, name
    queued = {name for name, t in found.items() if "kueue.x-k8s.io/queue-name" in labels(t)}
    assert queued == {"fit_distributed", "finetune", "tune"}
    sidecar = found["align"]["k8sPod"]["podSpec"]["containers"][1]
    assert sidecar == {"name": "dictionary", "image": "registry.example.com/dictionary:3"}


def test_the_chain_of_production(run: Run, project: Path, plain: Path) -> None:
    known = ("--task", "project=speech", "--task", "domain=production")
    command = ("kubetailor", "flyte", "package", plain.name, "-o", "production.tgz", *known)
    run(*command, "--config", CONFIG, cwd=project)
    found = tasks(project / "production.tgz")
    assert labels(found["tune"])["kueue.x-k8s.io/queue-name"] == "speech-production"
    assert "nodeSelector" not in found["prepare"]["k8sPod"]["podSpec"]


def test_without_project_and_domain_the_package_is_not_written(run: Run, project: Path) -> None:
    run(*package("unknown.tgz"), cwd=project, status=1, KUBETAILOR_CONFIG=CONFIG)
    assert not (project / "unknown.tgz").exists()


# --------------------------------------------------------------------------------- the pod of #475


def fit(rows: int) -> int:
    return rows


def template_of(entity: Any) -> dict[str, Any]:
    settings = SerializationSettings(
        ImageConfig.auto(img_name=IMAGE), project="speech", domain="development", version="1"
    )
    spec = get_serializable(OrderedDict(), settings, entity)
    assert isinstance(spec, TaskSpec)
    template: dict[str, Any] = MessageToDict(spec.to_flyte_idl().template)
    return template


def without_traces(template: dict[str, Any]) -> dict[str, Any]:
    """A template without stamp and undo."""
    found: dict[str, Any] = json.loads(json.dumps(template))
    places = (found["metadata"]["metadata"], found["k8sPod"]["metadata"])
    assert any(STAMP in place.get("annotations", {}) for place in places)
    for place in places:
        if place.get("annotations", {}).pop(STAMP, None) and not place["annotations"]:
            del place["annotations"]
    del found["config"][UNDO]
    return found


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_two_steps_make_the_pod_that_was_written_by_hand(
    count: int, site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.syspath_prepend(str(EXAMPLES / "flyte-project"))
    from speech.a100 import a100_pod  # type: ignore[import-not-found]  # it is on the path from here on

    gpus = Resources(gpu=str(count))
    by_hand = task(fit, pod_template=a100_pod(count))
    wanted = template_of(by_hand)
    resources = wanted["k8sPod"]["podSpec"]["containers"][0]["resources"]
    assert resources["requests"]["cpu"] == str(12 * count - 1)
    assert resources["limits"]["memory"] == f"{85 * count - 5}G"

    monkeypatch.setenv("KUBETAILOR_CONFIG", str(EXAMPLES / "flyte-project" / "kubetailor.yaml"))
    monkeypatch.setenv("KUBETAILOR_CHAIN", "gpus")
    assert diff(wanted, template_of(by_hand)) == []  # the steps have nothing to add to it
    found = template_of(task(fit, requests=gpus, limits=gpus))
    # FlytePropeller sets it on containers of its own alone: a pod by hand goes without.
    wanted["k8sPod"]["podSpec"]["containers"][0]["terminationMessagePolicy"] = (
        "FallbackToLogsOnError"
    )
    assert diff(wanted, without_traces(found)) == []
