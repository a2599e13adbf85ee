"""The author's own mistakes that never run: where the chain changed the map or the pod spec."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubetailor.workloads import BUILTIN_KINDS, InvalidObjectError, validate
from kubetailor.workloads.validation.authored import unread_fields

FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"args": ["--port", 8080]}, "containers[0].args[1]: args: the value must be a string"),
    ({"command": [True]}, "containers[0].command[0]: command: the value must be a string"),
    ({"env": [{"name": "A", "value": 1}]}, "containers[0].env[0]: A: the value must be a string"),
    ({"env": [{"name": "A", "value": False}]}, "found False; quote it"),
    (
        {"ports": [{"containerPort": "80"}]},
        'ports[0].containerPort: the port "80" must be a number',
    ),
    ({"ports": [{"containerPort": 70000}]}, "the port 70000 must be a number of at most 65535"),
    ({"ports": [{"containerPort": 80, "hostPort": True}]}, "ports[0].hostPort: the port True"),
    (
        {"livenessProbe": {"tcpSocket": {"port": "8080"}}},
        'containers[0].livenessProbe.tcpSocket.port: the port "8080" must be a number or a port',
    ),
    ({"readinessProbe": {"httpGet": {"port": "Web"}}}, 'httpGet.port: the port "Web"'),
    ({"startupProbe": {"httpGet": {"port": "a--b"}}}, 'the port "a--b"'),
    ({"startupProbe": {"httpGet": {"port": "a" * 16}}}, "must be a number or a port name"),
    ({"startupProbe": {"httpGet": {"port": 0}}}, "the port 0"),
    ({"startupProbe": {"httpGet": {"port": float("inf")}}}, "the port inf"),
    (
        {"lifecycle": {"preStop": {"httpGet": {"port": "1"}}}},
        "containers[0].lifecycle.preStop.httpGet.port",
    ),
]

FINE: list[dict[str, Any]] = [
    {"args": ["8080"], "command": [], "env": [{"name": "A"}, {"name": "B", "value": None}]},
    {"ports": [{"containerPort": 80.0, "hostPort": 0}, {"containerPort": 65535}]},
    {"livenessProbe": {"tcpSocket": {"port": "web-1"}, "httpGet": {"port": 1}}},
    {"livenessProbe": {"tcpSocket": {"port": "{{inputs.parameters.port}}"}}},
    {"readinessProbe": {"exec": {"command": ["true"]}}, "startupProbe": None, "lifecycle": None},
    {"env": None, "ports": None, "args": None, "command": "not a list"},
    {"env": ["odd"], "ports": ["odd"], "livenessProbe": "odd", "lifecycle": {"preStop": 1}},
]


def pod(where: str = "containers", **fields: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main"}]}
    spec[where] = [{"name": "main", **fields}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec}


def changed(obj: dict[str, Any]) -> dict[str, Any]:
    """The object with another field in its spec, all else shared, as a step leaves it."""
    return {**obj, "spec": {**obj["spec"], "hostIPC": False}}


@pytest.mark.parametrize(("fields", "message"), FAULTS)
@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_what_never_runs_is_told(where: str, fields: dict[str, Any], message: str) -> None:
    obj = pod(where, **fields)
    with pytest.raises(InvalidObjectError) as caught:
        validate(obj, changed(obj))
    assert message.replace("containers[", f"{where}[") in str(caught.value)
    # What the chain left alone is not looked at.
    validate(obj, {**obj, "metadata": {"labels": {"a": "b"}}})


@pytest.mark.parametrize("fields", FINE)
def test_what_runs_is_not(fields: dict[str, Any]) -> None:
    obj = pod(**fields)
    validate(obj, changed(obj))


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_a_map_that_changed_is_looked_at_whole(field: str) -> None:
    obj: dict[str, Any] = {**pod(), "metadata": {field: {"old": 1, "null": None}}}
    after = {**obj, "metadata": {field: {**obj["metadata"][field], "new": "x"}}}
    with pytest.raises(InvalidObjectError, match=rf"metadata.{field}: .*old: the value must be"):
        validate(obj, after)
    obj["metadata"][field]["old"] = after["metadata"][field]["old"] = "1"
    validate(obj, after)


def test_a_selector_is_looked_at_with_its_pod() -> None:
    obj = pod()
    obj["spec"]["nodeSelector"] = {"gpu": True, "null": None}
    with pytest.raises(InvalidObjectError, match=r"spec.nodeSelector: label gpu: .* found True"):
        validate(obj, changed(obj))


@pytest.mark.parametrize(
    ("kind", "field", "name"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
        ("TFJob", "tfReplicaSpecs", "tensorflow"),
        ("XGBoostJob", "xgbReplicaSpecs", "xgboost"),
        ("PaddleJob", "paddleReplicaSpecs", "paddle"),
        ("JAXJob", "jaxReplicaSpecs", "jax"),
    ],
)
def test_the_training_operator_asks_for_a_name(kind: str, field: str, name: str) -> None:
    def job(called: str) -> dict[str, Any]:
        template = {"spec": {"containers": [{"name": "sidecar"}, {"name": called}]}}
        spec = {field: {"Worker": {"replicas": 1, "template": template}}}
        return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {}, "spec": spec}

    def placed(obj: dict[str, Any]) -> dict[str, Any]:
        after = copy.deepcopy(obj)
        after["spec"][field]["Worker"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
        return after

    validate(job(name), placed(job(name)))
    wrong = job("main")
    with pytest.raises(InvalidObjectError) as caught:
        validate(wrong, placed(wrong))
    assert str(caught.value) == (
        f"spec.{field}.Worker.template.spec.containers: a container of a {kind} must be called "
        f"{name}, found sidecar, main"
    )
    validate(wrong, {**wrong, "metadata": {"labels": {"a": "b"}}})
    # Of another group it is somebody else's kind, and what is no map is nobody's.
    other = {**wrong, "apiVersion": "acme.io/v1"}
    validate(other, {**placed(wrong), "apiVersion": "acme.io/v1"})
    odds: list[Any] = [None, [], {field: None}, {field: {"Worker": None}}]
    for odd in odds:
        validate({**wrong, "spec": odd}, {**wrong, "spec": odd, "metadata": {"labels": {"a": "b"}}})


def test_a_field_that_nothing_reads_is_told_of_every_kind_that_has_pods_below() -> None:
    """Save of those that read such fields beside their templates, or have none."""
    obj: Any = {"spec": {"nodeSelector": {"a": "b"}, "tolerations": None}}
    silent = {kind.name for kind in BUILTIN_KINDS if not list(unread_fields(obj, kind))}
    # The pod itself, what holds one as it is, and those whose own specs have such fields.
    assert {"Pod", "PodTemplate", "TaskTemplate", "SparkApplication", "Workflow"} <= silent
    assert not silent & {"Job", "Deployment", "MPIJob", "PyTorchJob", "JobSet", "RayJob"}
    (mpi,) = [kind for kind in BUILTIN_KINDS if kind.name == "MPIJob"]
    assert list(unread_fields(obj, mpi)) == [
        (
            "spec.nodeSelector is not read by MPIJob; write it in the pod templates",
            "spec.nodeSelector",
        )
    ]
    assert list(unread_fields({"spec": []}, mpi)) == list(unread_fields({}, mpi)) == []
