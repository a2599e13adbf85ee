"""`kubetailor explain TYPE/NAME`: objects as a real API server has them, and who is behind them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from kubetailor.plugins.cli.root import cli
from kubetailor.registry import Override

from ..docs.test_pages import CHECKOUT, blocks_of, run
from .conftest import MakeLauncher, MakeWebhook, RegisterOnce
from .objects import pod, pytorchjob
from .overridden import DOMAIN, NAMESPACE, ZOO, annotation
from .stack.client import Client
from .stack.core import Core
from .stack.kubectl import kubectl
from .stack.process import Process, wait_for
from .stack.pyflyte import PROJECT, Pyflyte

CONFIG: Final = """
phases: [launch, admit]
chains:
  default:
    defaults:
      - {use: priority_class, with: {name: system-node-critical}, when: {project: nobody}}
    steps:
      - {use: node_selector, with: {set: {example.com/pool: batch}}}
      - {name: by-rows, use: labels, with: {set: {size: small}}, when: {inputs: {x: "3"}}}
    enforce:
      - {use: labels, with: {set: {cost-centre: speech}}}
"""
SWAP: Final = Override().step("gpu", type="nvidia-h100-80gb").on(task="*.t*")

Explain = Callable[..., Result]


@pytest.fixture
def explain(core: Core, monkeypatch: pytest.MonkeyPatch) -> Explain:
    """Run the command in this process."""
    monkeypatch.setenv("KUBECONFIG", str(core.kubeconfig))

    def invoke(config: Path, *arguments: str) -> Result:
        monkeypatch.setenv("KUBETAILOR_CONFIG", str(config))
        return CliRunner().invoke(cli, ["explain", *arguments])

    return invoke


def data(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def steps(found: dict[str, Any]) -> set[tuple[str, str]]:
    return {(change["step"], change["layer"]) for change in found["changes"]}


def apply(core: Core, obj: Any) -> None:
    kubectl(core, "apply", "-f", "-", stdin=json.dumps(obj))


# what a person applies ---------------------------------------------------------------------------


def test_a_pod_is_called_as_for_kubectl(
    core: Core, webhook: MakeWebhook, namespace: str, explain: Explain
) -> None:
    server = webhook(CONFIG, namespace)
    apply(core, pod(namespace))

    names = ("pod", "pods", "po", "Pod", "pods.v1.")
    each = [data(explain(server.config, f"{n}/one", "-n", namespace, "-o", "json")) for n in names]

    found = each[0]
    assert all(other == found for other in each)
    assert found["object"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": namespace,
        "name": "one",
    }
    assert (found["same_digest"], found["task"], found["notes"]) == (True, None, [])
    assert found["basis"] == "what kubectl applied"
    assert steps(found) == {("node_selector", "steps"), ("labels", "enforce")}
    assert {change["place"].partition(":")[0] for change in found["changes"]} == {
        str(server.config)
    }


def test_what_was_created_is_asked_of_each_step(
    client: Client, webhook: MakeWebhook, namespace: str, explain: Explain
) -> None:
    server = webhook(CONFIG, namespace)
    client.create(pod(namespace))

    said = explain(server.config, "pod/one", "-n", namespace).stdout.splitlines()

    at = next(i for i, line in enumerate(said) if line.startswith("The steps of the chain"))
    found = [[word.strip() for word in line.split("   ") if word][:3] for line in said[at + 2 :]]
    assert found == [
        ["priority_class (defaults)", "does not apply", "nothing"],
        ["node_selector (steps)", "applies", "nothing"],
        ["by-rows (steps)", "does not apply", "nothing"],
        ["labels (enforce)", "applies", "nothing"],
    ]


def test_a_pod_of_a_job_was_cut_with_its_job(
    core: Core,
    client: Client,
    training_operator: Process,
    webhook: MakeWebhook,
    namespace: str,
    explain: Explain,
) -> None:
    server = webhook(CONFIG, namespace)
    apply(core, pytorchjob(namespace, "train"))
    wait_for("its pods", lambda: len(client.list("v1", "Pod", namespace)) == 2)

    def found(target: str) -> dict[str, Any]:
        return data(explain(server.config, target, "-n", namespace, "-o", "json"))

    of_pod, of_job = found("pod/train-worker-0"), found("pytorchjob/train")

    assert found("pytorchjobs.kubeflow.org/train") == of_job
    assert found("pytorchjobs.v1.kubeflow.org/train") == of_job
    assert [owner["kind"] for owner in of_pod["owners"]] == ["PyTorchJob"]
    assert of_pod["cut"] == of_job["cut"] == of_job["object"]
    assert of_pod["changes"] == of_job["changes"]
    workers = [change for change in of_job["changes"] if ".Worker." in change["field"]]
    assert {change["step"] for change in workers} == {"node_selector", "labels"}
    assert of_pod["same_digest"] is True


def test_the_page_shows_what_is_printed(
    core: Core,
    client: Client,
    training_operator: Process,
    webhook: MakeWebhook,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = list(blocks_of(CHECKOUT / "docs" / "how-to" / "find-out-why.md"))
    for block in blocks:
        if "title" in block.options:
            run(block, tmp_path)
    config = (tmp_path / "kubetailor.yaml").read_text()
    client.namespace("speech")
    try:
        webhook(f"phases: [admit]\n{config}", "speech")
        apply(core, pytorchjob("speech", "train"))
        wait_for("its pods", lambda: len(client.list("v1", "Pod", "speech")) == 2)
        monkeypatch.setenv("KUBECONFIG", str(core.kubeconfig))
        (shown,) = (block for block in blocks if "explain pod/" in block.body)
        run(shown, tmp_path)
    finally:
        client.delete("v1", "Namespace", None, "speech")


def test_what_cannot_be_explained_is_said(
    client: Client, webhook: MakeWebhook, namespace: str, explain: Explain
) -> None:
    server = webhook(CONFIG, namespace)
    for target, said in (
        ("pod/nothing", 'pods "nothing" not found'),
        ("podd/one", "the server has no type 'podd'; did you mean"),
        ("pods.example.com/one", "the server has no type 'pods.example.com'"),
        ("pod", "expected TYPE/NAME"),
        (f"namespace/{namespace}", "no chain runs over this kind"),
    ):
        done = explain(server.config, target, "-n", namespace)
        assert (done.exit_code, done.stdout) == (2, "")
        assert said in done.stderr


def test_the_namespace_is_that_of_the_context(
    core: Core, client: Client, webhook: MakeWebhook, namespace: str, explain: Explain
) -> None:
    server = webhook(CONFIG, namespace)
    client.create(pod(namespace))
    kubectl(core, "config", "set-context", "elsewhere", f"--namespace={namespace}", *_current(core))

    assert "one" in explain(server.config, "pod/one", "--context", "elsewhere").stdout
    missing = explain(server.config, "pod/one")
    assert (missing.exit_code, "not found" in missing.stderr) == (2, True)
    wrong = explain(server.config, "pod/one", "--context", "nowhere")
    assert (wrong.exit_code, "nowhere" in wrong.stderr) == (2, True)


def _current(core: Core) -> tuple[str, ...]:
    said = json.loads(kubectl(core, "config", "view", "-o", "json"))
    of = next(c["context"] for c in said["contexts"] if c["name"] == said["current-context"])
    return f"--cluster={of['cluster']}", f"--user={of['user']}"


# what Flyte makes --------------------------------------------------------------------------------


def test_a_pod_of_flyte_says_its_task_and_its_override(
    client: Client,
    pyflyte: Pyflyte,
    webhook: MakeWebhook,
    register_once: RegisterOnce,
    launcher: MakeLauncher,
    explain: Explain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key, value in pyflyte.env.items():
        monkeypatch.setenv(key, value)
    server = webhook(CONFIG, NAMESPACE)
    register_once(ZOO, DOMAIN)
    execution = launcher(ZOO)("training", "explained", annotations=annotation(SWAP))
    label = f"execution-id={execution.name}"

    def pods() -> dict[str, Any]:
        found = client.list("v1", "Pod", NAMESPACE, labelSelector=label)
        return {one["metadata"]["name"]: one for one in found}

    wait_for("its pods", lambda: len(pods()) == 6, seconds=120, every=0.5)

    found = {
        name: data(explain(server.config, f"pod/{name}", "-n", NAMESPACE, "-o", "json"))
        for name in pods()
    }

    whole = {
        (said["task"]["node"], said["task"]["task"].rpartition(".")[2]) for said in found.values()
    }
    assert {node for node, _ in whole} == {"one", "other", "map", "job"}
    for name, said in found.items():
        assert said["task"]["execution"] == "explained", name
        assert said["task"]["project"] == PROJECT
        assert said["same_digest"] is True, said
        assert said["applied"]["override"] is not None
        assert said["override"] == SWAP.document()
        assert said["notes"] == [], name
        assert steps(said) == {
            ("node_selector", "steps"),
            ("by-rows", "steps"),
            ("gpu", "override"),
            ("labels", "enforce"),
        }
    (job,) = {said["cut"]["name"] for said in found.values() if said["task"]["node"] == "job"}
    assert job == "explained-job-0"

    server.reload(CONFIG.replace("batch", "large"))
    said = data(explain(server.config, "pod/explained-one-0", "-n", NAMESPACE, "-o", "json"))
    assert said["same_digest"] is False
