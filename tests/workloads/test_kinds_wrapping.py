"""Kinds that hold others, or the fields of a pod among their own."""

from __future__ import annotations

from typing import Any

import pytest

from kubetailor.workloads import (
    BUILTIN_KINDS,
    CannotChangeError,
    Kind,
    KindTable,
    PodPath,
    UnknownKindError,
    Workload,
)

TABLE = KindTable(BUILTIN_KINDS)
POD: Any = {"containers": [{"name": "c", "image": "i"}]}
TOLERATION = {"key": "t", "operator": "Exists"}


def workload_of(obj: Any, table: KindTable = TABLE) -> Workload:
    kind = table.of(obj)
    assert kind is not None
    return Workload(obj, kind)


# ------------------------------------------------------------------------------------ AppWrapper


def wrapped(*components: Any) -> dict[str, Any]:
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "a"},
        "spec": {"components": list(components)},
    }


def ray() -> Any:
    container = {"name": "ray-head", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    head = {
        "rayStartParams": {"num-gpus": "1"},
        "template": {"spec": {"containers": [container]}},
    }
    cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {"headGroupSpec": head}}
    return {"template": cluster}


def spark() -> Any:
    app = {"driver": {"cores": 1}, "executor": {"cores": 1}}
    kind = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "spec": app}
    return {"template": kind}


def torch(**template: Any) -> Any:
    specs = {"Master": {"template": {"spec": {"containers": [{"name": "pytorch"}], **template}}}}
    kind = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    return {"template": {**kind, "spec": {"pytorchReplicaSpecs": specs}}}


def test_the_pods_of_what_is_wrapped_are_changed_as_their_kind_does() -> None:
    obj = wrapped(ray(), {"template": {"apiVersion": "v1", "kind": "Service"}}, spark(), torch())
    workload = workload_of(obj)
    assert [pod.role for pod in workload.pods()] == ["head", "driver", "executor", "master"]
    for pod in workload.pods():
        pod.tolerate("t")
    workload.pods("head")[0].set_resources(limits={"nvidia.com/gpu": 2})
    found = [
        component["template"].get("spec") for component in workload.commit()["spec"]["components"]
    ]
    head = found[0]["headGroupSpec"]
    assert head["template"]["spec"]["tolerations"] == [TOLERATION]
    assert head["rayStartParams"] == {"num-gpus": "2"}
    assert found[2]["driver"] == {"cores": 1, "tolerations": [TOLERATION]}
    master = found[3]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert master["tolerations"] == [TOLERATION]


def test_what_is_ignored_within_is_refused() -> None:
    workload = workload_of(wrapped(torch()))
    workload.pods()[0].set_field("restartPolicy", "Never")
    with pytest.raises(CannotChangeError, match="restartPolicy of the pods of a PyTorchJob"):
        workload.commit()
    workload = workload_of(wrapped(spark()))
    workload.pods("driver")[0].set_field("runtimeClassName", "x")
    with pytest.raises(CannotChangeError, match="runtimeClassName of the driver"):
        workload.commit()


def test_rows_of_plugins_are_found_within() -> None:
    own = {"apiVersion": "acme.io/v1", "kind": "Run", "spec": {"template": {"spec": POD}}}
    table = KindTable(BUILTIN_KINDS)
    table.add(Kind("Run", "acme.io", (PodPath("trainer", "spec.template"),)))
    assert [pod.role for pod in workload_of(wrapped({"template": own}), table).pods()] == [
        "trainer"
    ]
    with pytest.raises(UnknownKindError, match=r"the kind Run of acme.io/v1 is not known"):
        workload_of(wrapped({"template": own})).pods()


def test_pod_sets_say_where_the_pods_of_an_unknown_kind_are() -> None:
    own: Any = {"apiVersion": "acme.io/v1", "kind": "Run"}
    own["spec"] = {"parts": [{"template": {"spec": POD}}], "other": {"spec": POD}}
    paths = ["template.spec.parts[0].template", "template.spec.other", "template.nowhere", "x", ""]
    component = {"template": own, "podSets": [*({"path": path} for path in paths), None]}
    workload = workload_of(wrapped(component))
    assert [pod.where() for pod in workload.pods()] == [
        "spec.components[0].template.spec.parts[0].template.spec",
        "spec.components[0].template.spec.other.spec",
    ]
    workload.pods()[0].label("l", "v")
    found = workload.commit()["spec"]["components"][0]["template"]["spec"]["parts"][0]["template"]
    assert found["metadata"] == {"labels": {"l": "v"}}


