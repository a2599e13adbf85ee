"""Why an object of a cluster is as it is; tests/cluster/test_explain.py reads some from one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flytekit.remote import FlyteRemote

from kubetailor.plugins.client.cluster_object import LAST_APPLIED, explained
from kubetailor.plugins.client.explain import print_explanation, registered
from kubetailor.plugins.client.explanation import Explanation
from kubetailor.plugins.client.owners import Lineage
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.registry.overrides.document import OVERRIDE
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import KubetailorError

from . import workflows as _workflows
from .conftest import register

workflows: Any = _workflows
Configure = Callable[[str], Path]

CONFIG = """\
phases: [launch, admit]
chains:
  default:
    defaults:
      - {use: priority_class, with: {name: low}, when: {requests: nvidia.com/gpu}}
    steps:
      - {use: retries, with: {retries: 5}}
      - {use: node_selector, with: {set: {pool: batch}}}
      - {name: by-rows, use: labels, with: {set: {size: large}}, when: {inputs: {x: "3"}}}
    enforce:
      - {use: labels, with: {set: {cost-centre: speech}}}
"""
OWNER = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "controller": True}


def tailor() -> Tailor:
    found = Tailor.find()
    assert found is not None
    return found


def pod(name: str = "train", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "speech", **metadata},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }


def job() -> dict[str, Any]:
    spec = {"containers": [{"name": "pytorch", "image": "busybox"}]}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "train", "namespace": "speech"},
        "spec": {
            "pytorchReplicaSpecs": {
                role: {"replicas": 1, "template": {"metadata": {}, "spec": spec}}
                for role in ("Master", "Worker")
            }
        },
    }


def stamp(digest: str, *, done: int = 5, override: str | None = None, **more: Any) -> str:
    said = {"chain": "default", "digest": digest, "override": override, "done": done}
    return json.dumps({**said, "deferred": [], **more})


def as_applied(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as `kubectl apply` and the webhook leave it."""
    made = tailor()
    result = made.tailor(obj, "admit", **dict.fromkeys(("inputs",))).result
    after: dict[str, Any] = json.loads(json.dumps(result.after))
    annotations = after["metadata"].setdefault("annotations", {})
    annotations[LAST_APPLIED] = json.dumps(obj)
    annotations[STAMP] = stamp(made.config.chains["default"].digest)
    return after


def explain(*objects: dict[str, Any]) -> Explanation:
    """Explain the first; the others are its owners, nearest first."""
    owners = {obj["metadata"]["name"]: obj for obj in objects[1:]}

    def owner_of(reference: Any, _: str) -> dict[str, Any]:
        if reference["name"] not in owners:
            raise KubetailorError(f"{reference['name']} not found")
        return owners[reference["name"]]

    made = tailor()
    lineage = Lineage.climb(objects[0], owner_of)
    return explained(lineage, made, lambda known, found: registered(known, found, made))


def fields(found: Explanation) -> list[tuple[str, str, str]]:
    assert found.basis is not None, found.notes
    return [(each.step, each.layer, each.field) for each in found.basis.changes]


# what a person applied ---------------------------------------------------------------------------


def test_what_kubectl_applied_is_what_is_changed(configure: Configure) -> None:
    file = configure(CONFIG)
    found = explain(as_applied(pod()))
    assert fields(found) == [
        ("node_selector", "steps", "spec.nodeSelector"),
        ("labels", "enforce", "metadata.labels"),
    ]
    assert found.basis is not None
    assert found.basis.changes[0].place == f"{file}:8:10"
    assert (found.is_flyte, found.same_digest, found.steps, found.notes) == (False, True, (), [])


def test_another_config_has_another_digest(configure: Configure) -> None:
    configure(CONFIG)
    obj = as_applied(pod())
    configure(CONFIG.replace("batch", "large"))
    found = explain(obj)
    assert found.same_digest is False
    assert found.basis is not None
    assert found.basis.changes[0].new == {"pool": "large"}


def test_a_pod_was_cut_with_what_it_was_made_for(configure: Configure) -> None:
    configure(CONFIG)
    made = as_applied(job())
    found = explain(pod("train-worker-0", ownerReferences=[OWNER]), made)
    assert found.cut is made
    assert [owner["kind"] for owner in found.as_json()["owners"]] == ["PyTorchJob"]
    assert {field.partition("[")[0] for _, _, field in fields(found)} == {
        "spec.pytorchReplicaSpecs.Master.template.spec.nodeSelector",
        "spec.pytorchReplicaSpecs.Worker.template.spec.nodeSelector",
        "spec.pytorchReplicaSpecs.Master.template.metadata.labels",
        "spec.pytorchReplicaSpecs.Worker.template.metadata.labels",
        "metadata.labels",
    }


