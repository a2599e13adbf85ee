"""What no step can change of a task is refused by pyflyte and over a package in the same words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flytekit import task

from kubetailor.plugins.cli.root import cli
from kubetailor.plugins.flyte.entities import Entities
from kubetailor.plugins.flyte.install import left_alone
from kubetailor.plugins.flyte.report import Report
from kubetailor.plugins.flyte.serialization import SerializationError
from kubetailor.registry import StepError
from kubetailor.registry.tailor import Tailor

CONFIG = """\
chains:
  default:
    steps:
      - {use: labels, with: {set: {a: b}}}
      - {name: odd, use: patch, with: {object: %s}}
      - {use: labels, with: {set: {c: d}}}
"""


def _work(x: int) -> int:
    return x


work = task(container_image="i:1")(_work)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("{id: {name: zzz}}", "id"),
        ("{type: spark}", "type"),
        ("{taskTypeVersion: 5}", "taskTypeVersion"),
        ("{interface: {inputs: {}}}", "interface"),
        ("{sql: {statement: x}}", "sql"),
        ("{container: {ports: [{containerPort: 80}]}}", "container.ports"),
        ("{container: {architecture: ARM64}}", "container.architecture"),
        ("{container: {image: {a: b}}}", "container.image"),
        ("{container: {nonsense: 1}}", "container.nonsense"),
        ("{config: {a: 1}}", "config"),
        ("{k8sPod: {nonsense: 1, podSpec: {}}}", "k8sPod"),
        ("{k8sPod: {metadata: {labels: {a: b}, nonsense: 1}}}", "metadata.nonsense"),
        ("{metadata: {tags: {a: b}}}", "metadata.tags"),
        ("{metadata: {nonsense: 1}}", "metadata.nonsense"),
        ("{metadata: {retries: x}}", "metadata.retries"),
        ("{extendedResources: {gpuAccelerator: {nonsense: 1}}}", "extendedResources"),
        ("{securityContext: {runAs: {nonsense: 1}}}", "securityContext"),
        ("{nonsense: {}}", "nonsense"),
    ],
)
def test_both_refuse_it_with_the_step(
    flyte: Any, configure: Callable[[str], Path], change: str, field: str
) -> None:
    with left_alone():
        (spec,) = (spec.to_flyte_idl() for spec in flyte.serialize(work).values())
    path = configure(CONFIG % change)
    with pytest.raises(SerializationError) as theirs:
        flyte.serialize(work)
    tailor = Tailor.find(path)
    assert tailor is not None
    before = spec.SerializeToString(deterministic=True)
    with pytest.raises(StepError) as ours:
        list(Entities([spec]).tailor(tailor, Report()))
    assert str(theirs.value) == f"kubetailor: {ours.value}"
    assert spec.SerializeToString(deterministic=True) == before
    for part in (f"{path}:5:", "step 'odd'", "plugin kubetailor", spec.template.id.name, field):
        assert part in str(ours.value)


def test_what_flyte_can_hold_is_written_by_both(
    flyte: Any, configure: Callable[[str], Path]
) -> None:
    change = "{metadata: {retries: {retries: 4}}, custom: {a: {b: [1, 2.5, null]}}}"
    with left_alone():
        (spec,) = (spec.to_flyte_idl() for spec in flyte.serialize(work).values())
    tailor = Tailor.find(configure(CONFIG % change))
    assert tailor is not None
    list(Entities([spec]).tailor(tailor, Report()))
    assert spec.template == flyte.template_of(work)
    assert spec.template.metadata.retries.retries == 4


# the phase ----------------------------------------------------------------------------------------


def test_no_phase_at_all_is_an_error(configure: Callable[[str], Path]) -> None:
    path = configure("phases: []\nchains: {default: {}}")
    done = CliRunner().invoke(cli, ["check"])
    assert done.exit_code == 2
    assert f"{path}:1:" in done.stderr
    assert "phases" in done.stderr
