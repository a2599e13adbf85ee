"""`pyflyte register` and `pyflyte run --remote`, as installed, against a FlyteAdmin."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flyteidl.admin.task_pb2 import TaskSpec
from flyteidl.admin.workflow_pb2 import WorkflowSpec

from kubetailor.plugins.flyte.entities import task_nodes
from kubetailor.plugins.flyte.messages import as_json
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.undo import UNDO
from kubetailor.workloads import diff

from .flyteadmin import FlyteAdmin

HERE = Path(__file__).parent
WHERE = ("--project", "speech", "--domain", "development", "--image", "example.com/img:1")
Pyflyte = Callable[..., str]

SMALL = """
from flytekit import task, workflow

@task
def small(x: int) -> int:
    return x

@workflow
def wf(x: int) -> int:
    return small(x=x)
"""


def pyflyte(flyte: Any, admin: FlyteAdmin, folder: Path, *command: str) -> str:
    done = flyte.run(
        "pyflyte",
        *command,
        cwd=folder,
        FLYTE_PLATFORM_URL=admin.endpoint,
        FLYTE_PLATFORM_INSECURE="true",
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return str(done.stdout + done.stderr)


def unplaced(message: Any) -> dict[str, Any]:
    """A spec without what a package leaves to whoever registers it: project, domain and version.

    A dynamic task's environment has them too.
    """

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(item) for item in node]
        if not isinstance(node, dict):
            return node
        found = {key: walk(item) for key, item in node.items()}
        if "resourceType" in found:
            return {"name": found["name"]}
        if "_F_SS_C" in (found.get("name"), found.get("key")):
            return {**found, "value": "settings"}
        if STAMP in found:
            stamp = json.loads(found[STAMP])
            stamp["version"] = None
            found[STAMP] = stamp
        if UNDO in found:  # what it says of what was written has the stamp in it
            places = json.loads(found[UNDO]).items()
            found[UNDO] = walk({place: entry.get("old", "added") for place, entry in places})
        return found

    return dict(walk(as_json(message)))


def test_what_is_registered_is_what_is_packaged(
    flyte: Any, admin: FlyteAdmin, folder: Path, configure: Callable[[str], Path]
) -> None:
    shutil.copy(HERE / "zoo.py", folder)
    configure(flyte.CONFIG)
    said = pyflyte(
        flyte, admin, folder, "register", *WHERE, "--copy", "none", "--version", "v1", "zoo.py"
    )
    assert "Successfully registered" in said
    options = ("--image", "example.com/img:1", "--copy", "none", "-o", "p.tgz")
    pyflyte(flyte, admin, folder, "--pkgs", "zoo", "package", *options)
    packaged: dict[str, dict[str, Any]] = {"1": {}, "2": {}}
    kinds = {"1": TaskSpec, "2": WorkflowSpec}
    with tarfile.open(folder / "p.tgz") as archive:
        for info in archive:
            file = archive.extractfile(info)
            if file is not None and info.name[-4:-3] in kinds and info.name.endswith(".pb"):
                spec = kinds[info.name[-4]].FromString(file.read())
                packaged[info.name[-4]][spec.template.id.name] = unplaced(spec)
    for kind, registered in (("1", admin.tasks), ("2", admin.workflows)):
        assert {version for _, version in registered} == {"v1"}
        found = {name: unplaced(each.spec) for (name, _), each in registered.items()}
        assert found.keys() == packaged[kind].keys()
        for name, spec in found.items():
            assert diff(packaged[kind][name], spec) == [], name
    # And it is tailored, the pods that nodes give their tasks too.
    assert len(admin.tasks) > 15
    for (name, _), request in admin.tasks.items():
        template = as_json(request.spec.template)
        assert template["k8sPod"]["podSpec"]["priorityClassName"] == "batch-low", name
        stamp = json.loads(template["metadata"]["metadata"]["annotations"][STAMP])
        assert (stamp["task"], stamp["version"], stamp["done"]) == (name, "v1", 5)
    nodes = admin.workflows["zoo.overridden", "v1"].spec.template.nodes
    pods = [as_json(node.task_node.overrides.pod_template) for node in task_nodes(nodes)]
    assert len(pods) == 4
    assert [STAMP in pod.get("metadata", {}).get("annotations", {}) for pod in pods].count(
        True
    ) == 3


def test_fast_registration_gives_each_chain_a_version_of_its_own(
    flyte: Any, admin: FlyteAdmin, folder: Path, configure: Callable[[str], Path]
) -> None:
    (folder / "small.py").write_text(SMALL)
    chain = "chains: {default: {steps: [{use: priority_class, with: {name: %s}}]}}"
    for name in ("a", "b", "a"):
        # Not in the folder that is uploaded: the code is the same.
        (folder / ".config").mkdir(exist_ok=True)
        (folder / ".config" / "kubetailor.yaml").write_text(chain % name)
        done = flyte.run(
            *("pyflyte", "register", *WHERE, "--copy", "auto", "small.py"),
            cwd=folder,
            FLYTE_PLATFORM_URL=admin.endpoint,
            FLYTE_PLATFORM_INSECURE="true",
            KUBETAILOR_CONFIG=str(folder / ".config" / "kubetailor.yaml"),
        )
        assert done.returncode == 0, done.stderr + done.stdout
    assert len(admin.uploads) == 1
    specs = [
        as_json(request.spec.template)["k8sPod"]["podSpec"] for request in admin.tasks.values()
    ]
    assert [spec["priorityClassName"] for spec in specs] == ["a", "b"]
    (path,) = admin.uploads
    for spec in specs:
        args = spec["containers"][0]["args"]
        assert args[0] == "pyflyte-fast-execute"
        assert f"s3://bucket{path}" in args


def test_run_remote_launches_the_tailored_task(
    flyte: Any, admin: FlyteAdmin, folder: Path, configure: Callable[[str], Path]
) -> None:
    (folder / "small.py").write_text(SMALL)
    configure(flyte.CONFIG)
    pyflyte(flyte, admin, folder, "run", "--remote", *WHERE, "small.py", "wf", "--x", "3")
    (request,) = admin.tasks.values()
    template = as_json(request.spec.template)
    assert template["k8sPod"]["podSpec"]["nodeSelector"] == {"example.com/pool": "spot"}
    (execution,) = admin.executions
    launched = execution.spec.launch_plan
    assert (launched.name, launched.version) == ("small.wf", request.id.version)
    assert execution.inputs.literals["x"].scalar.primitive.integer == 3
