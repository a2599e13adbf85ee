"""The pod template that a node gives its task is author's text, and the chain runs over it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from flytekit import PodTemplate, Resources, task, workflow
from kubernetes.client import V1Container, V1PodSpec, V1ResourceRequirements

from kubetailor.plugins.flyte.entities import task_nodes
from kubetailor.plugins.flyte.messages import as_json
from kubetailor.plugins.flyte.serialization import SerializationError
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.undo import UNDO, undo


def pod_templates(flyte: Any, entity: Any, **options: Any) -> dict[str, dict[str, Any]]:
    """The pod templates of a workflow's nodes, in JSON form, by node."""
    spec = flyte.serialize(entity, **options)[entity].to_flyte_idl()
    return {
        node.id: as_json(node.task_node.overrides.pod_template)
        for node in task_nodes(spec.template.nodes)
        if node.task_node.overrides.HasField("pod_template")
    }


def without_traces(pod: dict[str, Any]) -> dict[str, Any]:
    metadata = {**pod["metadata"]}
    annotations = {
        k: v for k, v in metadata.get("annotations", {}).items() if k not in (STAMP, UNDO)
    }
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


def test_the_chain_runs_over_it(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    before = pod_templates(flyte, zoo.overridden)
    assert len(before) == 3
    configure(flyte.CONFIG)
    after = pod_templates(flyte, zoo.overridden)
    assert after.keys() == before.keys()
    for name, pod in after.items():
        expected = before[name]
        spec = expected["podSpec"]
        spec["tolerations"].append(
            {"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"}
        )
        spec["nodeSelector"] = {"example.com/pool": "spot"}
        spec["priorityClassName"] = "batch-low"
        spec["containers"][0]["env"].append({"name": "NEW", "value": "2"})
        if name == "torch":  # whose pods have labels of their own
            expected["metadata"]["labels"]["team"] = "speech"
        assert without_traces(pod) == expected
        stamp = json.loads(pod["metadata"]["annotations"][STAMP])
        assert (stamp["chain"], stamp["done"]) == ("default", 5)
        # The pod spec is the author's: what is in it comes from where it came from before.
        assert any("pyflyte" in arg for arg in spec["containers"][0]["args"])


def test_the_way_back_is_exact(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    before = pod_templates(flyte, zoo.overridden, fast=True)
    configure(flyte.CONFIG)
    for name, pod in pod_templates(flyte, zoo.overridden, fast=True).items():
        assert undo(pod, ("metadata", "annotations", UNDO)) == (before[name], [])


def test_other_overrides_of_a_node_stay(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    before = flyte.serialize(zoo.everything)[zoo.everything]
    configure(flyte.CONFIG)
    after = flyte.serialize(zoo.everything)[zoo.everything]
    assert after.to_flyte_idl() == before.to_flyte_idl()


def test_what_a_node_cannot_say_is_warned_of(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The node's pod asks for GPUs, the task's own does not.
    configure("""
        chains:
          default:
            steps:
              - {use: kueue, with: {queue: q}, when: {not: {requests: nvidia.com/gpu}}}
              - {use: kueue, with: {queue: gpus}, when: {requests: nvidia.com/gpu}}
              - {use: patch, with: {pod: {priority: 1}}}
    """)
    plain = task(container_image="i:1", requests=Resources(cpu="1"))(_work)
    gpus = PodTemplate(
        pod_spec=V1PodSpec(
            containers=[
                V1Container(name="primary"),
                V1Container(
                    name="b",
                    image="b:1",
                    resources=V1ResourceRequirements(limits={"nvidia.com/gpu": "1"}),
                ),
            ]
        )
    )

    @workflow
    def wf(x: int) -> int:
        promise: Any = plain(x=x)
        value: int = promise.with_overrides(pod_template=gpus)
        return value

    (pod,) = pod_templates(flyte, wf).values()
    assert pod["podSpec"]["priority"] == 1
    said = capsys.readouterr().err
    assert "node n0 (task " in said
    assert "/metadata/metadata/labels" in said
    assert "cannot be changed for one node" in said


def test_what_is_removed_of_its_metadata_is_gone(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    before = pod_templates(flyte, zoo.overridden)["torch"]
    assert before["metadata"] == {"labels": {"pt": "1"}, "annotations": {"pa": "1"}}
    configure("""
        chains:
          default:
            steps:
              - {use: labels, with: {remove: [pt]}}
              - {use: annotations, with: {remove: [pa]}}
    """)
    after = pod_templates(flyte, zoo.overridden)["torch"]
    assert not after["metadata"].get("labels")
    assert after["metadata"]["annotations"].keys() == {STAMP, UNDO}
    assert after["podSpec"] == before["podSpec"]
    assert undo(after, ("metadata", "annotations", UNDO)) == (before, [])


def _work(x: int) -> int:
    return x


def test_a_failing_step_names_the_node(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    configure("""
        chains:
          default:
            enforce:
              - use: env
                with: {set: {A: B}, container: nobody}
                when: {all: [{labels: {pt: "1"}}, {task: "*.train"}]}
    """)
    with pytest.raises(SerializationError, match=r"node train \(task zoo\.train\)") as error:
        flyte.serialize(zoo.overridden)
    assert "nobody" in str(error.value)