def test_a_pod_that_was_cut_alone_stands_for_itself(configure: Configure) -> None:
    """Its owner was there before the webhook was."""
    configure(CONFIG)
    made = as_applied(pod("train-worker-0", ownerReferences=[OWNER]))
    assert explain(made, job()).cut is made


def test_an_owner_that_cannot_be_read_is_said(configure: Configure) -> None:
    configure(CONFIG)
    found = explain(pod(ownerReferences=[OWNER]))
    assert found.cut["kind"] == "Pod"
    assert found.notes == ["its owner cannot be read: train not found"]
    assert found.as_json()["owners"] == [{k: OWNER[k] for k in ("apiVersion", "kind", "name")}]


# what was created in another way -----------------------------------------------------------------


def test_each_step_is_asked_about_the_object_as_it_is(configure: Configure) -> None:
    configure(CONFIG)
    obj = as_applied(pod())
    del obj["metadata"]["annotations"][LAST_APPLIED]
    obj["metadata"]["labels"] = {"cost-centre": "vision"}
    found = explain(obj)
    assert found.basis is None
    steps = [(one.step.name, one.applies, [c.new for c in one.changes]) for one in found.steps]
    assert steps == [
        ("priority_class", False, []),
        ("retries", False, []),
        ("node_selector", True, []),
        ("by-rows", False, []),
        ("labels", True, ["speech"]),
    ]


def test_nothing_ran_where_there_is_no_stamp(configure: Configure) -> None:
    configure("{phases: [admit], chains: {}}")
    found = explain(pod())
    assert (found.stamp, found.chain, found.same_digest, found.basis) == (None, None, None, None)


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        ({"apiVersion": "v1", "kind": "Secret"}, "no chain runs over this kind"),
        ({"apiVersion": "flyte.lyft.com/v1alpha1", "kind": "FlyteWorkflow"}, "execution show"),
        (
            {"apiVersion": "a/v1", "kind": "Job", "spec": {"containers": [{"name": "a"}]}},
            "is not known, and it holds containers",
        ),
    ],
)
def test_of_what_no_chain_runs_over_there_is_nothing_to_say(
    configure: Configure, obj: dict[str, Any], said: str
) -> None:
    configure(CONFIG)
    with pytest.raises(KubetailorError, match=said):
        explain({**obj, "metadata": {"name": "it"}})


# what Flyte made ---------------------------------------------------------------------------------

FLYTE_OWNER = {
    "apiVersion": "flyte.lyft.com/v1alpha1",
    "kind": "flyteworkflow",
    "name": "swapped",
    "controller": True,
}
H100 = '{"steps":[{"use":"gpu","when":{"task":"*.fit"},"with":{"type":"nvidia-h100-80gb"}}]}'


def of_flyte(name: str = "swapped-n1-0", node: str = "n1", **metadata: Any) -> dict[str, Any]:
    """A pod as FlytePropeller makes it."""
    obj = pod(name, ownerReferences=[FLYTE_OWNER], labels={"node-id": node}, **metadata)
    env = {
        "FLYTE_INTERNAL_EXECUTION_ID": "swapped",
        "FLYTE_INTERNAL_EXECUTION_PROJECT": "speech",
        "FLYTE_INTERNAL_EXECUTION_DOMAIN": "development",
        "FLYTE_INTERNAL_TASK_NAME": workflows.fit.name,
        "FLYTE_INTERNAL_TASK_VERSION": "v1",
        "FLYTE_INTERNAL_EXECUTION_WORKFLOW": f"speech:development:{workflows.train.name}",
    }
    (container,) = obj["spec"]["containers"]
    container["env"] = [{"name": key, "value": value} for key, value in env.items()]
    return obj


@pytest.fixture
def launched(
    remote: FlyteRemote, configure: Configure, folder: Path, run: Callable[..., Result]
) -> None:
    """An execution with an override."""
    configure(CONFIG)
    register(remote, workflows.train)
    (folder / "x.yaml").write_text("x: 3\n")
    (folder / "h100.json").write_text(H100)
    words = ("--inputs", "x.yaml", "--name", "swapped", "--override", "h100.json")
    done = run("launch", f"speech/development/{workflows.train.name}", *words)
    assert done.exit_code == 0, done.output


