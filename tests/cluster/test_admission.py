"""Objects on their way into the cluster: what is created, and what comes in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.webhook.reload import load_tailor

from .conftest import MakeWebhook
from .objects import TAILORED
from .plain import pod, with_pods
from .stack.client import ApiError, Client
from .stack.core import Core
from .stack.kubectl import ran
from .stack.process import wait_for
from .stack.webhook import Webhook

PLUGIN: Final = '''
"""What no built-in does."""

from kubetailor.registry import Pod, TaskContext, Workload, transformer


@transformer
def payer(workload: Workload) -> None:
    """Say on the object alone who pays."""
    workload.annotate("example.com/payer", "speech")


@transformer
def known(pod: Pod, task: TaskContext, *, fields: list[str]) -> None:
    """Say what is known of the task."""
    for field in fields:
        pod.annotate(f"example.com/{field}", str(getattr(task, field)))


@transformer
def broken(pod: Pod) -> None:
    """Fail as code does."""
    raise RuntimeError("no such table")
'''

CONFIG: Final = """
plugins: [./probe.py]
phases: [serialize, admit]
chains:
  whole:
    defaults:
      - {use: annotations, with: {set: {example.com/owner: platform}}}
    steps:
      - {use: labels, with: {set: {team: speech}}}
      - {use: node_selector, with: {set: {pool: spot}}}
      - {use: tolerations, with: {add: [{key: spot, operator: Exists, effect: NoSchedule}]}}
      - {use: env, with: {set: {THREADS: 8}}}
      - {use: probe.payer}
    enforce:
      - {name: cost, use: labels, with: {set: {cost-centre: "4711"}}}
  known:
    steps:
      - use: probe.known
        with: {fields: [project, domain, workflow, task, version, execution, node, attempt]}
  queued:
    steps:
      - {use: kueue, with: {queue: speech}}
      - {use: node_selector, with: {set: {pool: spot}}}
  broken:
    steps: [{name: table, use: probe.broken}]
  invalid:
    enforce: [{name: pay, use: labels, with: {set: {cost-centre: "4711 / a"}}}]
select:
  - {when: {labels: {chain: known}}, chain: known}
  - {when: {labels: {execution-id: "*"}}, chain: known}
  - {when: {labels: {chain: queued}}, chain: queued}
  - {when: {labels: {chain: broken}}, chain: broken}
  - {when: {labels: {chain: invalid}}, chain: invalid}
  - {chain: whole}
"""
NAMESPACE: Final = "admission"
SPOT: Final = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def served(core: Core) -> Iterator[Webhook]:
    """A webhook with all the chains, also for a namespace that is never its business."""
    core.client.namespace(NAMESPACE)
    core.client.namespace("untouched", **{"kubetailor.dev/tailor": "false"})
    with ExitStack() as ending:
        spaces = (NAMESPACE, "untouched", "kube-system")
        yield Webhook(core, ending, CONFIG, *spaces, name="admission", files={"probe.py": PLUGIN})
    core.client.delete("v1", "Namespace", None, NAMESPACE)
    core.client.delete("v1", "Namespace", None, "untouched")


def warned(client: Client, obj: dict[str, Any], **query: str) -> tuple[Any, list[str]]:
    """Create an object; it, and the warnings that a client shows."""
    path = client.path(obj["apiVersion"], obj["kind"], obj["metadata"]["namespace"])
    answer = client.answer("POST", path, obj, **query)
    said = re.findall(r'299 - "((?:[^"\\]|\\.)*)"', answer.headers.get("Warning", ""))
    return answer.json(), [re.sub(r"\\(.)", r"\1", text) for text in said]


def settled(client: Client, parent: Any, count: int) -> list[Any]:
    """The pods that came of an object, all of them named after it."""
    namespace, name = parent["metadata"]["namespace"], parent["metadata"]["name"]

    def found() -> list[Any]:
        pods = client.list("v1", "Pod", namespace)
        return [one for one in pods if one["metadata"]["name"].startswith(f"{name}-")]

    wait_for(f"the pods of {parent['kind']} {name}", lambda: len(found()) == count)
    return found()


# what a person creates -------------------------------------------------------------------------


def test_a_change_leaves_all_else_as_it_was(client: Client, served: Webhook) -> None:
    """Beside the same pod without the webhook: what is added, and not one entry moved."""
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}]
    containers = [
        {"name": "main", "image": "python:3.12", "env": env, "args": ["--a", "--b"]},
        {"name": "side", "image": "proxy", "ports": [{"containerPort": 80}]},
    ]
    own = [
        {"key": "b", "operator": "Exists"},
        {
            "key": "a",
            "operator": "Equal",
            "value": "x",
            "tolerationSeconds": 7,
            "effect": "NoExecute",
        },
    ]
    given: dict[str, Any] = {
        "containers": containers,
        "tolerations": own,
        "nodeSelector": {"zone": "a"},
    }
    plain = client.create(pod("default", "beside", annotations={"note": "mine"}, **given))
    client.delete("v1", "Pod", "default", "beside")

    made = client.create(pod(NAMESPACE, "beside", annotations={"note": "mine"}, **given))

    assert json.loads(made["metadata"]["annotations"].pop(STAMP))["chain"] == "whole"
    assert made["metadata"]["annotations"] == {
        "note": "mine",
        "example.com/owner": "platform",
        "example.com/payer": "speech",
    }
    assert made["metadata"]["labels"] == {**TAILORED, "team": "speech", "cost-centre": "4711"}
    expected = plain["spec"]
    expected["nodeSelector"]["pool"] = "spot"
    expected["tolerations"].insert(made["spec"]["tolerations"].index(SPOT), SPOT)
    expected["containers"][0]["env"].append({"name": "THREADS", "value": "8"})
    assert _without_token(made["spec"]) == _without_token(expected)


def _without_token(spec: Any) -> Any:
    """The name of the token's volume is chosen by chance."""
    return json.loads(re.sub(r"kube-api-access-\w+", "token", json.dumps(spec)))


