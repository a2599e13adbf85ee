"""FlyteAdmin, or what stands in for it, as flytekit's own commands and FlytePropeller use it.

The rules of the stand-in have their tests beside them, in Go. What is here holds for a real
FlyteAdmin too.
"""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from flytekit.core.options import Options
from flytekit.exceptions.user import FlyteInvalidInputException
from flytekit.models.common import Annotations, Labels
from flytekit.models.core.execution import WorkflowExecutionPhase

from .stack.client import Client
from .stack.core import Core
from .stack.flyte import start_flyteadmin
from .stack.process import StackError, free_port, wait_for
from .stack.pyflyte import PROJECT, Pyflyte
from .stack.s3 import S3

DOMAIN: Final = "staging"  # other tests are in development
NAMESPACE: Final = f"{PROJECT}-{DOMAIN}"
SOURCE: Final = """
from flytekit import Annotations, Labels, LaunchPlan, Resources, task, workflow

@task(container_image="example.com/one:1", requests=Resources(cpu="100m", mem="100Mi"))
def one(x: int) -> int:
    return x + 1

@workflow
def inner(x: int) -> int:
    return one(x=x)

child = LaunchPlan.get_or_create(
    workflow=inner, name="admin_project.child", labels=Labels({"child": "own"})
)

@workflow
def outer(x: int = 3) -> tuple[int, int]:
    return child(x=x), inner(x=x)

planned = LaunchPlan.get_or_create(
    workflow=outer,
    name="admin_project.planned",
    default_inputs={"x": 5},
    labels=Labels({"from": "plan", "only-plan": "yes"}),
    annotations=Annotations({"from": "plan", "only-plan": "yes"}),
)
"""
IMAGE: Final = "example.com/one:1"
SYSTEM: Final = ("domain", "execution-id", "project", "shard-key", "workflow-name")


