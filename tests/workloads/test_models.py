"""Models of kubernetes.client as views: what the client does not know survives."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from kubernetes.client import V1Container, V1EnvVar, V1PodSpec, V1ResourceRequirements, V1Toleration

from kubetailor.workloads.models import from_model, pod_spec_model, through_model

SPEC: dict[str, Any] = {
    "futureField": {"deep": [1, {"camelCase": True}]},
    "nodeSelector": None,
    "tolerations": [{"key": "a", "operator": "Exists", "futureKey": 1}],
    "containers": [
        {
            "name": "main",
            "image": "img",
            "env": None,
            "ports": [{"containerPort": 8080, "x-vendor": "keep"}],
            "readinessProbe": {"httpGet": {"port": "web", "path": "/"}},
            "livenessProbe": {"tcpSocket": {"port": 8080}},
            "resources": {"limits": {"cpu": 16, "memory": "1Gi", "nvidia.com/gpu": 1}},
            "x-vendor": "keep-me",
        },
        {"name": "side", "futureField": None},
    ],
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": []}],
}


def test_a_function_that_changes_nothing_changes_nothing() -> None:
    assert through_model(SPEC, lambda spec: None) is SPEC
    assert through_model(SPEC, lambda spec: spec) is SPEC
    assert through_model(SPEC, lambda spec: pod_spec_model(SPEC)) is SPEC


def test_only_the_difference_is_written_back() -> None:
    def change(spec: Any) -> None:
        spec.tolerations.append(V1Toleration(key="b", operator="Exists"))
        spec.node_selector = {"a": "b"}
        spec.containers[0].env = [V1EnvVar(name="A", value="1")]
        spec.containers[0].resources.limits["memory"] = "2Gi"
        spec.service_account_name = "robot"

    before = copy.deepcopy(SPEC)
    after = through_model(SPEC, change)
    assert before == SPEC
    expected = copy.deepcopy(SPEC)
    expected["tolerations"].append({"key": "b", "operator": "Exists"})
    expected["nodeSelector"] = {"a": "b"}
    expected["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    expected["containers"][0]["resources"]["limits"]["memory"] = "2Gi"
    expected["serviceAccountName"] = "robot"
    assert after == expected
    assert after["futureField"] is SPEC["futureField"]
    assert after["containers"][1] is SPEC["containers"][1]


def test_entries_that_come_before_others_move_no_unknown_field() -> None:
    def change(spec: Any) -> V1PodSpec:
        spec.containers.insert(0, V1Container(name="first", image="x"))
        spec.tolerations = [V1Toleration(key="z", operator="Exists"), *spec.tolerations]
        spec.containers[1].image = "other"
        return spec

    after = through_model(SPEC, change)
    first, main, side = after["containers"]
    assert first == {"name": "first", "image": "x"}
    assert main == {**SPEC["containers"][0], "image": "other"}
    assert side is SPEC["containers"][1]
    assert after["tolerations"] == [{"key": "z", "operator": "Exists"}, SPEC["tolerations"][0]]


def test_a_new_model_in_the_place_of_the_old_one() -> None:
    def change(spec: V1PodSpec) -> V1PodSpec:
        return V1PodSpec(
            containers=[
                V1Container(name="main", resources=V1ResourceRequirements(limits={"cpu": "1"}))
            ]
        )

    after = through_model({"containers": [{"name": "main", "image": "x", "unknown": 1}]}, change)
    assert after == {
        "containers": [{"name": "main", "unknown": 1, "resources": {"limits": {"cpu": "1"}}}]
    }


def test_a_spec_without_containers_is_one_that_is_laid_over_another() -> None:
    def change(spec: V1PodSpec) -> None:
        spec.priority_class_name = "high"

    assert through_model({}, change) == {"priorityClassName": "high"}


@pytest.mark.parametrize("port", [8080, "web"])
def test_int_or_string_stays_what_it_is(port: Any) -> None:
    container = {"name": "a", "livenessProbe": {"tcpSocket": {"port": port}}}
    model = pod_spec_model({"containers": [container]})
    assert from_model(model)["containers"][0] == container