def test_a_name_may_still_be_to_come(client: Client, served: Webhook) -> None:
    made = client.create(pod(NAMESPACE, "some-"))

    assert made["metadata"]["name"] != "some-"
    assert made["spec"]["nodeSelector"] == {"pool": "spot"}


def test_a_dry_run_comes_to_the_same_and_leaves_nothing(client: Client, served: Webhook) -> None:
    asked = pod(NAMESPACE, "dry")
    tried, warnings = warned(client, asked, dryRun="All")
    with pytest.raises(ApiError, match="not found"):
        client.get("v1", "Pod", NAMESPACE, "dry")

    made, warnings_then = warned(client, asked)

    assert _without_token(tried["spec"]) == _without_token(made["spec"])
    for field in ("labels", "annotations"):
        assert tried["metadata"][field] == made["metadata"][field]
    assert warnings == warnings_then
    assert [said.get("dryRun", False) for said in served.decisions("dry")] == [True, False]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob"])
def test_a_workload_is_tailored_in_its_template(kind: str, client: Client, served: Webhook) -> None:
    made = client.create(with_pods(kind, NAMESPACE, "it"), dryRun="All")

    assert made["metadata"]["labels"]["team"] == "speech"
    assert made["metadata"]["annotations"]["example.com/payer"] == "speech"
    spec = made["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else made["spec"]
    pods = spec["template"]
    assert pods["metadata"]["labels"]["team"] == "speech"
    assert "example.com/payer" not in pods["metadata"]["annotations"]
    assert pods["metadata"]["annotations"][STAMP] == made["metadata"]["annotations"][STAMP]
    assert pods["spec"]["nodeSelector"] == {"pool": "spot"}
    assert pods["spec"]["tolerations"] == [SPOT]


def test_what_was_said_is_in_the_audit_log(core: Core, client: Client, served: Webhook) -> None:
    client.create(pod(NAMESPACE, "audited"))
    found: list[dict[str, str]] = []

    def written() -> bool:
        for line in core.audit.read_text().splitlines():
            event = json.loads(line)
            if event["objectRef"].get("name") == "audited":
                found.append(event["annotations"])
        return bool(found)

    wait_for("the audit log", written)
    tailor = load_tailor(served.config)
    said = {key: value for key, value in found[0].items() if key.startswith("labelled.kubetailor")}
    assert said == {
        "labelled.kubetailor.dev/chain": "whole",
        "labelled.kubetailor.dev/digest": tailor.config.chains["whole"].digest,
        "labelled.kubetailor.dev/steps": "annotations,labels,node_selector,tolerations,env,"
        "probe.payer,cost",
    }


# what is not its business ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "labels"),
    [
        (NAMESPACE, {}),
        (NAMESPACE, {"kubetailor.dev/tailor": "false"}),
        (NAMESPACE, {"kubetailor.dev/tailor": ""}),
        ("untouched", TAILORED),
        ("untouched", {"execution-id": "a"}),
        ("kube-system", TAILORED),
        ("kube-system", {"execution-id": "a"}),
    ],
)
def test_what_did_not_ask_is_not_touched(
    namespace: str, labels: dict[str, str], client: Client, served: Webhook
) -> None:
    made = client.create(pod(namespace, "other", labels=labels), dryRun="All")

    assert made["metadata"].get("labels", {}) == labels
    assert "annotations" not in made["metadata"]
    assert "nodeSelector" not in made["spec"]
    assert served.decisions("other") == []


