"""What a step adds and another takes off leaves nothing behind, of whatever kind the object is."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

from typing import Any

import pytest

from kubetailor.registry import CannotChangeError, StepError
from kubetailor.registry.testing import TailorBench
from kubetailor.workloads import JsonMap, deep_copy, same

from ..kind_examples import KINDS, example

NAME = "kubetailor-test"
LABEL = "example.com/kubetailor-test"
SIDE = {"name": NAME, "image": "i"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": LABEL,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {},
}
PAIRS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("env", {"set": {"KUBETAILOR_TEST": "1"}}, {"remove": ["KUBETAILOR_TEST"]}),
    ("env_from", {"add": [{"secretRef": {"name": NAME}}]}, {"remove": [{"secretRef": {"name": NAME}}]}),
    ("labels", {"set": {LABEL: "1"}}, {"remove": [LABEL]}),
    ("annotations", {"set": {LABEL: "1"}}, {"remove": [LABEL]}),
    ("tolerations", {"add": [{"key": LABEL, "operator": "Exists"}]}, {"remove": [{"key": LABEL}]}),
    ("node_selector", {"set": {LABEL: "1"}}, {"remove": [LABEL]}),
    ("volumes", {"add": [{"name": NAME, "emptyDir": {}}], "mount": [{"name": NAME, "mountPath": f"/{NAME}"}]}, {"remove": [NAME]}),
    ("init_containers", {"add": [SIDE]}, {"remove": [NAME]}),
    ("sidecars", {"add": [SIDE]}, {"remove": [NAME]}),
    ("sidecars", {"add": [{**SIDE, "restartPolicy": "Always"}]}, {"remove": [NAME]}),
    ("image_pull_secrets", {"add": [{"name": NAME}]}, {"remove": [NAME]}),
    ("scheduling_gates", {"add": [{"name": LABEL}]}, {"remove": [{"name": LABEL}]}),
    ("topology_spread", {"add": [SPREAD]}, {"remove": [{"topologyKey": LABEL}]}),
    ("runtime_class", {"name": NAME}, {"name": None}),
    ("resources", {"requests": {"ephemeral-storage": "1Gi"}}, {"requests": {"ephemeral-storage": None}}),
    ("resources", {"limits": {"ephemeral-storage": "1Gi"}}, {"limits": {"ephemeral-storage": None}}),
    ("security_context", {"pod_fields": {"fsGroup": 7}}, {"pod_fields": {"fsGroup": None}}),
]  # fmt: skip


def applied(bench: TailorBench, use: str, obj: JsonMap, given: dict[str, Any]) -> JsonMap | None:
    """What a step makes of an object; None where the kind has no place for it."""
    try:
        outcome = bench.transform(use, obj, **given)
    except StepError as error:
        if not isinstance(error.__cause__, CannotChangeError):
            raise
        return None
    return outcome.after


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left(tailor: TailorBench, kind: str) -> None:
    obj = example(kind)
    tried = 0
    for use, add, remove in PAIRS:
        given = applied(tailor, use, obj, add)
        if given is None or given is obj:
            continue
        if obj.get("container") and "k8sPod" in given:
            continue  # a container that became a pod stays one
        tried += 1
        assert same(applied(tailor, use, given, remove), obj), use
    assert tried


POD: JsonMap = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {}, "annotations": {}},
    "spec": {
        "containers": [{"name": "main", "image": "i", "env": [], "resources": {"requests": {}}}]
    },
}
TASK: JsonMap = {
    "id": {"name": "t"},
    "type": "python-task",
    "metadata": {"metadata": {}},
    "container": {"image": "i", "env": [], "resources": {"requests": [], "limits": []}},
}


@pytest.mark.parametrize("obj", [POD, TASK], ids=["Pod", "TaskTemplate"])
@pytest.mark.parametrize(("use", "add", "remove"), PAIRS)
def test_what_was_empty_stays_so_where_nothing_is_removed(
    tailor: TailorBench, obj: JsonMap, use: str, add: Any, remove: Any
) -> None:
    before = deep_copy(obj)
    after = applied(tailor, use, obj, remove)
    assert after is None or same(after, before)


def test_the_last_of_what_an_author_wrote_goes_with_what_held_it(tailor: TailorBench) -> None:
    obj = deep_copy(TASK)
    obj["container"] |= {
        "env": [{"key": "A", "value": "1"}],
        "resources": {"requests": [{"name": "CPU", "value": "1"}], "limits": []},
    }
    assert tailor.prove("env", obj, remove=["A"])["container"].keys() == {"image", "resources"}
    after = tailor.prove("resources", obj, requests={"cpu": None})
    assert after["container.resources"] == {"limits": []}
