"""What is in a pod: its containers, volumes, variables, secrets, accounts, and what they may do."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.registry import ConfigError, StepError
from kubetailor.registry.overrides.never import DEFAULT_USES
from kubetailor.registry.testing import ABSENT, TailorBench
from kubetailor.workloads import deep_copy

USES = (
    *("env_from", "image_pull_secrets", "init_containers", "resource_caps", "security_context"),
    *("service_account", "sidecars", "volumes"),
)


def pod(*containers: Any, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **(metadata or {})},
        "spec": {"containers": list(containers) or [{"name": "main", "image": "img"}], **spec},
    }


POD = pod()
TASK: dict[str, Any] = {
    "type": "python-task",
    "id": {"name": "t"},
    "metadata": {},
    "container": {"image": "img", "args": ["x"]},
}
SPARK: dict[str, Any] = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {"name": "s"},
    "spec": {"driver": {"cores": 1}, "executor": {"cores": 4}},
}
CONFIG = {"configMapRef": {"name": "c"}}
SECRET = {"secretRef": {"name": "s"}}
INIT = {"name": "warm", "image": "cache"}
SIDE = {"name": "side", "image": "metrics"}
NATIVE = {**SIDE, "restartPolicy": "Always"}
VOLUME = {"name": "v", "emptyDir": {}}
MOUNT = {"name": "v", "mountPath": "/data"}
FLYTE = {
    "labels": {"execution-id": "e1"},
    "annotations": {"primary_container_name": "a7k-n0-0"},
}
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
WHOLE = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def ray(group: Any = None) -> dict[str, Any]:
    head = {"k8sPod": {"podSpec": {"containers": [{"name": "ray-head"}], **group}}} if group else {}
    return {**TASK, "type": "ray", "custom": {"rayCluster": {"headGroupSpec": head}}}


@pytest.mark.parametrize(
    ("use", "parameters", "obj", "changes"),
    [
        pytest.param("env_from", {"add": [CONFIG, {**SECRET, "prefix": "P_"}]}, POD, {"spec.containers[main].envFrom": [CONFIG, {**SECRET, "prefix": "P_"}]}, id="env_from: in the order given"),
        pytest.param("env_from", {"add": [CONFIG]}, pod({"name": "m", "envFrom": [CONFIG, SECRET]}), {}, id="env_from: there already, in its place"),
        pytest.param("env_from", {"add": [{**CONFIG, "prefix": "P_"}]}, pod({"name": "m", "envFrom": [CONFIG]}), {"spec.containers[m].envFrom": [CONFIG, {**CONFIG, "prefix": "P_"}]}, id="env_from: another prefix is another source"),
        pytest.param("env_from", {"add": [CONFIG], "remove": [{"configMapRef": {"name": "c"}}, {"prefix": "P_"}]}, pod({"name": "m", "envFrom": [CONFIG, {**CONFIG, "prefix": "P_"}, {**SECRET, "prefix": "P_"}]}), {"spec.containers[m].envFrom": [CONFIG]}, id="env_from: what is added is not removed"),
        pytest.param("env_from", {"remove": [{"prefix": ""}]}, pod({"name": "m", "envFrom": [CONFIG]}), {"spec.containers[m].envFrom": ABSENT}, id="env_from: emptied"),
        pytest.param("env_from", {"add": [CONFIG], "container": "side"}, pod({"name": "main"}, {"name": "side"}), {"spec.containers[side].envFrom": [CONFIG]}, id="env_from: a container"),
        pytest.param("env_from", {"add": [CONFIG]}, SPARK, {"spec.driver.envFrom": [CONFIG], "spec.executor.envFrom": [CONFIG]}, id="env_from: Spark"),
        pytest.param("image_pull_secrets", {"add": [{"name": "a"}, {"name": "b"}], "remove": ["c", "b"]}, pod(imagePullSecrets=[{"name": "c"}, {"name": "b"}]), {"spec.imagePullSecrets": [{"name": "b"}, {"name": "a"}]}, id="image_pull_secrets"),
        pytest.param("image_pull_secrets", {"remove": ["c"]}, pod(imagePullSecrets=[{"name": "c"}]), {"spec.imagePullSecrets": ABSENT}, id="image_pull_secrets: emptied"),
        pytest.param("image_pull_secrets", {"add": [{"name": "a"}], "remove": ["c"]}, {**SPARK, "spec": {**SPARK["spec"], "imagePullSecrets": ["b", "c"]}}, {"spec.imagePullSecrets": ["b", "a"]}, id="image_pull_secrets: Spark has one list for all, of names"),
        pytest.param("service_account", {"name": "a"}, pod(serviceAccount="b", serviceAccountName="b"), {"spec.serviceAccountName": "a", "spec.serviceAccount": ABSENT}, id="service_account: the alias is derived again"),
        pytest.param("service_account", {"name": "a"}, pod(serviceAccount="a"), {}, id="service_account: the alias says it already"),
        pytest.param("service_account", {"name": "a", "automount_token": False}, POD, {"spec.serviceAccountName": "a", "spec.automountServiceAccountToken": False}, id="service_account: token"),
        pytest.param("service_account", {"name": "a"}, SPARK, {"spec.driver.serviceAccount": "a", "spec.executor.serviceAccount": "a"}, id="service_account: Spark"),
        pytest.param("volumes", {"add": [VOLUME], "mount": [MOUNT]}, POD, {"spec.volumes": [VOLUME], "spec.containers[main].volumeMounts": [MOUNT]}, id="volumes"),
        pytest.param("volumes", {"add": [VOLUME], "mount": [MOUNT], "containers": ["*"]}, pod({"name": "main"}, initContainers=[INIT]), {"spec.volumes": [VOLUME], "spec.containers[main].volumeMounts": [MOUNT], "spec.initContainers[warm].volumeMounts": [MOUNT]}, id="volumes: every container"),
        pytest.param("volumes", {"mount": [{**MOUNT, "mountPath": "/data/"}]}, pod({"name": "m", "volumeMounts": [{**MOUNT, "readOnly": True}]}, volumes=[VOLUME]), {}, id="volumes: mounted already, what is not said stays"),
        pytest.param("volumes", {"add": [{"name": "v", "secret": {"secretName": "s"}}]}, pod(volumes=[{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}]), {}, id="volumes: with what the API server filled in"),
        pytest.param("volumes", {"remove": ["v"], "unmount": ["/b/"]}, pod({"name": "m", "volumeMounts": [MOUNT, {"name": "w", "mountPath": "/b"}]}, volumes=[VOLUME, {"name": "w", "emptyDir": {}}]), {"spec.volumes": [{"name": "w", "emptyDir": {}}], "spec.containers[m].volumeMounts": ABSENT}, id="volumes: removed with its mounts"),
        pytest.param("volumes", {"add": [VOLUME], "mount": [MOUNT], "replace": True}, pod({"name": "m", "volumeMounts": [{"name": "w", "mountPath": "/data"}]}, volumes=[{"name": "v", "hostPath": {"path": "/"}}]), {"spec.volumes": [VOLUME], "spec.containers[m].volumeMounts": [MOUNT]}, id="volumes: replaced"),
        pytest.param("volumes", {"add": [VOLUME], "mount": [MOUNT]}, SPARK, {"spec.volumes": [VOLUME], "spec.driver.volumeMounts": [MOUNT], "spec.executor.volumeMounts": [MOUNT]}, id="volumes: Spark has one list for all"),
        pytest.param("init_containers", {"add": [INIT, {"name": "b", "image": "i"}], "remove": ["c"]}, pod(initContainers=[{"name": "a", "image": "i"}, {"name": "c", "image": "i"}]), {"spec.initContainers": [{"name": "a", "image": "i"}, INIT, {"name": "b", "image": "i"}]}, id="init_containers: in sequence"),
        pytest.param("init_containers", {"add": [{**INIT, "resources": {"limits": {"cpu": "500m"}}}]}, pod(initContainers=[{**INIT, "env": [{"name": "A"}], "resources": {"limits": {"cpu": "0.5"}, "requests": {"cpu": "1m"}}}]), {}, id="init_containers: there with more"),
        pytest.param("init_containers", {"add": [INIT], "replace": True}, pod({"name": "main"}, {"name": "warm"}, initContainers=[{"name": "z"}]), {"spec.containers": [{"name": "main"}], "spec.initContainers": [{"name": "z"}, INIT]}, id="init_containers: replace one of the others"),
        pytest.param("init_containers", {"remove": ["main"]}, POD, {}, id="init_containers: others are not removed"),
        pytest.param("init_containers", {"add": [INIT]}, SPARK, {"spec.driver.initContainers": [INIT], "spec.executor.initContainers": [INIT]}, id="init_containers: Spark"),
        pytest.param("sidecars", {"add": [NATIVE]}, pod(restartPolicy="Never"), {"spec.initContainers": [NATIVE]}, id="sidecars: native ones are init containers"),
        pytest.param("sidecars", {"add": [NATIVE], "replace": True}, pod({"name": "main"}, SIDE), {"spec.containers": [{"name": "main"}], "spec.initContainers": [NATIVE]}, id="sidecars: one becomes native"),
        pytest.param("sidecars", {"remove": ["side", "native", "setup"]}, pod({"name": "main"}, SIDE, initContainers=[{"name": "native", "restartPolicy": "Always"}, {"name": "setup"}]), {"spec.containers": [{"name": "main"}], "spec.initContainers": [{"name": "setup"}]}, id="sidecars: removed, native ones too"),
        pytest.param("sidecars", {"add": [SIDE]}, pod({"name": "main"}), {"spec.containers": [{"name": "main"}, SIDE]}, id="sidecars: `main` is known by its name"),
        pytest.param("sidecars", {"add": [SIDE]}, pod({"name": "train"}), {"spec.containers": [{"name": "train"}, SIDE], "metadata.annotations": {"kubectl.kubernetes.io/default-container": "train"}}, id="sidecars: which is the primary one can still be told"),
        pytest.param("sidecars", {"add": [SIDE]}, pod({"name": "a7k-n0-0"}, metadata=FLYTE, restartPolicy="Never"), {"spec.containers": [{"name": "a7k-n0-0"}, SIDE]}, id="sidecars: Flyte's pod ends with its primary container"),
        pytest.param("sidecars", {"add": [SIDE]}, SPARK, {"spec.driver.sidecars": [SIDE], "spec.executor.sidecars": [SIDE]}, id="sidecars: Spark"),
        pytest.param("security_context", {"profile": "restricted"}, pod({"name": "a"}, {"name": "b", "securityContext": {"capabilities": {"drop": ["NET_RAW"], "add": ["NET_BIND_SERVICE"]}, "runAsNonRoot": False}}, initContainers=[INIT], ephemeralContainers=[{"name": "e"}]), {
            "spec.securityContext": WHOLE,
            "spec.containers[a].securityContext": RESTRICTED,
            "spec.containers[b].securityContext": {**RESTRICTED, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, "runAsNonRoot": True},
            "spec.initContainers[warm].securityContext": RESTRICTED,
            "spec.ephemeralContainers[e].securityContext": RESTRICTED,
        }, id="security_context: restricted"),
        pytest.param("security_context", {"profile": "restricted"}, pod(os={"name": "windows"}), {"spec.securityContext": {"runAsNonRoot": True}}, id="security_context: Windows has no other field"),
        pytest.param("security_context", {"profile": "restricted"}, pod({"name": "m", "securityContext": {**RESTRICTED, "runAsUser": 0}}, hostUsers=False), {"spec.securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}, id="security_context: root of a user namespace"),
        pytest.param("security_context", {"profile": "restricted"}, pod({"name": "m", "securityContext": RESTRICTED}, securityContext={**WHOLE, "seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}), {}, id="security_context: met already"),
        pytest.param("security_context", {"profile": "baseline"}, POD, {}, id="security_context: baseline only forbids"),
        pytest.param("security_context", {"pod_fields": {"fsGroup": 1, "runAsUser": None, "seccompProfile": {"type": "RuntimeDefault"}}}, pod(securityContext={"runAsUser": 5, "seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}), {"spec.securityContext": {"fsGroup": 1, "seccompProfile": {"type": "RuntimeDefault"}}}, id="security_context: a union is replaced whole"),
        pytest.param("security_context", {"pod_fields": {"runAsUser": None}, "container_fields": {"privileged": None}}, pod({"name": "m", "securityContext": {"privileged": True}}), {"spec.containers[m].securityContext": ABSENT}, id="security_context: emptied"),
        pytest.param("security_context", {"container_fields": {"capabilities": {"add": ["CHOWN"]}}, "containers": ["s*"]}, pod({"name": "main"}, {"name": "side", "securityContext": {"capabilities": {"add": ["KILL"], "drop": ["ALL"]}}}), {"spec.containers[side].securityContext": {"capabilities": {"add": ["CHOWN"], "drop": ["ALL"]}}}, id="security_context: capabilities are atomic"),
        pytest.param("security_context", {"profile": "restricted"}, SPARK, {f"spec.{role}": {"cores": cores, "podSecurityContext": WHOLE, "securityContext": RESTRICTED} for role, cores in (("driver", 1), ("executor", 4))}, id="security_context: Spark"),
        pytest.param("resource_caps", {"max": {"cpu": 4, "memory": "1Gi"}}, pod({"name": "m", "resources": {"requests": {"cpu": "4000m"}, "limits": {"memory": "1024Mi"}}}), {}, id="resource_caps: within"),
        pytest.param("resource_caps", {"max": {"cpu": 4}}, POD, {}, id="resource_caps: nothing asked for"),
    ],
)  # fmt: skip
def test_what_they_do(
    tailor: TailorBench, use: str, parameters: Any, obj: Any, changes: dict[str, Any]
) -> None:
    outcome = tailor.prove(use, obj, **parameters)
    outcome.assert_changes(changes)
    assert outcome.warnings == []


@pytest.mark.parametrize(
    "use", [use for use in USES if use not in ("resource_caps", "service_account")]
)
@pytest.mark.parametrize("obj", [POD, TASK, SPARK, ray({"x": 1})], ids=["pod", "task", "spark", "ray"])  # fmt: skip
def test_a_step_that_asks_for_nothing_changes_nothing(
    tailor: TailorBench, use: str, obj: Any
) -> None:
    outcome = tailor.prove(use, obj)
    assert outcome.after is obj
    assert outcome.warnings == []


def test_none_of_them_may_be_overridden_unless_a_config_says_so() -> None:
    assert not DEFAULT_USES & set(USES)


@pytest.mark.parametrize(
    ("use", "parameters", "obj", "message"),
    [
        ("volumes", {"add": [VOLUME]}, pod(volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}]), "another source; ask for `replace`"),
        ("volumes", {"mount": [MOUNT]}, pod({"name": "m", "volumeMounts": [{"name": "w", "mountPath": "/data/"}]}), "/data is the mount of volume 'w' already; ask for `replace`"),
        ("volumes", {"mount": [MOUNT]}, pod({"name": "m", "volumeMounts": [{**MOUNT, "subPathExpr": "$(A)"}]}), "already"),
        ("volumes", {"mount": [{**MOUNT, "mountPropagation": "Bidirectional"}]}, pod({"name": "m", "volumeMounts": [MOUNT]}), "already"),
        ("init_containers", {"add": [INIT]}, pod(initContainers=[{"name": "warm", "image": "other"}]), "'warm' is there with other content; ask for `replace`"),
        ("init_containers", {"add": [INIT]}, pod({"name": "main"}, {"name": "warm"}), "'warm' is there as one of containers"),
        ("sidecars", {"add": [SIDE]}, pod({"name": "main"}, initContainers=[NATIVE]), "'side' is there as one of initContainers"),
        ("sidecars", {"add": [{"name": "main", "image": "x"}], "replace": True}, POD, "'main' is the primary container"),
        ("resource_caps", {"max": {"ephemeral-storage": "20Gi"}}, pod({"name": "m", "resources": {"requests": {"ephemeral-storage": "100Gi"}}}), "requests.ephemeral-storage 100Gi of container 'm' is more than the cap 20Gi"),
        ("resource_caps", {"max": {"cpu": 1}}, pod({"name": "m"}, initContainers=[{**INIT, "resources": {"limits": {"cpu": 2}}}]), "of container 'warm'"),
        ("resource_caps", {"max": {"cpu": 1}}, pod({"name": "m"}, resources={"limits": {"cpu": 2}}), "limits.cpu 2 of the pod is more"),
        ("resource_caps", {"max": {"nvidia.com/gpu": 4}}, {**TASK, "container": {"image": "i", "resources": {"limits": [{"name": "GPU", "value": "8"}]}}}, "limits.nvidia.com/gpu 8 of container"),
    ],
)  # fmt: skip
def test_what_is_never_done_in_silence(
    tailor: TailorBench, use: str, parameters: Any, obj: Any, message: str
) -> None:
    with pytest.raises(StepError) as caught:
        tailor.transform(use, obj, **parameters)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("use", "parameters", "obj", "message"),
    [
        ("volumes", {"mount": [MOUNT], "containers": ["nope*"]}, POD, "no container 'nope*'; the containers: main"),
        ("env_from", {"add": [CONFIG], "container": "nope"}, POD, "no container 'nope'; the containers are main"),
        ("sidecars", {"remove": ["main"]}, POD, "'main' is the primary container"),
        ("resource_caps", {"max": {"cpu": 1}}, SPARK, "no cap of cpu reaches Spark"),
        ("security_context", {"profile": "baseline"}, pod(hostNetwork=True), "hostNetwork: true"),
        ("service_account", {"name": "a", "automount_token": True}, SPARK, "automountServiceAccountToken"),
        ("service_account", {"name": "a"}, {**TASK, "type": "spark"}, "not read by Flyte's Spark plugin"),
        ("image_pull_secrets", {"add": [{"name": "a"}]}, {**TASK, "type": "spark"}, "not read by Flyte's Spark plugin"),
        ("volumes", {"add": [VOLUME]}, {**TASK, "type": "spark"}, "not read by Flyte's Spark plugin"),
        ("sidecars", {"add": [SIDE]}, {**TASK, "type": "spark"}, "not read by Flyte's Spark plugin"),
        ("service_account", {"name": "a"}, ray(), "puts the service account of the execution there"),
    ],
)  # fmt: skip
def test_what_has_no_place_is_told(
    tailor: TailorBench, use: str, parameters: Any, obj: Any, message: str
) -> None:
    outcome = tailor.transform(use, obj, **parameters)
    outcome.assert_unchanged()
    assert any(message in warning for warning in outcome.warnings)


@pytest.mark.parametrize(
    ("use", "parameters", "message"),
    [
        ("env_from", {"add": [{"prefix": "A"}]}, "one of configMapRef and secretRef"),
        ("env_from", {"add": [{**CONFIG, **SECRET}]}, "one of configMapRef and secretRef"),
        ("image_pull_secrets", {"add": [{"name": "No Name"}]}, "No Name"),
        ("service_account", {"name": ""}, "name ''"),
        ("volumes", {"add": [{"name": "v"}]}, "one source, found none"),
        ("volumes", {"add": [{**VOLUME, "hostPath": {"path": "/"}}]}, "one source, found emptyDir, hostPath"),
        ("volumes", {"add": [{"name": "v", "emptydir": {}}]}, "did you mean emptyDir"),
        ("volumes", {"add": [{"name": "V_1", "emptyDir": {}}]}, "V_1"),
        ("volumes", {"mount": [{"name": "v"}]}, "mountPath"),
        ("init_containers", {"add": [{"name": "a"}]}, "image"),
        ("sidecars", {"add": [{**SIDE, "imagePullpolicy": "Always"}]}, "did you mean imagePullPolicy"),
        ("sidecars", {"add": [{**SIDE, "restartPolicy": "always"}]}, "'Always'"),
        ("sidecars", {"add": [{**SIDE, "resources": {"limits": {"memory": "1g"}}}]}, "write 1G or 1Gi"),
        ("security_context", {"profile": "privileged"}, "'baseline' or 'restricted'"),
        ("security_context", {"pod_fields": {"privileged": True}}, "privileged"),
        ("resource_caps", {"max": {"cpu": "x"}}, "not a quantity"),
        ("resource_caps", {"max": {"cpu": 1}, "on_excess": "cut"}, "'refuse' or 'reduce'"),
    ],
)  # fmt: skip
def test_parameters_are_checked_when_they_are_read(
    tailor: TailorBench, use: str, parameters: Any, message: str
) -> None:
    chain = f"chains: {{default: {{steps: [{{use: {use}, with: {json.dumps(parameters)}}}]}}}}"
    with pytest.raises(ConfigError) as caught:
        tailor.chain(chain)
    assert message in str(caught.value)


def test_texts_of_a_container_stay_texts(tailor: TailorBench) -> None:
    chain = tailor.chain(
        "chains: {default: {steps: [{use: sidecars, with: {add: [{name: side, image: i, "
        "args: [--port, 8080, yes], ports: [{containerPort: 8080}], env: [{name: A, value: 1.10}], "
        "restartPolicy: Always, resources: {limits: {cpu: 1}}}]}}]}}"
    )
    assert chain.run(POD)["spec.initContainers[side]"] == {
        "name": "side",
        "image": "i",
        "args": ["--port", "8080", "yes"],
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "A", "value": "1.10"}],
        "restartPolicy": "Always",
        "resources": {"limits": {"cpu": "1"}},
    }


# ------------------------------------------------------------------------------------------ layers


@pytest.mark.parametrize(
    ("spec", "after"),
    [
        ({}, {"serviceAccountName": "team"}),
        ({"serviceAccountName": "mine"}, None),
        ({"serviceAccount": "mine"}, None),
        (
            {"serviceAccountName": "default", "serviceAccount": "default"},
            {"serviceAccountName": "team"},
        ),
    ],
)
def test_a_default_does_not_beat_the_authors_service_account(
    tailor: TailorBench, spec: Any, after: Any
) -> None:
    chain = tailor.chain("chains: {default: {defaults: [{use: service_account, with: {name: team}}]}}")  # fmt: skip
    found = chain.prove(pod(**spec)).after["spec"]
    assert {k: v for k, v in found.items() if k != "containers"} == (spec if after is None else after)  # fmt: skip


def test_a_default_profile_leaves_what_the_author_said(tailor: TailorBench) -> None:
    chain = tailor.chain(
        "chains: {default: {defaults: [{use: security_context, with: {profile: restricted}}]}}"
    )
    own = {"allowPrivilegeEscalation": True, "capabilities": {"drop": ["NET_RAW"]}}
    outcome = chain.prove(pod({"name": "m", "securityContext": own}))
    outcome.assert_changes({"spec.securityContext": WHOLE})


def test_a_cap_in_enforce_beats_an_override(tailor: TailorBench) -> None:
    text = (
        "chains: {{default: {{steps: [{{use: resources, with: {{limits: {{memory: 100Gi}}}}}}],"
        " enforce: [{{use: resource_caps, with: {{max: {{memory: 20Gi}}, on_excess: {how}}}}}]}}}}"
    )
    with pytest.raises(StepError, match="memory 100Gi of container 'main' is more than the cap 20"):
        tailor.chain(text.format(how="refuse")).run(POD)


@pytest.mark.parametrize(
    ("resources", "after"),
    [
        ({"requests": {"memory": "8Gi"}, "limits": {"memory": "8Gi"}}, {"requests": {"memory": "4Gi"}, "limits": {"memory": "4Gi"}}),
        ({"requests": {"memory": "1Gi"}, "limits": {"memory": "8Gi"}}, {"requests": {"memory": "1Gi"}, "limits": {"memory": "4Gi"}}),
        ({"limits": {"nvidia.com/gpu": 8}, "requests": {"nvidia.com/gpu": 8}}, {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}),
    ],
)  # fmt: skip
def test_reducing_to_a_cap_is_told(tailor: TailorBench, resources: Any, after: Any) -> None:
    obj = pod({"name": "m", "resources": resources}, resources=resources)
    caps = {"memory": "4Gi", "nvidia.com/gpu": 2}
    outcome = tailor.prove("resource_caps", obj, max=caps, on_excess="reduce")
    outcome.assert_changes({"spec.containers[m].resources": after, "spec.resources": after})
    assert len(outcome.warnings) == 2
    assert all("to which it is reduced" in warning for warning in outcome.warnings)


def test_a_cap_reaches_the_replicas_of_a_task(tailor: TailorBench) -> None:
    replica = {"replicas": 1, "resources": {"limits": [{"name": "GPU", "value": "8"}]}}
    task = {**TASK, "type": "pytorch", "custom": {"workerReplicas": replica}}
    outcome = tailor.prove("resource_caps", task, max={"nvidia.com/gpu": 2}, on_excess="reduce")
    limits = outcome["custom.workerReplicas.resources.limits"]
    assert limits == [{"name": "GPU", "value": "2"}]


# ------------------------------------------------------------------------------------------- Flyte


def test_a_flyte_task_ends_with_its_primary_container(tailor: TailorBench) -> None:
    outcome = tailor.prove("sidecars", TASK, add=[SIDE])
    assert outcome.warnings == []
    assert outcome["config.primary_container_name"] == "primary"
    assert outcome["metadata.metadata.annotations"] == {"primary_container_name": "primary"}
    assert [c["name"] for c in outcome["k8sPod.podSpec.containers"]] == ["primary", "side"]


@pytest.mark.parametrize(
    "task",
    [
        {**TASK, "type": "raw-container"},
        # Copilot uploads the outputs when the task's container is done.
        {**TASK, "container": {"image": "i", "args": ["x"], "dataConfig": {"enabled": True}}},
        {**TASK, "container": None, "config": {"primary_container_name": "a"}, "k8sPod": {"podSpec": {"containers": [{"name": "a"}, {"name": "b"}]}}},
    ],
    ids=["raw container", "copilot", "several"],
)  # fmt: skip
def test_flyte_still_waits_for_what_must_end(tailor: TailorBench, task: Any) -> None:
    given_ = {key: value for key, value in task.items() if value is not None}
    outcome = tailor.prove("sidecars", given_, add=[SIDE])
    assert outcome["metadata.metadata.annotations.primary_container_name"] is None
    assert "ends only when 'side' does" in outcome.warnings[0]


def test_of_a_pod_task_flyte_knows_the_primary_container(tailor: TailorBench) -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    task = {
        "type": "sidecar",
        "id": {"name": "t"},
        "config": {"primary_container_name": "a"},
        "k8sPod": {"podSpec": spec},
    }
    outcome = tailor.prove("sidecars", task, add=[SIDE])
    outcome.assert_changes({"k8sPod.podSpec.containers": [*spec["containers"], SIDE]})
    assert outcome.warnings == []


def test_the_author_of_a_pod_says_which_container_ends_it(tailor: TailorBench) -> None:
    said = {"annotations": {"primary_container_name": "b"}}
    outcome = tailor.prove("sidecars", pod({"name": "a"}, {"name": "b"}, metadata=said), add=[SIDE])
    outcome.assert_changes({"spec.containers": [{"name": "a"}, {"name": "b"}, SIDE]})


@pytest.mark.parametrize(
    "obj",
    [
        pod({"name": "a"}, metadata={"labels": FLYTE["labels"]}, restartPolicy="Never"),
        {**TASK, "type": "pytorch"},
        ray(),
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": {"containers": [{"name": "main"}], "restartPolicy": "OnFailure"}}}},
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j"}, "spec": {"pytorchReplicaSpecs": {"Master": {"template": {"spec": {"containers": [{"name": "pytorch"}]}}}}}},
        # Pods of a job end when all their containers do, whoever labelled them.
        {**pod(metadata={**FLYTE, "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "controller": True}]}), "spec": {"containers": [{"name": "pytorch"}], "restartPolicy": "Never"}},
    ],
    ids=["pod", "pytorch", "ray", "job", "pytorchjob", "child"],
)  # fmt: skip
def test_a_sidecar_that_keeps_its_pod_from_ending_is_told(tailor: TailorBench, obj: Any) -> None:
    def run(container: Any) -> list[str]:
        steps = [{"use": "sidecars", "with": {"add": [container]}}]
        return tailor.chain(json.dumps({"chains": {"default": {"steps": steps}}})).run(obj).warnings

    assert ["ends only when 'side' does" in warning for warning in run(SIDE)] == [True]
    assert run(NATIVE) == []


@pytest.mark.parametrize(
    ("use", "field", "container"),
    [
        ("sidecars", "containers", SIDE),
        ("sidecars", "initContainers", NATIVE),
        ("init_containers", "initContainers", INIT),
    ],
)
def test_containers_of_a_ray_group_come_from_the_tasks_own_pod(
    tailor: TailorBench, use: str, field: str, container: Any
) -> None:
    group = ray({"x": 1})
    outcome = tailor.prove(use, group, add=[container])
    assert container in outcome[f"k8sPod.podSpec.{field}"]
    assert outcome["custom"] == group["custom"]
    refused = tailor.transform("patch", group, when={"role": "head"}, pod={field: [container]})
    refused.assert_unchanged()
    assert "would be dropped: Flyte lays the containers of a group over" in refused.warnings[0]


# ---------------------------------------------------------------------------------- pod security


FORBIDDEN: dict[str, dict[str, Any]] = {
    "hostPID: true": pod(hostPID=True),
    "the volume 'v' is a hostPath": pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
    "container 'm''s hostPort: 80": pod({"name": "m", "ports": [{"hostPort": 80}]}),
    "the pod's securityContext.sysctls: kernel.msgmax": pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}]}),
    "the pod's securityContext.seccompProfile.type: Unconfined": pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
    "container 'm''s securityContext.privileged: true": pod({"name": "m", "securityContext": {"privileged": True}}),
    "container 'i''s securityContext.procMount: Unmasked": pod(initContainers=[{"name": "i", "securityContext": {"procMount": "Unmasked"}}]),
    "container 'm''s securityContext.capabilities.add: NET_ADMIN": pod({"name": "m", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}),
    "container 'm''s securityContext.seLinuxOptions.user: u": pod({"name": "m", "securityContext": {"seLinuxOptions": {"user": "u"}}}),
    "container 'm''s securityContext.appArmorProfile.type: Unconfined": pod({"name": "m", "securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
    "container 'm''s livenessProbe.httpGet.host: h": pod({"name": "m", "livenessProbe": {"httpGet": {"host": "h"}}}),
    "container 'm''s lifecycle.preStop.tcpSocket.host: h": pod({"name": "m", "lifecycle": {"preStop": {"tcpSocket": {"host": "h"}}}}),
    "the pod's securityContext.windowsOptions.hostProcess: true": pod(securityContext={"windowsOptions": {"hostProcess": True}}),
    "the annotation container.apparmor.security.beta.kubernetes.io/m: unconfined": pod(metadata={"annotations": {"container.apparmor.security.beta.kubernetes.io/m": "unconfined"}}),
}  # fmt: skip
FORBIDDEN_IN_RESTRICTED = {
    "the pod's securityContext.runAsUser: 0": pod(securityContext={"runAsUser": 0}),
    "the volume 'v' is a nfs": pod(volumes=[{"name": "v", "nfs": {}}]),
    "container 'm''s securityContext.capabilities.add: CHOWN": pod({"name": "m", "securityContext": {"capabilities": {"add": ["CHOWN"]}}}),
}  # fmt: skip


@pytest.mark.parametrize("fault", [*FORBIDDEN, *FORBIDDEN_IN_RESTRICTED])
def test_what_a_profile_forbids_is_named_and_never_taken_off(
    tailor: TailorBench, fault: str
) -> None:
    obj = {**FORBIDDEN, **FORBIDDEN_IN_RESTRICTED}[fault]
    restricted = tailor.transform("security_context", obj, profile="restricted")
    restricted.assert_unchanged()
    assert fault.replace("''", "'") in restricted.warnings[0].replace("''", "'")
    baseline = tailor.transform("security_context", obj, profile="baseline")
    baseline.assert_unchanged()
    assert bool(baseline.warnings) is (fault in FORBIDDEN)


def test_in_enforce_the_pod_is_refused_with_every_fault(tailor: TailorBench) -> None:
    chain = tailor.chain(
        "chains: {default: {enforce: [{use: security_context, with: {profile: baseline}}]}}"
    )
    with pytest.raises(StepError, match="hostPID: true; container 'm''s hostPort: 80"):
        chain.run(pod({"name": "m", "ports": [{"hostPort": 80}]}, hostPID=True))


# --------------------------------------------------------------------------------------- together


ADD: dict[str, Any] = {
    "env_from": {"add": [CONFIG]},
    "image_pull_secrets": {"add": [{"name": "a"}]},
    "service_account": {"name": "a"},
    "init_containers": {"add": [INIT]},
    "sidecars": {"add": [SIDE, {**NATIVE, "name": "native"}]},
}
TO_EVERY: dict[str, Any] = {
    "volumes": {"add": [VOLUME], "mount": [MOUNT], "containers": ["*"]},
    "security_context": {"profile": "restricted"},
    "resource_caps": {"max": {"cpu": 1}, "on_excess": "reduce"},
}
"""What is about every container comes after what adds one."""

PODS = {
    "pod": POD,
    "flyte": pod({"name": "a7k-n0-0", "resources": {"limits": {"cpu": 2}}}, metadata=FLYTE),
    "task": TASK,
    "ray": {**ray({"x": 1}), "type": "ray"},
}


@given(
    adding=st.permutations(sorted(ADD)),
    others=st.permutations(sorted(TO_EVERY)),
    start=st.sampled_from(sorted(PODS)),
)
def test_what_is_there_already_is_no_change_whatever_an_engine_added_to_it(
    tmp_path_factory: pytest.TempPathFactory, adding: list[str], others: list[str], start: str
) -> None:
    if start == "ray":
        adding = [use for use in adding if use != "service_account"]
    steps = [{"use": use, "with": {**ADD, **TO_EVERY}[use]} for use in (*adding, *others)]
    bench = TailorBench(tmp_path_factory.mktemp("any"))
    chain = bench.chain(json.dumps({"chains": {"default": {"steps": steps}}}))
    grown = deep_copy(chain.prove(PODS[start]).after)
    spec = grown["k8sPod"]["podSpec"] if "k8sPod" in grown else grown["spec"]
    for container in (*spec["containers"], *spec["initContainers"]):
        container["terminationMessagePath"] = "/dev/termination-log"
        container.setdefault("env", []).append({"name": "FLYTE_INTERNAL_TASK", "value": "t"})
    chain.prove(grown).assert_unchanged()