def test_a_mirror_pod_is_not_touched(client: Client, served: Webhook) -> None:
    """A kubelet makes it of a file; it would make it again and again."""
    mirror = {"kubernetes.io/config.mirror": "checksum"}
    binding = client.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "nodes-make-pods"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
            | {"name": "system:node"},
            "subjects": [{"kind": "Group", "name": "system:nodes"}],
        }
    )
    kubelet = client.impersonating("system:node:nowhere", "system:nodes")
    try:
        made = kubelet.create(
            pod(NAMESPACE, "mirror", annotations=mirror, nodeName="nowhere"), dryRun="All"
        )
    finally:
        client.delete(binding["apiVersion"], binding["kind"], None, "nodes-make-pods")

    assert made["metadata"]["annotations"] == mirror
    assert "nodeSelector" not in made["spec"]
    assert served.decisions("mirror") == []


def test_what_anybody_else_calls_a_mirror_pod_is_touched(client: Client, served: Webhook) -> None:
    """Whoever may launch may annotate what he launches."""
    mirror = {"kubernetes.io/config.mirror": "checksum"}
    made = client.create(
        pod(NAMESPACE, "no-mirror", annotations=mirror, nodeName="nowhere"), dryRun="All"
    )

    assert "nodeSelector" in made["spec"]
    assert [line["outcome"] for line in served.decisions("no-mirror")] == ["patched"]


def test_only_what_is_created_is_looked_at(client: Client, served: Webhook) -> None:
    client.create(pod(NAMESPACE, "later", labels={}))
    after = client.patch("v1", "Pod", NAMESPACE, "later", {"metadata": {"labels": TAILORED}})

    assert after["metadata"]["labels"] == TAILORED
    assert served.decisions("later") == []


# the stamp -------------------------------------------------------------------------------------


def _stamp(digest: str, done: int, **more: str) -> dict[str, str]:
    said = {"chain": "whole", "digest": digest, "task": None, "version": None, "override": None}
    return {STAMP: json.dumps({**said, "done": done, "deferred": [], **more})}


def test_a_forged_stamp_spares_nothing_that_is_enforced(client: Client, served: Webhook) -> None:
    digest = load_tailor(served.config).config.chains["whole"].digest
    made = client.create(pod(NAMESPACE, "forged", annotations=_stamp(digest, 99)))

    assert made["metadata"]["labels"]["cost-centre"] == "4711"
    assert "nodeSelector" not in made["spec"], "what a stamp may spare"


def test_what_an_older_chain_left_is_said_and_stays(client: Client, served: Webhook) -> None:
    """It was registered with a toleration and a default that today's chain no longer has."""
    older = {"key": "old-pool", "operator": "Exists", "effect": "NoSchedule"}
    stamp = _stamp("sha256:0123456789abcdef", 2)
    asked = pod(
        NAMESPACE, "older", annotations=stamp, tolerations=[older], nodeSelector={"old": "1"}
    )

    made, warnings = warned(client, asked)

    assert older in made["spec"]["tolerations"]
    assert made["spec"]["nodeSelector"] == {"old": "1", "pool": "spot"}
    assert "example.com/owner" not in made["metadata"]["annotations"], (
        "a default, and it is stamped"
    )
    [warning] = [text for text in warnings if "ran on it before" in text]
    assert "chain 'whole' ran on it before, as 0123456789ab" in warning
    assert "still there" in warning
    [said] = served.decisions("older")
    assert said["warnings"] == len(warnings)


# identity --------------------------------------------------------------------------------------

FLYTE: Final = {
    "FLYTE_INTERNAL_EXECUTION_ID": "ahfk2p5kdl4tq",
    "FLYTE_INTERNAL_EXECUTION_PROJECT": "speech",
    "FLYTE_INTERNAL_EXECUTION_DOMAIN": "development",
    "FLYTE_INTERNAL_EXECUTION_WORKFLOW": "speech:development:pipelines.nightly",
    "FLYTE_INTERNAL_TASK_NAME": "pipelines.train",
    "FLYTE_INTERNAL_TASK_VERSION": "v42",
    "FLYTE_ATTEMPT_NUMBER": "1",
}
KNOWN: Final = {
    "project": "speech",
    "domain": "development",
    "workflow": "pipelines.nightly",
    "task": "pipelines.train",
    "version": "v42",
    "execution": "ahfk2p5kdl4tq",
    "node": "n3",
    "attempt": "1",
}