def test_what_flyteadmin_holds_is_what_is_changed(launched: None) -> None:
    obj = of_flyte(annotations={OVERRIDE: H100, STAMP: stamp("sha256:old", override="sha256:o")})
    found = explain(obj)
    said = found.as_json()
    assert said["task"] == {
        "namespace": "speech",
        "project": "speech",
        "domain": "development",
        "execution": "swapped",
        "task": workflows.fit.name,
        "version": "v1",
        "workflow": workflows.train.name,
        "node": "n1",
    }
    assert (said["same_digest"], said["applied"]["override"]) == (False, "sha256:o")
    assert said["override"] == json.loads(H100)
    assert said["basis"].endswith(f"{workflows.train.name}@v1 says of node n1")
    by_step = {each["step"]: each["layer"] for each in said["changes"]}
    # What reads the inputs, and what is about task templates, is seen here as at `launch`.
    assert by_step == {
        "priority_class": "defaults",
        "retries": "steps",
        "node_selector": "steps",
        "by-rows": "steps",
        "gpu": "override",
        "labels": "enforce",
    }
    assert said["steps"] == []


def test_a_step_that_waited_for_admit_is_asked_about_the_object(launched: None) -> None:
    waited = stamp("sha256:old", done=1, deferred=["node_selector", "labels"])
    found = explain(of_flyte(annotations={STAMP: waited}))
    assert found.deferred == ("node_selector", "labels")
    assert found.basis is not None
    assert {one.step.name: one.applies for one in found.steps}["by-rows"] is None


def test_a_node_that_a_dynamic_task_made_is_not_registered(launched: None) -> None:
    found = explain(of_flyte("swapped-n1-0-dn0-0", "dn0"))
    assert found.basis is None
    assert "FlyteAdmin has not node n1.dn0" in found.notes[0]
    assert next(one.step.name for one in found.steps) == "priority_class"


def test_where_its_name_hides_the_node_the_task_says_it(launched: None) -> None:
    found = explain(of_flyte("fabcdefg"))
    assert "node" not in found.known
    assert found.basis is not None
    assert found.basis.text.endswith("node n1")


def test_without_flyteadmin_the_rest_is_said(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(CONFIG)
    monkeypatch.setenv("FLYTE_PLATFORM_URL", "127.0.0.1:1")
    monkeypatch.setenv("FLYTE_PLATFORM_INSECURE", "true")
    found = explain(of_flyte())
    assert "execution speech/development/swapped: cannot reach FlyteAdmin: " in found.notes[0]
    assert "its address is that of FLYTE_PLATFORM_URL" in found.notes[0]
    assert [one.applies for one in found.steps] == [False, False, True, None, True]


def test_an_override_that_this_config_refuses_is_shown_and_said(launched: None) -> None:
    text = '{"steps":[{"use":"image","with":{"image":"registry.example.com/other:1"}}]}'
    found = explain(of_flyte(annotations={OVERRIDE: text}))
    assert found.override is not None
    assert found.override.document() == json.loads(text)
    assert found.notes[0].startswith("this config refuses the override: ")


def test_a_variable_that_says_two_things_is_said(configure: Configure) -> None:
    configure(CONFIG)
    obj = of_flyte()
    env = obj["spec"]["containers"][0]["env"]
    env.append({"name": "FLYTE_INTERNAL_TASK_NAME", "value": "other"})
    assert "FLYTE_INTERNAL_TASK_NAME is there twice" in explain(obj).notes[0]


# for people --------------------------------------------------------------------------------------


def test_it_is_printed(launched: None, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    obj = of_flyte(annotations={OVERRIDE: H100, STAMP: stamp("sha256:old", deferred=["labels"])})
    print_explanation(explain(obj), tailor())
    said = capsys.readouterr()
    lines = [line.rstrip() for line in said.out.splitlines()]
    assert lines[:6] == [
        "object      Pod swapped-n1-0 in speech",
        "execution   speech/development/swapped",
        f"workflow    {workflows.train.name}",
        "node        n1",
        f"task        {workflows.fit.name}, version v1",
        "applied     chain default, sha256:old, 5 steps, then labels deferred",
    ]
    assert lines[6].startswith(
        "config      kubetailor.yaml, chain default, another digest, sha256:"
    )
    assert any(line.startswith("Would change of what speech/development/") for line in lines)
    assert "override:" in lines
    assert [line for line in lines if line.endswith("kubetailor.yaml:8:10")]
    (by_rows,) = (line for line in lines if line.startswith("by-rows (steps)"))
    assert by_rows.split()[2:4] == ["unknown", "nothing"]
