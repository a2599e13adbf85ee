"""What a config may say is checked when it is loaded; what a patch may do, when it is applied."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubetailor.registry import ConfigError, StepError
from kubetailor.registry.testing import TailorBench

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "img"}], "tolerations": [{"key": "a"}]},
}
SPARK: dict[str, Any] = {
    "type": "spark",
    "id": {"name": "s"},
    "metadata": {},
    "config": {"primary_container_name": "main"},
    "k8sPod": {
        "podSpec": {"containers": [{"name": "side", "image": "s"}, {"name": "main", "image": "i"}]}
    },
}


@pytest.mark.parametrize(
    ("use", "given", "fault"),
    [
        ("labels", {"set": {"bad key!": "x"}}, "bad key!"),
        ("labels", {"set": {"execution-id": "x"}}, "Flyte's own"),
        ("annotations", {"set": {"a/b/c": "x"}}, "a/b/c"),
        ("node_selector", {"set": {"a": "no spaces"}}, "no spaces"),
        ("kueue", {"queue": "bad queue"}, "bad queue"),
        ("kueue", {"queue": ""}, "must not be empty"),
        ("priority_class", {"name": ""}, "must not be empty"),
        ("node_affinity", {"require": [{"key": "k", "operator": "In"}]}, "at least one value"),
        (
            "node_affinity",
            {"require": [{"key": "k", "operator": "Exists", "values": ["a"]}]},
            "takes no values",
        ),
        ("env", {"set": {"A": {"valueFrom": {"secretKeyRf": {}}}}}, "secretKeyRf"),
        *(
            ("spark_conf", {"set": {name: "x"}}, "the name of a property")
            for name in ("spark.master=k8s://a", "spark.driver.extraJavaOptions=-ea", "a b", "")
        ),
    ],
)
def test_values_that_kubernetes_would_refuse_are_refused_at_load(
    tailor: TailorBench, use: str, given: dict[str, Any], fault: str
) -> None:
    chain = f"chains: {{default: {{steps: [{{use: {use}, with: {json.dumps(given)}}}]}}}}"
    with pytest.raises(ConfigError, match=fault):
        tailor.chain(chain)


@pytest.mark.parametrize(
    ("use", "given"),
    [
        ("patch", "{pod: {priority: %s}}"),
        ("patch", "{object: {spec: {a: [1, {b: %s}]}}}"),
        ("gpu", "{type: nvidia-h100-80gb, count: %s}"),
        ("pod_group", "{count: %s}"),
        ("security_context", "{pod_fields: {runAsUser: %s}}"),
        ("task_config", "{set: {slots: %s}}"),
        ("tolerations", "{add: [{key: a, effect: NoExecute, tolerationSeconds: %s}]}"),
        (
            "topology_spread",
            "{add: [{maxSkew: %s, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
        ),
        ("volumes", "{add: [{name: a, configMap: {name: c, defaultMode: %s}}]}"),
    ],
)
def test_an_integer_that_no_json_reader_takes_is_refused_at_load(
    tailor: TailorBench, use: str, given: str
) -> None:
    chain = "chains: {default: {steps: [{use: %s, with: %s}]}}"
    tailor.chain(chain % (use, given % 8))
    reasons = "an integer of 67 bits; at most 64 are read|be less than or equal to 2147483647"
    with pytest.raises(ConfigError, match=f"{use}.*({reasons})"):
        tailor.chain(chain % (use, given % 10**20))


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": {"name": "x"}},
        {"containers": [None]},
        {"tolerations": ["abc"]},
        {"initContainers": "x"},
    ],
)
def test_a_patch_of_the_wrong_form(tailor: TailorBench, patch: dict[str, Any]) -> None:
    with pytest.raises(StepError, match="a list of objects"):
        tailor.transform("patch", POD, pod=patch)


def test_a_container_without_an_image_is_made_nowhere(tailor: TailorBench) -> None:
    outcome = tailor.transform(
        "patch", POD, pod={"initContainers": [{"name": "setup", "tty": True}]}
    )
    outcome.assert_unchanged()
    assert "no container 'setup' to patch; the containers are none" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("use", "given"),
    [
        ("patch", {"pod": {"containers": [{"name": "new", "image": "x"}]}}),
        ("patch", {"pod": {"containers": [{"name": "side", "image": "x"}]}}),
        ("resources", {"limits": {"cpu": "1"}}),
        ("env", {"set": {"A": "1"}, "container": "side"}),
    ],
)
def test_what_flytes_spark_plugin_does_not_read(
    tailor: TailorBench, use: str, given: dict[str, Any]
) -> None:
    outcome = tailor.transform(use, SPARK, **given)
    outcome.assert_unchanged()
    assert "Spark plugin" in outcome.warnings[0]


def test_env_entries_of_a_task_that_no_step_touched_stay_as_they_were(tailor: TailorBench) -> None:
    task = {
        "type": "python-task",
        "id": {"name": "t"},
        "metadata": {},
        "container": {"image": "i", "args": None, "command": None, "env": [{"key": "A"}]},
    }
    outcome = tailor.prove("env", task, set={"B": "1"})
    assert outcome["container.env"] == [{"key": "A"}, {"key": "B", "value": "1"}]
