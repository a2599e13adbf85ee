"""`kubetailor execution`: what was launched, what two executions differ in, and launching again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from flytekit import LaunchPlan
from flytekit.models.common import Annotations
from flytekit.remote import FlyteRemote

from kubetailor.plugins.client.overrides import Overrides
from kubetailor.registry.overrides.document import OVERRIDE

from ..flyte.flyteadmin import FlyteAdmin
from . import workflows as _workflows

workflows: Any = _workflows
PLACE = "speech/development"
H100 = ("--set", "gpu.type=nvidia-h100-80gb", "--on", "task=*.fit")
STEP = {"use": "gpu", "with": {"type": "nvidia-h100-80gb"}, "when": {"task": "*.fit"}}

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def launched(remote: FlyteRemote, configure: Callable[[str], Path], folder: Path, run: Run) -> None:
    """A plain execution, `plain`, and one with an override, `swapped`."""
    configure("{phases: [launch], chains: {}}")
    (folder / "x.yaml").write_text("x: 3\n")
    nightly = LaunchPlan.get_or_create(
        workflows.train, "nightly", annotations=Annotations({"team": "speech"})
    )
    remote.register_launch_plan(nightly, version="v1")
    for name, words in (("plain", ()), ("swapped", H100)):
        done = run("launch", f"{PLACE}/nightly", "--inputs", "x.yaml", "--name", name, *words)
        assert done.exit_code == 0, done.output


def shown(run: Run, name: str) -> dict[str, Any]:
    done = run("execution", "show", f"{PLACE}/{name}")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = yaml.safe_load(done.stdout)
    return found


def pod_of(found: dict[str, Any]) -> dict[str, Any]:
    (pod,) = found["nodes"]["n1"]["pods"].values()
    return dict(pod)


def test_show_has_the_override_and_what_came_of_it(run: Run) -> None:
    plain, swapped = shown(run, "plain"), shown(run, "swapped")
    assert plain["launched"] == swapped["launched"] == f"{PLACE}/nightly@v1"
    assert (plain["override"], swapped["override"]) == (None, {"steps": [STEP]})
    assert pod_of(plain)["gpu"]["device"] == "nvidia-tesla-a100"
    assert "nvidia-h100-80gb" in pod_of(swapped)["node_selector"].values()


def test_show_as_json(run: Run) -> None:
    done = run("execution", "show", f"{PLACE}/swapped", "-o", "json")
    assert json.loads(done.stdout) == shown(run, "swapped")


def test_diff_shows_what_they_differ_in(run: Run) -> None:
    done = run("execution", "diff", f"{PLACE}/plain", f"{PLACE}/swapped")
    assert done.exit_code == 1, done.output
    assert "+++ execution speech/development/swapped" in done.stdout
    assert "+  - use: gpu" in done.stdout
    same = run("execution", "diff", f"{PLACE}/plain", f"{PLACE}/plain")
    assert (same.exit_code, same.stdout) == (0, "")


def relaunched(run: Run, admin: FlyteAdmin, name: str, *words: str) -> Any:
    before = len(admin.executions)
    done = run("execution", "relaunch", f"{PLACE}/{name}", *words)
    assert done.exit_code == 0, done.output
    (made,) = admin.executions[before:]
    first, page = done.stdout.splitlines()
    assert (first, page.rpartition("/")[2]) == (made.name, made.name)
    return made


def test_relaunch_is_the_same_again(run: Run, admin: FlyteAdmin) -> None:
    original = admin.executions[1]
    made = relaunched(run, admin, "swapped")
    assert made.name != original.name
    assert made.inputs == original.inputs
    assert made.spec.launch_plan == original.spec.launch_plan
    assert made.spec.annotations == original.spec.annotations
    assert made.spec.metadata.reference_execution.name == "swapped"
    assert made.spec.metadata.mode == made.spec.metadata.RELAUNCH


def test_relaunch_with_another_override(run: Run, admin: FlyteAdmin) -> None:
    made = relaunched(run, admin, "swapped", "--set", "retries.retries=7")
    found = dict(made.spec.annotations.values)
    assert json.loads(found.pop(OVERRIDE)) == {
        "steps": [{"use": "retries", "with": {"retries": 7}}]
    }
    assert found == {"team": "speech"}


def test_relaunch_of_a_plain_one_keeps_to_the_launch_plan(run: Run, admin: FlyteAdmin) -> None:
    assert dict(relaunched(run, admin, "plain").spec.annotations.values) == {}


def test_that_of_the_launch_plan_is_below_either(
    run: Run, admin: FlyteAdmin, remote: FlyteRemote
) -> None:
    own = Overrides().step("retries", retries=4).on(task="*.fit")
    remote.register_launch_plan(own.launch_plan(workflows.train, "patient"), version="v1")
    run("launch", f"{PLACE}/patient", "--inputs", "x.yaml", "--name", "one", *H100)
    steps = shown(run, "one")["override"]["steps"]
    assert [step["use"] for step in steps] == ["retries", "gpu"]
    made = relaunched(run, admin, "one", "--set", "timeout.timeout=2h", "--on", "task=*.fit")
    steps = json.loads(made.spec.annotations.values[OVERRIDE])["steps"]
    assert [step["use"] for step in steps] == ["retries", "timeout"]


def test_the_chain_is_that_of_where_it_ran(run: Run, configure: Callable[[str], Path]) -> None:
    """Which need not be where it is registered."""
    step = "{use: retries, with: {retries: 7}, when: {domain: production}}"
    configure(f"{{phases: [launch], chains: {{default: {{steps: [{step}]}}}}}}")
    for domain, retries in (("development", 2), ("production", 7)):
        done = run("execution", "show", f"speech/{domain}/plain")
        assert yaml.safe_load(done.stdout)["nodes"]["n1"]["retries"] == retries


def test_annotations_of_the_request_stand_for_all_of_the_launch_plans(
    run: Run, admin: FlyteAdmin
) -> None:
    """As FlyteAdmin has it; what the webhook said of the first execution is not said again."""
    annotations = admin.executions[0].spec.annotations.values
    annotations.update({"a": "b", "kubetailor.dev/applied": "{}"})
    made = relaunched(run, admin, "plain", "--set", "retries.retries=7")
    assert made.spec.annotations.values.keys() == {"a", OVERRIDE}
    assert relaunched(run, admin, "plain").spec.annotations.values.keys() == {"a"}


@pytest.mark.parametrize("text", ["{", '{"steps": [{"use": "image", "with": {"image": "x"}}]}'])
def test_one_that_would_be_refused_is_shown_and_not_launched_again(
    run: Run, admin: FlyteAdmin, text: str
) -> None:
    admin.executions[0].spec.annotations.values[OVERRIDE] = text
    shown = run("execution", "show", f"{PLACE}/plain")
    assert shown.exit_code == 0, shown.output
    found = yaml.safe_load(shown.stdout)["override"]
    assert found == (text if text == "{" else json.loads(text))
    assert "would be refused" in shown.stderr
    again = run("execution", "relaunch", f"{PLACE}/plain")
    assert (again.exit_code, again.stdout, len(admin.executions)) == (2, "", 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", f"{PLACE}/nothing"), "execution speech/development/nothing"),
        (("show", "nothing"), "expected PROJECT/DOMAIN/ID"),
        (("relaunch", f"{PLACE}/plain", "--set", "retries.retries=3", "--on", "node=n7"), "n7"),
        (("relaunch", f"{PLACE}/plain", "--set", "image.image=x"), "image may not be overridden"),
    ],
)
def test_a_fault_launches_nothing(
    run: Run, admin: FlyteAdmin, arguments: tuple[str, ...], said: str
) -> None:
    done = run("execution", *arguments)
    assert (done.exit_code, done.stdout, len(admin.executions)) == (2, "", 2)
    assert said in done.stderr
