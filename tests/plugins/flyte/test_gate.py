"""What is asked of flytekit's models beforehand is what the chain would find."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flytekit.models.task import TaskSpec

from kubetailor.plugins.flyte.gate import Gate
from kubetailor.plugins.flyte.models import read_model
from kubetailor.plugins.flyte.tailoring import tailor_template
from kubetailor.registry.load import load_config
from kubetailor.registry.tailor import Tailor

CONDITIONS = [
    "{domain: production}",
    "{domain: development}",
    '{task: "*train"}',
    "{task_type: [python-task, ray]}",
    "{not: {task_type: [python-task, ray]}}",
    "{kind: Pod}",
    "{kind: [PyTorchJob, RayJob]}",
    '{api_group: ""}',
    "{namespace: x}",
    "{phase: serialize}",
    "{version: null}",
    "{labels: {team: speech}}",
    '{labels: {"*": x}}',
    '{not: {labels: {team: "*"}}}',
    '{annotations: {note: "*"}}',
    "{requests: nvidia.com/gpu}",
    "{requests: amd.com/gpu}",
    '{requests: "*/gpu"}',
    '{requests: "*"}',
    "{not: {requests: cpu}}",
    "{requests: [cpu, memory]}",
    "{any: [{kind: RayJob}, {requests: nvidia.com/gpu}]}",
    "{all: [{kind: Pod}, {requests: nvidia.com/gpu}]}",
    "{role: worker}",
    "{role: primary}",
    "{node: n0}",
    "{not: {inputs: {x: y}}}",
]


def _tailor(path: Path, steps: str, select: str = "{chain: default}") -> Tailor:
    path.write_text(
        "phases: [serialize, admit]\n"
        f"chains: {{default: {{steps: [{steps}]}}}}\nselect: [{select}]\n"
    )
    return Tailor(load_config(path, entry_points=False))


def _step(when: str) -> str:
    return f"{{use: labels, with: {{set: {{added: by-the-chain}}}}, when: {when}}}"


def _templates(flyte: Any, zoo: ModuleType) -> list[Any]:
    found = flyte.serialize(zoo.everything).values()
    return [spec.template for spec in found if isinstance(spec, TaskSpec)]


@pytest.mark.parametrize("place", ["step", "select"])
def test_it_is_closed_where_no_step_would_do_anything(
    flyte: Any, zoo: ModuleType, tmp_path: Path, place: str
) -> None:
    templates = _templates(flyte, zoo)
    for when in CONDITIONS:
        path = tmp_path / "kubetailor.yaml"
        if place == "step":
            tailor = _tailor(path, f"{_step('{domain: nowhere}')}, {_step(when)}")
        else:
            tailor = _tailor(path, _step("{phase: serialize}"), f"{{when: {when}, chain: default}}")
        gate = Gate(tailor)
        for template in templates:
            does = tailor_template(tailor, read_model(template)).stamped
            closed = gate.is_closed_to(template)
            assert not (closed and does), (when, template.id.name)
            if "role" not in when and template.type == "python-task":
                assert closed is not does, (when, template.id.name)


def test_what_a_step_sees_of_one_before_it_is_left_to_the_chain(
    flyte: Any, zoo: ModuleType, tmp_path: Path
) -> None:
    both = f"{_step('{phase: serialize}')}, {_step('{labels: {added: by-the-chain}}')}"
    gate = Gate(_tailor(tmp_path / "kubetailor.yaml", both))
    assert not any(map(gate.is_closed_to, _templates(flyte, zoo)))
