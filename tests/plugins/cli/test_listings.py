from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from .conftest import Run, Write

Install = Callable[[str, str, str], None]

TEAM = '''\
from typing import Any, Literal

from kubetailor.registry import Kind, Pod, PodPath, TaskContext, hookimpl, transformer


@transformer
def spot(
    pod: Pod, task: TaskContext, *, pool: str, share: dict[str, Any] | None = None,
    effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule",
) -> None:
    """Let the task run on spot nodes.

    They are cheap.

    Args:
        pod: the pod.
        task: the task.
        pool: which nodes:
            a label's value.
        effect: the taint's effect.
    """


@hookimpl
def register_kinds(register):
    register(Kind("Trainer", "acme.io", (PodPath("trainer", "spec.template"),), queue=True))


@hookimpl
def register_accelerators(register):
    register("acme-1", {
        "resource": "acme.io/gpu",
        "node_selector": {"acme.io/chip": "one"},
        "node_requirements": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
    })
    register("acme-2", {"resorce": "acme.io/gpu"})
'''


@pytest.fixture
def team(write: Write) -> None:
    write("kubetailor.yaml", "plugins: [./team.py]\nchains: {default: {}}\n")
    write("team.py", TEAM)


def rows(run: Run, *args: str) -> Any:
    result = run(*args, "-o", "json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_plugins_with_origin_hooks_and_transformers(
    run: Run, team: None, distribution: Install
) -> None:
    distribution("acme-shared", "acme_shared", "")
    found = {row.pop("name"): row for row in rows(run, "plugins")}
    assert found["team"]["origin"].endswith("/team.py")
    assert found["team"] | {"origin": ""} == {
        "origin": "",
        "version": None,
        "hooks": ["register_accelerators", "register_kinds"],
        "transformers": ["team.spot"],
        "error": None,
    }
    assert found["acme_shared"]["origin"] == "acme-shared 1.2"
    assert found["acme_shared"]["version"] == "1.2"
    assert "labels" in found["kubetailor"]["transformers"]
    assert "register_commands" in found["flyte"]["hooks"]
    table = run("plugins").stdout
    assert "acme_shared" in table
    assert next(x.split()[-1] for x in table.splitlines() if x.startswith("team")) == "1"
    assert max(map(len, table.splitlines())) < 200  # not the name of every built-in


def test_broken_plugin_hides_no_other(run: Run, team: None, distribution: Install) -> None:
    distribution("acme-split", "acme_split", "1 / 0\n")
    result = run("plugins", "-o", "json")
    assert result.exit_code == 0
    assert "Warning: plugin 'acme_split': " in result.stderr
    found = {row["name"]: row for row in json.loads(result.stdout)}
    assert "ZeroDivisionError: division by zero" in found["acme_split"]["error"]
    assert found["team"]["transformers"] == ["team.spot"]
    assert "ZeroDivisionError" in run("plugins").stdout


def test_second_plugin_of_a_name_is_warned_of(run: Run, write: Write) -> None:
    write("kubetailor.yaml", "plugins: [./a/team.py, ./b/team.py]\n")
    write("a/team.py", "")
    write("b/team.py", "")
    assert "are both called 'team'" in run("plugins").stderr


def test_transformers_are_listed(run: Run, team: None) -> None:
    lines = run("transformers").stdout.splitlines()
    assert lines[0].split() == ["NAME", "PLUGIN", "SUMMARY"]
    assert [line.split()[0] for line in lines[1:]] == sorted(line.split()[0] for line in lines[1:])
    assert "Let the task run on spot nodes." in next(x for x in lines if x.startswith("team.spot"))
    assert [row["name"] for row in rows(run, "transformers")] == [x.split()[0] for x in lines[1:]]


def test_one_transformer_whole(run: Run, team: None) -> None:
    found = rows(run, "transformers", "team.spot")
    source = found.pop("source")
    assert source.endswith("/team.py:6")
    assert found == {
        "name": "team.spot",
        "plugin": "team",
        "receives": "pod",
        "description": "Let the task run on spot nodes.\n\nThey are cheap.",
        "parameters": [
            {
                "name": "pool",
                "type": "str",
                "required": True,
                "default": None,
                "description": "which nodes: a label's value.",
            },
            {
                "name": "share",
                "type": "dict[str, Any] | None",
                "required": False,
                "default": None,
                "description": "",
            },
            {
                "name": "effect",
                "type": "'NoSchedule' | 'NoExecute'",
                "required": False,
                "default": "NoSchedule",
                "description": "the taint's effect.",
            },
        ],
    }
    shown = run("transformers", "team.spot").stdout
    for text in ("They are cheap.", "required", '"NoSchedule"', "dict[str, Any] | None", source):
        assert text in shown


def test_unknown_transformer(run: Run) -> None:
    result = run("transformers", "labbels")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: no transformer 'labbels'; did you mean labels?")


