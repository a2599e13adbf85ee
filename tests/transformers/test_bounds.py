"""Numbers that nothing can hold are refused at load, and no message is as long as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry import ConfigError, KubetailorError, Override
from kubetailor.registry.load import load_config
from kubetailor.registry.tailor import Tailor

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}
LONG = "9" * 5000
STEPS = [
    "{use: gpu, with: {type: nvidia-t4, count: NUMBER}}",
    "{use: resources, with: {limits: {cpu: NUMBER}}}",
    "{use: resources, with: {requests: {acme.io/gpu: NUMBER}}}",
    "{use: resource_caps, with: {max: {cpu: NUMBER}}}",
    "{use: shared_memory, with: {size_limit: NUMBER}}",
    "{use: retries, with: {retries: NUMBER}}",
    "{use: timeout, with: {timeout: NUMBER}}",
    "{use: pod_group, with: {count: NUMBER}}",
    "{use: topology_spread, with: {add: [{maxSkew: NUMBER}]}}",
    "{use: tolerations, with: {add: [{key: a, tolerationSeconds: NUMBER}]}}",
    "{use: NUMBER}",
    "{use: labels, optional: NUMBER}",
    "{use: labels, NUMBER: a}",
    "{use: labels, with: {NUMBER: a}}",
    "{use: labels, with: {set: {NUMBER: a}}}",
    "{use: labels, when: {NUMBER: a}}",
    "{use: labels, when: {task: [[NUMBER]]}}",
    "{use: priority_class, with: {name: NUMBER}}",
]
OPEN = [
    "{use: env, with: {set: {A: NUMBER}}}",
    "{use: labels, with: {set: {a: NUMBER}}}",
    "{use: annotations, with: {set: {a: NUMBER}}}",
    "{use: task_config, with: {set: {workers: NUMBER}}}",
    "{use: patch, with: {pod: {priority: NUMBER}}}",
    "{use: spark_conf, with: {set: {spark.a: NUMBER}}}",
    "{use: labels, when: {inputs: {a: NUMBER}}}",
]


def load(tmp_path: Path, step: str) -> Tailor:
    path = tmp_path / "kubetailor.yaml"
    path.write_text(f"chains: {{default: {{steps: [\n{step}\n]}}}}\n")
    return Tailor(load_config(path, entry_points=False))


KEYS = ("{use: labels, NUMBER", "{use: labels, with", "{use: labels, when: {N")


def check(error: BaseException | None) -> None:
    assert len(str(error)) < 1000
    assert "set_int" not in str(error)


def fault(run: Callable[[], Any]) -> KubetailorError | None:
    try:
        run()
    except KubetailorError as error:
        return error
    return None


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("number", [LONG, "9" * 400, f"-{LONG}"], ids=["5000", "400", "negative"])
def test_what_is_too_long_is_refused_and_not_echoed(tmp_path: Path, step: str, number: str) -> None:
    # A key that is so long has to be called one.
    written = step.replace("NUMBER:", f"? {number}\n:") if step.startswith(KEYS) else step
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, written.replace("NUMBER", number))
    check(caught.value)


@pytest.mark.parametrize("number", [LONG, f"-{LONG}", "0x" + "f" * 400])
@pytest.mark.parametrize("place", ["priority: NUMBER", "a: [{b: NUMBER}]"])
def test_where_the_type_is_open_it_becomes_no_text(tmp_path: Path, place: str, number: str) -> None:
    step = f"{{use: patch, with: {{pod: {{{place}}}}}}}".replace("NUMBER", number)
    with pytest.raises(ConfigError, match=r"an integer of \d+ digits; at most 64 bits are read"):
        load(tmp_path, step)


@pytest.mark.parametrize("step", OPEN)
def test_where_a_text_may_be_it_is_one_or_refused(tmp_path: Path, step: str) -> None:
    check(fault(lambda: load(tmp_path, step.replace("NUMBER", LONG)).tailor(POD, "admit")))


@pytest.mark.parametrize("step", [*STEPS[:10], *OPEN])
def test_nor_by_an_override(step: str) -> None:
    def run() -> None:
        override = Override.parse("steps:\n- " + step.replace("NUMBER", LONG))
        assert Override.parse(override.annotation()) == override
        Tailor.built_in().config.overrides.compile(override)

    check(fault(run))


@pytest.mark.parametrize("step", [*STEPS[:4], *STEPS[5:8]])
@pytest.mark.parametrize("number", ["100000000000000000000", "-1"])
def test_what_is_too_much_or_less_than_nothing_is_refused(
    tmp_path: Path, step: str, number: str
) -> None:
    with pytest.raises(ConfigError, match=number):
        load(tmp_path, step.replace("NUMBER", number))