def _said(made: Any) -> dict[str, str]:
    found = made["metadata"]["annotations"]
    return {k.partition("/")[2]: v for k, v in found.items() if k.startswith("example.com/")}


def test_the_task_is_known_by_what_propeller_wrote(client: Client, served: Webhook) -> None:
    """Labels are cut at 63 characters; the variables of the primary container are exact."""
    labels = {"execution-id": "ahfk2p5kdl4tq", "node-id": "n3", "project": "other", "domain": "x"}
    env = [{"name": name, "value": value} for name, value in FLYTE.items()]
    containers = [
        {"name": "proxy", "image": "proxy"},
        {"name": "primary", "image": "python:3.12", "env": env},
    ]
    made = client.create(
        pod(
            NAMESPACE,
            "ahfk2p5kdl4tq-n3-0",  # as FlytePropeller names it: the label is no nested node's
            labels=labels,
            annotations={"primary_container_name": "primary"},
            containers=containers,
        ),
        dryRun="All",
    )

    assert _said(made) == KNOWN
    [said] = served.decisions("ahfk2p5kdl4tq-n3-0")
    assert (said["task"], said["execution"], said["node"]) == (
        "pipelines.train",
        "ahfk2p5kdl4tq",
        "n3",
    )


def test_the_owner_names_the_execution(client: Client, served: Webhook) -> None:
    owned = pod(NAMESPACE, "whole-name-n0-0", labels={"execution-id": "cut", "node-id": "n0"})
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "flyte.lyft.com/v1alpha1",
            "kind": "flyteworkflow",
            "name": "whole-name",
            "uid": "0b6f6c1a-7a4e-4b7e-9a51-3b2f6d1c9e77",
            "controller": True,
        }
    ]
    owned["spec"]["containers"][0]["env"] = [
        {"name": name, "value": value} for name, value in FLYTE.items()
    ]
    assert _said(client.create(owned, dryRun="All")) == {
        **KNOWN,
        "execution": "whole-name",
        "node": "n0",
    }


def test_without_a_trace_of_flyte_nothing_is_known(client: Client, served: Webhook) -> None:
    made = client.create(
        pod(NAMESPACE, "mine", labels={**TAILORED, "chain": "known", "project": "speech"}),
        dryRun="All",
    )
    assert _said(made) == dict.fromkeys(KNOWN, "None")


# children --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("training_operator")
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "Job", "PyTorchJob"])
def test_children_are_left_to_their_parents(kind: str, client: Client, served: Webhook) -> None:
    """Of what a stamped parent makes, nothing is changed once more."""
    asked = with_pods(kind, NAMESPACE, f"parent-{kind.lower()}")
    parent = client.create(asked)

    for made in settled(client, parent, 2 if kind == "PyTorchJob" else 1):
        metadata = made["metadata"]
        assert metadata["annotations"][STAMP] == parent["metadata"]["annotations"][STAMP]
        assert "example.com/payer" not in metadata["annotations"]
        assert metadata["labels"]["cost-centre"] == "4711"
        assert made["spec"]["nodeSelector"] == {"pool": "spot"}
        assert made["spec"]["tolerations"].count(SPOT) == 1
        said = served.decisions(metadata["name"], metadata.get("generateName", ""))
        assert {decision["outcome"] for decision in said} == {"unchanged"}
    client.delete(asked["apiVersion"], kind, NAMESPACE, asked["metadata"]["name"])


def test_a_child_without_a_stamp_gets_what_is_for_pods_alone(
    client: Client, served: Webhook
) -> None:
    """Its parent did not ask for the webhook; the queue is the parent's business."""
    pods = {**TAILORED, "chain": "queued"}
    parent = client.create(with_pods("ReplicaSet", NAMESPACE, "alone", labels={}, pods=pods))
    assert STAMP not in parent["metadata"].get("annotations", {})

    [made] = settled(client, parent, 1)
    assert made["spec"]["nodeSelector"] == {"pool": "spot"}
    assert "kueue.x-k8s.io/queue-name" not in made["metadata"]["labels"]
    assert served.decisions("alone") == []
    client.delete("apps/v1", "ReplicaSet", NAMESPACE, "alone")