# -------------------------------------------------------------------- ScheduledSparkApplication


def test_a_scheduled_application_keeps_driver_and_executor_deeper() -> None:
    app = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "ScheduledSparkApplication",
        "metadata": {"name": "s"},
        "spec": {"schedule": "@daily", "template": {"driver": {}, "executor": {"cores": 1}}},
    }
    workload = workload_of(app)
    driver, executor = workload.pods()
    driver.add_volume("v", {"emptyDir": {}})
    executor.set_resources(limits={"nvidia.com/gpu": 1})
    executor.label("l", "v")
    assert workload.commit()["spec"]["template"] == {
        "driver": {},
        "executor": {
            "cores": 1,
            "gpu": {"name": "nvidia.com/gpu", "quantity": 1},
            "labels": {"l": "v"},
        },
        "volumes": [{"name": "v", "emptyDir": {}}],
    }


# ------------------------------------------------------------------------------ InferenceService


def service(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "s"},
        "spec": spec,
    }


@pytest.mark.parametrize("server", ["model", "huggingface", "triton"])
def test_a_server_has_the_fields_of_a_container(server: str) -> None:
    model = {"storageUri": "hf://m", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    workload = workload_of(service(predictor={server: model, "minReplicas": 1}))
    (pod,) = workload.pods()
    assert (pod.role, pod.primary.name) == ("predictor", "kserve-container")
    assert pod.requests("nvidia.com/gpu")
    pod.set_resources(limits={"nvidia.com/gpu": 2})
    pod.set_env("A", "1")
    pod.tolerate("t")
    pod.label("l", "v")
    pod.set_field("runtimeClassName", "nvidia")
    pod.edit("containers", empty=list).append({"name": "transformer-container", "image": "i"})
    assert workload.commit()["spec"]["predictor"] == {
        server: {
            "storageUri": "hf://m",
            "resources": {"limits": {"nvidia.com/gpu": "2"}},
            "env": [{"name": "A", "value": "1"}],
        },
        "minReplicas": 1,
        "tolerations": [TOLERATION],
        "runtimeClassName": "nvidia",
        "labels": {"l": "v"},
        "containers": [{"name": "transformer-container", "image": "i"}],
    }


def test_each_component_is_a_pod() -> None:
    worker = {"containers": [{"name": "worker-container"}], "pipelineParallelSize": 2}
    obj = service(
        predictor={"containers": [{"name": "kserve-container"}], "workerSpec": worker},
        transformer={"containers": [{"name": "kserve-container"}, {"name": "x"}]},
        explainer={"art": {"type": "SquareAttack"}},
        canary=[{"predictor": {"name": "next", "model": {}}, "trafficPercent": 5}],
    )
    workload = workload_of(obj)
    roles = ["predictor", "worker", "transformer", "explainer", "predictor:next"]
    assert [pod.role for pod in workload.pods()] == roles
    for pod in workload.pods():
        pod.set_env("A", "1")
        pod.tolerate("t")
    env = [{"name": "A", "value": "1"}]
    found = workload.commit()["spec"]
    assert found["predictor"] == {
        "containers": [{"name": "kserve-container", "env": env}],
        "workerSpec": {
            "containers": [{"name": "worker-container", "env": env}],
            "pipelineParallelSize": 2,
            "tolerations": [TOLERATION],
        },
        "tolerations": [TOLERATION],
    }
    assert found["explainer"]["art"] == {"type": "SquareAttack", "env": env}
    assert found["canary"][0]["predictor"] == {
        "name": "next",
        "model": {"env": env},
        "tolerations": [TOLERATION],
    }
    with pytest.raises(CannotChangeError, match="the worker of a InferenceService has no labels"):
        workload.pods("worker")[0].label("l", "v")
    workload = workload_of(obj)
    workload.pods()[0].set_field("minReplicas", 3)
    with pytest.raises(CannotChangeError, match="minReplicas of the predictor is not read by KS"):
        workload.commit()
