"""A field that the kind's operator does not read: told in steps, refused in what must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetailor.registry import Chain, Step, StepError, TaskContext
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import compile_selector

PLUGINS = Plugins.load(entry_points=False)
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference" / "examples" / "kinds"
IGNORED = {
    "PyTorchJob": "restartPolicy",
    "JAXJob": "restartPolicy",
    "StatefulSet": "hostname",
    "LeaderWorkerSet": "subdomain",
    "AppWrapper": "restartPolicy",
    "TrainJob": "runtimeClassName",
    "ScheduledSparkApplication": "runtimeClassName",
    "CronWorkflow": "runtimeClassName",
    "InferenceService": "minReplicas",
}


def run(kind: str, field: str, layer: Any, *, strict: bool = False) -> Any:
    obj = yaml.safe_load((FOLDER / f"{kind}.yaml").read_text())
    row = PLUGINS.kinds.of(obj)
    assert row is not None
    patch = PLUGINS.transformers["patch"]
    given = read_parameters(patch, {"pod": {field: "Never"}})
    step = Step("own", layer, patch, given, compile_selector(None))
    return Chain("one", (step,), strict=strict).run(obj, row, TaskContext("admit"))


@pytest.mark.parametrize(("kind", "field"), IGNORED.items())
@pytest.mark.parametrize("layer", ["defaults", "steps"])
def test_a_step_is_taken_back_with_a_warning(kind: str, field: str, layer: str) -> None:
    result = run(kind, field, layer)
    assert result.after is result.before
    assert all(
        f"{field} of " in one.text and " is not read by " in one.text for one in result.warnings
    )
    assert result.warnings


@pytest.mark.parametrize(("kind", "field"), IGNORED.items())
@pytest.mark.parametrize(
    ("layer", "strict"), [("override", False), ("enforce", False), ("steps", True)]
)
def test_what_must_hold_fails(kind: str, field: str, layer: str, strict: bool) -> None:
    with pytest.raises(StepError, match=rf"step 'own' .*{field} of .* is not read by .* reads"):
        run(kind, field, layer, strict=strict)