def test_accelerators(run: Run, team: None) -> None:
    result = run("accelerators", "-o", "json")
    found = {row["name"]: row for row in json.loads(result.stdout)}
    assert found["acme-1"]["resource"] == "acme.io/gpu"
    assert found["acme-1"]["node_selector"] == {"acme.io/chip": "one"}
    assert "acme-2" not in found
    assert "Warning: accelerator 'acme-2': no field 'resorce'" in result.stderr
    assert all(row["pages"] for name, row in found.items() if not name.startswith("acme"))
    line = next(x for x in run("accelerators").stdout.splitlines() if x.startswith("acme-1"))
    assert line.split(maxsplit=2) == ["acme-1", "acme.io/gpu", "acme.io/chip=one, zone In (a, b)"]


def test_kinds(run: Run, team: None) -> None:
    found = {row["kind"]: row for row in rows(run, "kinds")}
    assert found["Trainer"] == {
        "group": "acme.io",
        "kind": "Trainer",
        "roles": ["trainer"],
        "queue": "metadata",
        "suspend": None,
        "primary": [],
        "ignored": [],
        "reads": None,
    }
    assert found["SparkApplication"]["roles"] == ["driver", "executor"]
    assert {"primary", "master", "worker", "submitter"} <= set(found["TaskTemplate"]["roles"])
    assert found["DaskJob"]["queue"] is None
    assert found["CronJob"]["queue"] == "spec.jobTemplate.metadata"
    assert found["RayService"]["suspend"] == "spec.rayClusterConfig.suspend"
    torch = found["PyTorchJob"]
    assert (torch["primary"], torch["ignored"]) == (
        ["pytorch"],
        ["restartPolicy", "hostnameOverride", "resources"],
    )
    assert torch["roles"] == ["master", "worker"]
    assert "tolerations" in found["SparkApplication"]["reads"]
    lines = {line.split()[0]: line for line in run("kinds").stdout.splitlines()}
    assert "acme.io" in lines["Trainer"]
    assert lines["PyTorchJob"].split() == [
        *("PyTorchJob", "kubeflow.org", "master,", "worker", "metadata"),
        "spec.runPolicy.suspend",
    ]


@pytest.mark.parametrize(("command", "most"), [("accelerators", 160), ("kinds", 180)])
def test_lists_are_not_wide(run: Run, command: str, most: int) -> None:
    assert max(map(len, run(command).stdout.splitlines())) <= most


def test_one_accelerator_whole(run: Run, team: None) -> None:
    result = run("accelerators", "acme-1")
    assert (result.exit_code, result.stderr) == (0, "")
    assert yaml.safe_load(result.stdout) == {
        "name": "acme-1",
        "resource": "acme.io/gpu",
        "node_selector": {"acme.io/chip": "one"},
        "node_requirements": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
    }
    assert rows(run, "accelerators", "acme-1")["device"] is None
    lines = run("accelerators").stdout.splitlines()
    cut = next(line.split()[0] for line in lines if line.endswith("…"))
    whole = rows(run, "accelerators", cut)
    values = whole["node_requirements"][-1]["values"]
    assert all(value in run("accelerators", cut).stdout for value in values)
    assert whole["name"] == cut


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nvidia-l5", "Error: no accelerator 'nvidia-l5'; did you mean nvidia-l4"),
        ("acme-2", "Error: accelerator 'acme-2': no field 'resorce'"),
    ],
)
def test_no_such_accelerator(run: Run, team: None, name: str, said: str) -> None:
    result = run("accelerators", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(said)


def test_one_kind_whole(run: Run, team: None) -> None:
    result = run("kinds", "PyTorchJob")
    assert (result.exit_code, result.stderr) == (0, "")
    assert yaml.safe_load(result.stdout) == {
        "group": "kubeflow.org",
        "kind": "PyTorchJob",
        "roles": ["master", "worker"],
        "queue": "metadata",
        "suspend": "spec.runPolicy.suspend",
        "primary": ["pytorch"],
        "ignored": ["restartPolicy", "hostnameOverride", "resources"],
    }
    assert rows(run, "kinds", "Trainer")["reads"] is None
    assert rows(run, "kinds", "Pod")["group"] == ""
    assert rows(run, "kinds", "Job.batch")["group"] == "batch"
    assert rows(run, "kinds", "Job.batch.volcano.sh")["group"] == "batch.volcano.sh"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("PytorchJob", "Error: no kind 'PytorchJob'; did you mean PyTorchJob"),
        ("Job", "Error: several kinds are called 'Job'; name one: Job.batch, Job.batch.volcano.sh"),
        ("Job.apps", "Error: no kind 'Job.apps'; "),
    ],
)
def test_no_such_kind(run: Run, name: str, said: str) -> None:
    result = run("kinds", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(said)


@pytest.mark.parametrize("command", ["plugins", "transformers", "accelerators", "kinds", "schema"])
def test_config_that_cannot_be_read(run: Run, write: Write, command: str) -> None:
    write("kubetailor.yaml", "chains: [\n")
    result = run(command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert "kubetailor.yaml:2:1: not YAML" in result.stderr