@pytest.fixture(scope="module")
def project(pyflyte: Pyflyte, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registered project; the folder that it is in."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "admin_project.py").write_text(SOURCE)
    register(pyflyte, folder)
    return folder


@pytest.fixture(scope="module")
def remote(pyflyte: Pyflyte, project: Path) -> Any:
    """flytekit's client."""
    return pyflyte.remote(DOMAIN)


@pytest.fixture(scope="module")
def launched(remote: Any, client: Client) -> Iterator[dict[str, Any]]:
    """Executions by name, for what looks at them; they end with the module."""
    made: dict[str, Any] = {}
    yield made
    for execution in made.values():
        if not remote.sync_execution(execution).is_done:
            remote.terminate(execution, "the test is over")


def register(pyflyte: Pyflyte, folder: Path) -> str:
    return pyflyte(
        *("register", "--project", PROJECT, "--domain", DOMAIN, "--version", "v1"),
        *("--destination-dir", ".", "admin_project.py"),
        folder=folder,
    )


def run(pyflyte: Pyflyte, folder: Path, *words: str) -> str:
    return pyflyte(
        *("run", "--remote", "--project", PROJECT, "--domain", DOMAIN, "--destination-dir", "."),
        *words,
        folder=folder,
    )


def pods(client: Client, execution: str) -> list[Any]:
    """The pods of an execution alone: a child has its parent's `execution-id`."""
    return [
        pod
        for pod in client.list("v1", "Pod", NAMESPACE)
        if pod["metadata"]["ownerReferences"][0]["name"] == execution
    ]


def only_pod(client: Client, execution: str) -> Any:
    wait_for(f"the pod of {execution}", lambda: pods(client, execution))
    (pod,) = pods(client, execution)
    return pod


def flyte_workflow(client: Client, execution: Any) -> Any:
    return client.get("flyte.lyft.com/v1alpha1", "FlyteWorkflow", NAMESPACE, execution.id.name)


def users(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in SYSTEM}


# a real one ------------------------------------------------------------------------------------


def test_a_real_one_is_told_of_the_cluster_and_the_bucket_and_waited_for(
    core: Core, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("KUBETAILOR_FLYTEADMIN", f"localhost:{port}")
    file = core.folder / "real-flyteadmin.yaml"
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        found = pool.submit(start_flyteadmin, core, s3, stack)
        wait_for("its config", file.exists)
        told = yaml.safe_load(file.read_text())
        assert Client(Path(told["server"]["kube-config"])).raw("GET", "/readyz") == "ok"
        assert told["storage"]["stow"]["config"]["endpoint"] == s3.url
        assert told["storage"]["container"] == s3.bucket
        assert not found.done()
        with socket.create_server(("127.0.0.1", port)):
            assert found.result(60) == f"localhost:{port}"


# registration ----------------------------------------------------------------------------------


def test_the_same_version_is_registered_again_without_a_word(
    pyflyte: Pyflyte, project: Path, remote: Any
) -> None:
    assert "Successfully registered" in register(pyflyte, project)

    assert remote.fetch_task(name="admin_project.one", version="v1").id.version == "v1"
    assert remote.fetch_task(name="admin_project.one").id.name == "admin_project.one"
    assert remote.fetch_workflow(name="admin_project.outer", version="v1").id.version == "v1"
    plan = remote.fetch_launch_plan(name="admin_project.planned", version="v1")
    assert plan.labels.values["from"] == "plan"


def test_another_structure_of_a_version_is_refused(
    pyflyte: Pyflyte, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "admin_project.py").write_text(SOURCE.replace(IMAGE, "example.com/two:1"))

    with pytest.raises(StackError, match="task with different structure already exists"):
        register(pyflyte, tmp_path)


# execution -------------------------------------------------------------------------------------


def test_a_task_is_run_from_code_that_was_uploaded(
    pyflyte: Pyflyte, client: Client, remote: Any, project: Path, launched: dict[str, Any]
) -> None:
    run(
        pyflyte,
        project,
        *("--name", "admin-task", "--labels", "a=b", "--annotations", 'c={"d": 1}'),
        *("admin_project.py", "one", "--x", "4"),
    )
    launched["admin-task"] = remote.fetch_execution(name="admin-task")

    pod = only_pod(client, "admin-task")
    metadata = pod["metadata"]
    assert metadata["name"] == "admin-task-adminprojectone-0"
    assert metadata["labels"]["a"] == "b"
    assert metadata["labels"]["workflow-name"] == "flytegen-admin-project-one"
    assert metadata["annotations"]["c"] == '{"d": 1}'
    words = pod["spec"]["containers"][0]["args"]
    code = words[words.index("--additional-distribution") + 1]
    signed = remote.client.get_download_signed_url(code).signed_url
    with urllib.request.urlopen(signed, timeout=10) as bundle:
        assert bundle.read(2) == b"\x1f\x8b"  # gzip


def test_a_subworkflow_and_a_child_execution(
    pyflyte: Pyflyte, client: Client, remote: Any, project: Path, launched: dict[str, Any]
) -> None:
    run(
        pyflyte,
        project,
        *("--name", "admin-outer", "--labels", "team=speech", "--annotations", "note=1"),
        *("admin_project.py", "outer"),
    )
    execution = launched["admin-outer"] = remote.fetch_execution(name="admin-outer")

    pod = only_pod(client, "admin-outer")
    assert pod["metadata"]["name"] == "admin-outer-n1-0-n0-0"

    def child_id() -> Any:
        nodes = remote.sync_execution(execution, sync_nodes=True).node_executions
        return nodes["n0"].closure.workflow_node_metadata.execution_id

    wait_for("the child execution", child_id)
    child = remote.fetch_execution(name=child_id().name)
    pod = only_pod(client, child.id.name)
    # The child's labels are its parent's, Flyte's own among them; its launch plan's are not there.
    labels = flyte_workflow(client, child)["metadata"]["labels"]
    assert users(labels) == {"team": "speech"}
    assert labels["execution-id"] == "admin-outer"
    assert labels["workflow-name"] == "admin-project-outer"
    assert pod["metadata"]["labels"]["team"] == "speech"
    assert pod["metadata"]["annotations"]["note"] == "1"


def test_terminated_relaunched_and_terminated(
    client: Client, remote: Any, project: Path, launched: dict[str, Any]
) -> None:
    plan = remote.fetch_launch_plan(name="admin_project.planned", version="v1")
    execution = remote.execute(plan, inputs={"x": 7}, execution_name="admin-stop")
    only_pod(client, "admin-stop")
    remote.terminate(execution, "enough")

    def phase(of: Any) -> int:
        return int(remote.client.get_execution(of.id).closure.phase)

    wait_for("the end", lambda: phase(execution) == WorkflowExecutionPhase.ABORTED)
    closure = remote.client.get_execution(execution.id).closure
    assert closure.abort_metadata.cause == "enough"
    wait_for("the end of its pod", lambda: not pods(client, "admin-stop"))

    again = remote.client.relaunch_execution(execution.id, name="admin-again")
    relaunched = launched["admin-again"] = remote.fetch_execution(name=again.name)
    only_pod(client, "admin-again")
    assert remote.sync_execution(relaunched).inputs == {"x": 7}
    names = {one.id.name for one in remote.recent_executions(limit=100)}
    assert {"admin-stop", "admin-again"} <= names


# labels and annotations ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "labels", "annotations"),
    [
        pytest.param(
            "admin-plan",
            None,
            {"from": "plan", "only-plan": "yes"},
            {"from": "plan", "only-plan": "yes"},
            id="the launch plan's",
        ),
        pytest.param(
            "admin-labels",
            Options(labels=Labels({"mine": "1"})),
            {"mine": "1"},
            {"from": "plan", "only-plan": "yes"},
            id="the request's labels, whole",
        ),
        pytest.param(
            "admin-annotations",
            Options(annotations=Annotations({"mine": "1"})),
            {"from": "plan", "only-plan": "yes"},
            {"mine": "1"},
            id="the request's annotations, whole",
        ),
    ],
)
def test_of_labels_and_annotations_the_strongest_source_counts(
    client: Client,
    remote: Any,
    launched: dict[str, Any],
    name: str,
    options: Options | None,
    labels: dict[str, str],
    annotations: dict[str, str],
) -> None:
    plan = remote.fetch_launch_plan(name="admin_project.planned", version="v1")
    execution = remote.execute(plan, inputs={}, execution_name=name, options=options)
    launched[name] = execution

    metadata = flyte_workflow(client, execution)["metadata"]
    assert users(metadata["labels"]) == labels
    assert metadata["annotations"] == annotations


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        pytest.param({f"k{i}": "v" for i in range(17)}, "cannot exceed 16 entries", id="17"),
        pytest.param({"a b": "c"}, "invalid label key", id="key"),
        pytest.param({"a": "{}"}, "invalid label value", id="value"),
    ],
)
def test_bad_labels_are_refused(remote: Any, labels: dict[str, str], message: str) -> None:
    plan = remote.fetch_launch_plan(name="admin_project.planned", version="v1")

    with pytest.raises(FlyteInvalidInputException, match=message):
        remote.execute(plan, inputs={}, options=Options(labels=Labels(labels)))


# what the cluster refuses ----------------------------------------------------------------------


def test_a_refused_launch_plan_has_failed_at_once(remote: Any) -> None:
    """Only Kubernetes looks at annotations."""
    plan = remote.fetch_launch_plan(name="admin_project.planned", version="v1")
    options = Options(annotations=Annotations({"no good": "1"}))
    execution = remote.execute(plan, inputs={}, options=options)

    closure = remote.client.get_execution(execution.id).closure
    assert closure.phase == WorkflowExecutionPhase.FAILED
    assert closure.error.message.startswith("failed to create workflow in propeller")
    assert "no good" in closure.error.message


def test_a_refused_task_fails_the_call(remote: Any) -> None:
    task = remote.fetch_task(name="admin_project.one", version="v1")
    options = Options(annotations=Annotations({"no good": "1"}))

    with pytest.raises(Exception, match="failed to create workflow in propeller"):
        remote.execute(task, inputs={"x": 1}, execution_name="admin-refused", options=options)
    with pytest.raises(Exception, match="admin-refused"):
        remote.fetch_execution(name="admin-refused")
