"""Volumes and containers, which are known by name, and what an engine adds to them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.workloads import (
    BUILTIN_KINDS,
    CannotChangeError,
    ConflictError,
    InvalidObjectError,
    KindTable,
    Pod,
    Workload,
)
from kubetailor.workloads.filled import rederived

TABLE = KindTable(BUILTIN_KINDS)


def pod_of(**spec: Any) -> Pod:
    containers = spec.pop("containers", [{"name": "main", "image": "img"}])
    obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
    }
    return workload_of(obj).pods()[0]


def workload_of(obj: Any) -> Workload:
    kind = TABLE.of(obj)
    assert kind is not None
    return Workload(obj, kind)


def spec_of(pod: Pod) -> Any:
    return pod.workload.commit()["spec"]


# ----------------------------------------------------------------------------------------- volumes


@pytest.mark.parametrize(
    ("asked", "filled"),
    [
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"emptyDir": {"sizeLimit": "1024Mi"}}, {"emptyDir": {"sizeLimit": "1Gi"}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            {"persistentVolumeClaim": {"claimName": "c", "readOnly": False}},
            {"persistentVolumeClaim": {"claimName": "c"}},
        ),
        (
            {"image": {"reference": "i:1"}},
            {"image": {"reference": "i:1", "pullPolicy": "IfNotPresent"}},
        ),
        (
            {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "a"}}]}},
            {
                "downwardAPI": {
                    "items": [{"path": "l", "fieldRef": {"fieldPath": "a", "apiVersion": "v1"}}],
                    "defaultMode": 420,
                }
            },
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 420,
                }
            },
        ),
    ],
    ids=lambda value: next(iter(value)),
)
def test_a_volume_is_itself_with_what_the_api_server_fills_in(asked: Any, filled: Any) -> None:
    for there, wanted in ((filled, asked), (asked, filled)):
        pod = pod_of(volumes=[{"name": "v", **there}])
        before = pod.workload.commit()
        pod.add_volume("v", wanted)
        assert pod.workload.commit() is before


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ({"emptyDir": {"medium": "Memory"}}, {"emptyDir": {}}),
        ({"emptyDir": {}}, {"emptyDir": {"medium": "Memory"}}),
        ({"secret": {"secretName": "s", "defaultMode": 256}}, {"secret": {"secretName": "s"}}),
        ({"secret": {"secretName": "s"}}, {"configMap": {"name": "s"}}),
        ({"secret": {"items": [{"key": "a"}]}}, {"secret": {"items": [{"key": "b"}]}}),
    ],
)
def test_a_volume_with_another_source_is_not(there: Any, wanted: Any) -> None:
    pod = pod_of(volumes=[{"name": "v", **there}])
    with pytest.raises(ConflictError, match="ask for `replace`"):
        pod.add_volume("v", wanted)
    pod.add_volume("v", wanted, replace=True)
    assert spec_of(pod)["volumes"] == [{"name": "v", **wanted}]


@pytest.mark.parametrize(
    "there",
    [
        {"name": "w"},
        {"name": "v", "subPath": "a"},
        {"name": "v", "readOnly": True},
        {"name": "v", "mountPropagation": "Bidirectional"},
    ],
)
def test_a_mount_is_known_by_all_that_is_asked(there: Any) -> None:
    wanted = {"name": "v", "mountPath": "/d", "readOnly": False, "mountPropagation": "None"}
    pod = pod_of(
        containers=[
            {
                "name": "m",
                "volumeMounts": [{"mountPath": "/d/", "mountPropagation": "None", **there}],
            }
        ]
    )
    with pytest.raises(ConflictError, match="/d is the mount of volume"):
        pod.primary.add_mount(wanted)
    pod.primary.add_mount(wanted, replace=True)
    assert spec_of(pod)["containers"][0]["volumeMounts"] == [wanted]


# -------------------------------------------------------------------------------------- containers

CONTAINER: dict[str, Any] = {
    "name": "c",
    "image": "i",
    "args": ["a", "b"],
    "env": [{"name": "A", "value": ""}],
    "resources": {"requests": {"cpu": "1000m"}},
    "ports": [{"containerPort": 1}],
    "securityContext": {"capabilities": {"drop": ["ALL"]}},
    "tty": False,
}


@st.composite
def grown(draw: st.DrawFn, value: Any, field: str = "") -> Any:
    """A container with more in it: keys, and entries of the lists that have an identity."""
    if isinstance(value, dict):
        found = {key: draw(grown(item, key)) for key, item in value.items()}
        return found | ({"more": 1} if draw(st.booleans()) else {})
    if isinstance(value, list):
        entries = [draw(grown(item)) for item in value]
        if field in ("env", "ports") and draw(st.booleans()):
            entries.insert(0, {"name": "Z", "containerPort": 2})
        return entries
    return {"1000m": "1"}.get(value, value) if isinstance(value, str) else value


@given(there=grown(CONTAINER))
def test_a_container_with_more_in_it_is_itself(there: Any) -> None:
    pod = pod_of(initContainers=[there, {"name": "z"}])
    before = pod.workload.commit()
    pod.add_container(CONTAINER, init=True)
    assert pod.workload.commit() is before


@pytest.mark.parametrize(
    "other",
    [
        {"image": "j"},
        {"args": ["a"]},
        {"args": ["a", "b", "c"]},
        {"env": None},
        {"env": [{"name": "A", "valueFrom": {}, "value": "x"}]},
        {"resources": {"requests": {"cpu": "2"}}},
        {"resources": None},
        {"securityContext": {"capabilities": {"drop": ["KILL", "ALL"]}}},
        {"ports": [{"containerPort": 1, "protocol": "UDP"}]},
    ],
)
def test_a_container_with_other_content_is_not(other: dict[str, Any]) -> None:
    pod = pod_of(initContainers=[{**CONTAINER, **other}])
    with pytest.raises(ConflictError, match="container 'c' is there with other content"):
        pod.add_container(CONTAINER, init=True)
    pod.add_container(CONTAINER, init=True, replace=True)
    assert spec_of(pod)["initContainers"] == [CONTAINER]


def test_a_name_is_in_one_list_alone() -> None:
    pod = pod_of(containers=[{"name": "main"}, CONTAINER])
    with pytest.raises(ConflictError, match="container 'c' is there as one of containers"):
        pod.add_container(CONTAINER, init=True)
    pod.add_container(CONTAINER, init=True, replace=True)
    assert spec_of(pod) == {"containers": [{"name": "main"}], "initContainers": [CONTAINER]}


def test_a_pod_keeps_a_container() -> None:
    pod = pod_of()
    with pytest.raises(CannotChangeError, match="'main' is the only container"):
        pod.remove_container("main")
    with pytest.raises(InvalidObjectError, match="container 'X'"):
        pod.add_container({"name": "X", "image": "i"})


def test_every_container_of_a_name_goes() -> None:
    twice = [{"name": "a", "image": "1"}, {"name": "main"}, {"name": "a", "image": "2"}]
    pod = pod_of(containers=twice, initContainers=[{"name": "a"}])
    pod.remove_container("a")
    assert spec_of(pod) == {"containers": [{"name": "main"}]}
    alone = pod_of(containers=[{"name": "main"}, {"name": "main"}])
    with pytest.raises(CannotChangeError, match="'main' is the only container"):
        alone.remove_container("main")


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod.set_env("A", "1"),
        lambda pod: pod.primary.set_image("j"),
        lambda pod: pod.container("main").set_resources({"cpu": "1"}),
        lambda pod: pod.container("i").set_env("A", "1"),
    ],
)
def test_of_several_of_one_name_none_is_changed_and_the_others_left(change: Any) -> None:
    pod = pod_of(
        containers=[{"name": "main"}, {"name": "main"}],
        initContainers=[{"name": "i"}, {"name": "i"}],
    )
    before = copy.deepcopy(spec_of(pod))
    with pytest.raises(CannotChangeError, match=r"2 containers are called '\w+': which"):
        change(pod)
    assert spec_of(pod) == before


@pytest.mark.parametrize("init", [True, False])
def test_what_one_step_takes_off_and_another_adds_is_told(init: bool) -> None:
    """It would be written anew on each pass, over what an engine has added since."""
    pod = pod_of(**{"initContainers" if init else "containers": [{"name": "main"}, CONTAINER]})
    workload = pod.workload
    workload.writer = ("steps", "first", 0)
    pod.remove_container("c")
    workload.writer = ("steps", "second", 1)
    pod.add_container(CONTAINER, init=init)
    (note,) = workload.notes
    assert note.text == "c: step 'second' sets 'c', where 'first' set None; the later one wins"
    # Each alone says nothing, nor does one step that does both.
    workload.notes.clear()
    pod.add_container(CONTAINER, init=init)
    pod.remove_container("c")
    pod.add_container(CONTAINER, init=init)
    assert workload.notes == []


def test_what_is_given_is_not_shared() -> None:
    pod, wanted = pod_of(), copy.deepcopy(CONTAINER)
    pod.add_container(wanted)
    pod.container("c").set_env("A", "2")
    pod.workload.commit()
    assert wanted == CONTAINER


def test_every_container_is_found_and_laid_over() -> None:
    pod = pod_of(initContainers=[{"name": "i"}], ephemeralContainers=[{"name": "e"}])
    assert [container.name for container in pod.every_container] == ["main", "i", "e"]
    for container in pod.every_container:
        container.merge({"envFrom": [{"secretRef": {"name": "s"}}], "tty": True})
        assert container.get("envFrom", 0) == {"secretRef": {"name": "s"}}
    assert all(c["tty"] for c in spec_of(pod)["ephemeralContainers"])


def test_a_profile_is_one_of_several_and_never_mixed() -> None:
    local = {"type": "Localhost", "localhostProfile": "x"}
    pod = pod_of(securityContext={"seccompProfile": local, "appArmorProfile": local, "fsGroup": 1})
    default = {"type": "RuntimeDefault"}
    pod.merge({"securityContext": {"seccompProfile": default, "appArmorProfile": default}})
    context = spec_of(pod)["securityContext"]
    assert context == {"seccompProfile": default, "appArmorProfile": default, "fsGroup": 1}


# ------------------------------------------------------------------------------------------- Flyte


def ray(**group: Any) -> dict[str, Any]:
    head = {"k8sPod": {"podSpec": {"containers": [{"name": "ray-head"}], **group}}}
    return {
        "type": "ray",
        "id": {"name": "t"},
        "container": {"image": "i", "args": []},
        "custom": {"rayCluster": {"headGroupSpec": head}},
    }


@pytest.mark.parametrize("init", [False, True])
def test_flyte_drops_containers_that_a_group_alone_has(init: bool) -> None:
    workload = workload_of(ray(initContainers=[{"name": "own"}]))
    head = workload.pods()[1]
    head.add_container(CONTAINER, init=init)
    with pytest.raises(CannotChangeError, match="the container 'c' of head would be dropped"):
        workload.commit()


@pytest.mark.parametrize("init", [False, True])
def test_what_the_tasks_own_pod_has_is_not_written_into_its_groups(init: bool) -> None:
    template = ray(initContainers=[{"name": "own"}])
    workload = workload_of(template)
    for pod in (*workload.pods(), *workload.pods()):
        pod.add_container(CONTAINER, init=init)
    after = workload.commit()
    assert after["custom"] == template["custom"]
    field = "initContainers" if init else "containers"
    assert CONTAINER in after["k8sPod"]["podSpec"][field]


def test_a_ray_task_has_no_service_account_of_its_own() -> None:
    workload = workload_of(ray())
    base, head = workload.pods()
    head.set_field("serviceAccountName", "a")
    workload.commit()
    base.set_field("serviceAccountName", "a")
    with pytest.raises(CannotChangeError, match="the service account of the execution"):
        workload.commit()


# ------------------------------------------------------------------------------------------- Spark


def test_driver_and_executor_share_the_secrets_of_the_application() -> None:
    obj = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
        "spec": {"imagePullSecrets": ["own", "old"], "driver": {}, "executor": {}},
    }
    workload = workload_of(obj)
    driver, executor = workload.pods()
    assert driver.get("imagePullSecrets") == [{"name": "own"}, {"name": "old"}]
    driver.merge({"imagePullSecrets": [{"name": "a"}]})
    executor.merge({"imagePullSecrets": [{"name": "b"}, {"name": "a"}]})
    workload.commit()
    driver.edit("imagePullSecrets", empty=list).remove({"name": "old"})
    assert workload.commit()["spec"]["imagePullSecrets"] == ["own", "a", "b"]
    workload = workload_of(workload.commit())
    for pod in workload.pods():
        pod.set_field("imagePullSecrets", None)
    assert "imagePullSecrets" not in workload.commit()["spec"]


# --------------------------------------------------------------------------------------- admission


def test_a_token_that_is_not_wanted_is_not_mounted() -> None:
    token = {"name": "kube-api-access-x", "projected": {}}
    mount = {"name": token["name"], "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    pod = pod_of(
        containers=[{"name": "m", "volumeMounts": [mount]}],
        initContainers=[{"name": "i", "volumeMounts": [mount]}],
        volumes=[token],
    )
    before = pod.workload.commit()
    pod.set_field("automountServiceAccountToken", False)
    after = rederived(before, pod.workload.commit())["spec"]
    assert after == {
        "containers": [{"name": "m"}],
        "initContainers": [{"name": "i"}],
        "automountServiceAccountToken": False,
    }


def test_a_volume_that_is_there_twice_goes_at_once() -> None:
    mounts = [{"name": "v", "mountPath": "/a"}]
    pod = pod_of(
        volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}],
        containers=[{"name": "main", "image": "a:1", "volumeMounts": mounts}],
    )
    pod.remove_volume("v")
    assert spec_of(pod) == {"containers": [{"name": "main", "image": "a:1"}]}
