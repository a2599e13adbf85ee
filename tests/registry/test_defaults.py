"""Defaults stand back where the author has set something, and never break what was valid."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubetailor.registry.testing import TailorBench

CATALOGUE = """
accelerators:
  mine: {resource: nvidia.com/gpu, node_selector: {pool: a}}
"""


def pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "img", **spec.pop("main", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [container], **spec},
    }


def config(step: str) -> str:
    return f"{CATALOGUE}\nchains: {{default: {{defaults: [{step}]}}}}\n"


@pytest.mark.parametrize(
    ("step", "author"),
    [
        pytest.param(
            "{use: shared_memory}",
            pod(
                volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
                main={"volumeMounts": [{"name": "v", "mountPath": "/dev/shm"}]},
            ),
            id="something else is mounted there",
        ),
        pytest.param(
            "{use: patch, with: {pod: {volumes: [{name: v, emptyDir: {}}]}}}",
            pod(volumes=[{"name": "v", "configMap": {"name": "c"}}]),
            id="a volume of the name",
        ),
        pytest.param(
            "{use: resources, with: {requests: {cpu: 4}}}",
            pod(main={"resources": {"limits": {"cpu": "2"}}}),
            id="a request over the author's limit",
        ),
        pytest.param(
            "{use: resources, with: {limits: {memory: 2Gi}}}",
            pod(main={"resources": {"requests": {"memory": "4Gi"}}}),
            id="a limit under the author's request",
        ),
        pytest.param(
            "{use: resources, with: {requests: {nvidia.com/gpu: 1}}}",
            pod(main={"resources": {"limits": {"nvidia.com/gpu": "2"}}}),
            id="an extended resource whose request must be its limit",
        ),
        pytest.param(
            "{use: gpu, with: {type: mine}}",
            pod(main={"resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}),
            id="a slice where the default is a whole GPU",
        ),
    ],
)
def test_a_default_stands_back(tailor: TailorBench, step: str, author: dict[str, Any]) -> None:
    tailor.chain(config(step)).run(author).assert_unchanged()


def test_what_can_be_filled_of_a_default_is(tailor: TailorBench) -> None:
    step = "{use: resources, with: {requests: {cpu: 1}, limits: {memory: 2Gi}}}"
    author = pod(main={"resources": {"requests": {"memory": "4Gi"}}})
    outcome = tailor.chain(config(step)).prove(author)
    resources = outcome["spec.containers[main].resources"]
    assert resources == {"requests": {"memory": "4Gi", "cpu": "1"}}


TASK = yaml.safe_load(
    """
type: python-task
id: {name: t}
metadata: {}
container:
  image: img
  resources:
    requests: [{name: GPU, value: "1"}]
    limits: [{name: GPU, value: "1"}]
"""
)


def test_a_default_gpu_reaches_a_task_that_asks_by_the_short_name(tailor: TailorBench) -> None:
    outcome = tailor.chain(config("{use: gpu, with: {type: mine}}")).prove(TASK, "serialize")
    assert outcome["k8sPod.podSpec.nodeSelector"] == {"pool": "a"}


def test_a_default_does_not_break_the_resources_of_a_task(tailor: TailorBench) -> None:
    step = "{use: resources, with: {requests: {cpu: 4}, limits: {cpu: 4, memory: 1Gi}}}"
    author = {
        **TASK,
        "container": {"image": "i", "resources": {"limits": [{"name": "CPU", "value": "2"}]}},
    }
    outcome = tailor.chain(config(step)).prove(author, "serialize")
    assert outcome["container.resources"] == {
        "limits": [{"name": "CPU", "value": "2"}, {"name": "MEMORY", "value": "1Gi"}]
    }
