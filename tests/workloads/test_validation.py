"""What Kubernetes would refuse, on the parts that changed."""

from __future__ import annotations

from typing import Any

import pytest

from kubetailor.workloads import InvalidObjectError, validate


def pod(**spec: Any) -> Any:
    return {"kind": "Pod", "metadata": {}, "spec": {"containers": [{"name": "main"}], **spec}}


def container(**fields: Any) -> Any:
    return pod(containers=[{"name": "main", **fields}])


def meta(**metadata: Any) -> Any:
    return {**pod(), "metadata": metadata}


FAULTS: list[tuple[Any, str]] = [
    (meta(labels={"a": 1}), "metadata.labels: label a: the value must be a string, found 1"),
    (meta(labels={"a b": "x"}), "metadata.labels: key 'a b': the name must consist"),
    (
        meta(labels={"domain": "x"}),
        "metadata.labels: label 'domain' is Flyte's own and never written",
    ),
    (
        meta(annotations={"a": True}),
        "metadata.annotations: a: the value must be a string, found True",
    ),
    (meta(annotations={"a": "x" * 262_144}), "262145 bytes of annotations, at most 262144"),
    (pod(nodeSelector={"a": "x y"}), "spec.nodeSelector: label a: the value 'x y' must consist"),
    (pod(tolerations=[{"key": "a", "operator": "exists"}]), "tolerations[0]: operator 'exists'"),
    (pod(tolerations=[{"operator": "Exists", "value": "v"}]), "operator Exists takes no value"),
    (pod(tolerations=[{"value": "v"}]), "without a key the operator must be Exists"),
    (pod(tolerations=[{"key": "a", "effect": "NoRun"}]), "effect 'NoRun'"),
    (pod(tolerations=[{"key": "a", "tolerationSeconds": 1}]), "goes with the effect NoExecute"),
    (pod(volumes=[{"name": "A"}]), "spec.volumes[0].name: volume 'A'"),
    (pod(volumes=[{}]), "spec.volumes[0]: a volume needs a name"),
    (pod(volumes=[{"name": "a"}, {"name": "a"}]), "spec.volumes[1]: volume 'a' is there twice"),
    (pod(containers=[{"name": "a"}, {"name": "a"}]), "container 'a' is there twice"),
    (container(env=[{"name": "A", "value": 1}]), "env[0]: A: the value must be a string, found 1"),
    (container(env=[{"name": "A", "value": "x", "valueFrom": {}}]), "A: either value or valueFrom"),
    (container(env=[{"name": "A=B", "value": "x"}]), "env[0]: env name 'A=B'"),
    (container(resources={"limits": {"memory": "1g"}}), "resources.limits.memory: '1g' is not"),
    (container(resources={"limits": {"cpu": "-1"}}), "cpu -1 is negative"),
    (
        container(resources={"limits": {"a.com/x": "1.5"}}),
        "a.com/x must be a whole number, found 1.5",
    ),
    (
        container(resources={"requests": {"memory": "2Gi"}, "limits": {"memory": "2G"}}),
        "requests.memory 2Gi (2147483648) is more than limits.memory 2G (2000000000)",
    ),
    (
        container(resources={"requests": {"a.com/x": 1}, "limits": {"a.com/x": 2}}),
        "requests.a.com/x 1 and limits.a.com/x 2 must be equal",
    ),
]


@pytest.mark.parametrize(("after", "message"), FAULTS, ids=[message[:40] for _, message in FAULTS])
def test_faults_are_told_with_their_path(after: Any, message: str) -> None:
    with pytest.raises(InvalidObjectError) as caught:
        validate(pod(), after)
    assert message in str(caught.value)
    validate(after, after)  # what is the author's own is left to the API server
    validate(after, {**after, "x": 1})


def test_what_is_right_passes() -> None:
    source = {"fieldRef": {"fieldPath": "metadata.name"}}
    validate(
        pod(),
        {
            "metadata": {
                "labels": {"a": "", "example.com/b": "c"},
                "annotations": {"A": "any text at all"},
            },
            "spec": {
                "tolerations": [
                    {"operator": "Exists"},
                    {"key": "a", "operator": "Gt", "value": "1"},
                ],
                "nodeSelector": {"domain": "x"},
                "containers": [
                    {
                        "name": "a",
                        "env": [{"name": "A"}, {"name": "B", "value": None, "valueFrom": source}],
                        "resources": {
                            "requests": {"cpu": 1, "a.com/x": "2"},
                            "limits": {"cpu": "1000m", "a.com/x": 2},
                        },
                    }
                ],
            },
            "custom": {"labels": ["x"], "resources": {"requests": [{"name": "CPU"}]}, "env": "x"},
        },
    )


def test_flytes_own_labels_are_neither_changed_nor_removed() -> None:
    before = meta(labels={"execution-id": "e", "a": "b"})
    validate(before, meta(labels={"execution-id": "e", "a": "c"}))
    for after in (
        meta(labels={"a": "b"}),
        meta(labels={"execution-id": "f"}),
        meta(labels=None),
        meta(),
    ):
        with pytest.raises(InvalidObjectError, match="'execution-id' is Flyte's own"):
            validate(before, after)