def test_a_job_of_a_cron_job_is_its_child(core: Core, client: Client, served: Webhook) -> None:
    client.create(with_pods("CronJob", NAMESPACE, "it"))

    done = ran(core, "create", "job", "--from=cronjob/it", "now", f"--namespace={NAMESPACE}")

    assert done.returncode == 0, done.stderr
    [made] = settled(client, client.get("batch/v1", "Job", NAMESPACE, "now"), 1)
    assert made["spec"]["tolerations"].count(SPOT) == 1
    assert {said["outcome"] for said in served.decisions("now", "now-")} <= {"unchanged"}
    client.delete("batch/v1", "CronJob", NAMESPACE, "it")


def test_what_was_made_before_the_config_changed_is_held_to_its_own_chain(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    """Only `enforce` is of today, and denies: operators take what their parents said."""

    def config(pool: str, centre: str) -> str:
        return (
            f"phases: [admit]\nchains: {{default: {{steps: [{{use: node_selector, with: "
            f"{{set: {{pool: {pool}}}}}}}], enforce: [{{name: cost, use: labels, with: "
            f"{{set: {{cost-centre: {centre}}}}}}}]}}}}\n"
        )

    server = webhook(config("a", "one"), namespace)

    def becomes(text: str, count: int) -> None:
        server.config.write_text(text)
        wait_for("the config", lambda: server.log().count('"config loaded"') == count)

    parent = client.create(with_pods("Deployment", namespace, "it"))
    settled(client, parent, 1)
    becomes(config("b", "one"), 2)
    client.patch("apps/v1", "Deployment", namespace, "it", {"spec": {"replicas": 2}})
    for made in settled(client, parent, 2):
        assert made["spec"]["nodeSelector"] == {"pool": "a"}
    becomes(config("b", "two"), 3)
    client.patch("apps/v1", "Deployment", namespace, "it", {"spec": {"replicas": 3}})

    def refused() -> str:
        [found] = client.list("apps/v1", "ReplicaSet", namespace)
        said = {c["type"]: c["message"] for c in found["status"].get("conditions", ())}
        return str(said.get("ReplicaFailure", ""))

    wait_for("the denial", refused)
    assert "step 'cost'" in refused()
    assert "its parent was made without what `enforce` asks for" in refused()
    assert "create the parent again" in refused()


# what a person is told -------------------------------------------------------------------------


@pytest.mark.parametrize("apply", [["create"], ["apply", "--server-side"], ["apply"]])
def test_kubectl_shows_warnings(
    apply: list[str], core: Core, client: Client, served: Webhook
) -> None:
    name = "-".join(["warned", *apply]).replace("--", "")
    asked = pod(NAMESPACE, name, annotations=_stamp("sha256:0123456789abcdef", 2))

    done = ran(core, *apply, "--filename=-", stdin=json.dumps(asked))

    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("Warning: chain")]
    assert "chain 'whole' ran on it before" in line
    assert client.get("v1", "Pod", NAMESPACE, name)["spec"]["nodeSelector"] == {"pool": "spot"}
    if apply[0] == "apply":  # again, it changes nothing, and is no business of the webhook's
        again = ran(core, *apply, "--filename=-", stdin=json.dumps(asked))
        assert again.returncode == 0, again.stderr
        assert client.get("v1", "Pod", NAMESPACE, name)["spec"]["nodeSelector"] == {"pool": "spot"}


@pytest.mark.parametrize("apply", [["create"], ["apply", "--server-side"], ["apply"]])
@pytest.mark.parametrize(
    ("chain", "step", "why"),
    [
        ("broken", "table", "RuntimeError: no such table"),
        ("invalid", "pay", "metadata.labels: label cost-centre: the value '4711 / a' must"),
    ],
)
def test_kubectl_shows_why_something_was_denied(
    chain: str,
    step: str,
    why: str,
    apply: list[str],
    core: Core,
    client: Client,
    served: Webhook,
) -> None:
    asked = pod(NAMESPACE, "denied", labels={**TAILORED, "chain": chain})

    done = ran(core, *apply, "--filename=-", stdin=json.dumps(asked))

    assert done.returncode == 1
    denied = 'admission webhook "labelled.kubetailor.dev" denied the request: '
    assert denied in done.stderr
    assert f"kubetailor, chain {chain!r}: " in done.stderr
    assert "kubetailor.yaml:" in done.stderr, "where the step is"
    assert f"step {step!r} (plugin " in done.stderr
    assert "on Pod denied: " in done.stderr
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    with pytest.raises(ApiError) as error:
        client.create(asked)
    assert error.value.code == 422
    with pytest.raises(ApiError, match="not found"):
        client.get("v1", "Pod", NAMESPACE, "denied")
