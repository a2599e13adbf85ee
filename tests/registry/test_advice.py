"""What `kubetailor check` says of a config that is no error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kubetailor.registry.load import check_config, load_config

Advice = Callable[[str], tuple[str, ...]]

SIDECAR = "{use: sidecars, with: {add: [{name: a, image: b}]}}"
INIT = "{use: init_containers, with: {add: [{name: a, image: b}]}}"
PROFILE = "{use: security_context, with: {profile: restricted}}"
CAPS = "{use: resource_caps, with: {max: {cpu: 4}}}"
FIELDS = "{use: security_context, with: {pod_fields: {fsGroup: 1}}}"


@pytest.fixture
def advice(tmp_path: Path) -> Advice:
    """The advice of a config."""

    def load(text: str) -> tuple[str, ...]:
        path = tmp_path / "kubetailor.yaml"
        path.write_text(text)
        return load_config(path, entry_points=False).advice

    return load


@pytest.mark.parametrize("adder", [SIDECAR, INIT])
@pytest.mark.parametrize(
    ("of_all", "name"), [(PROFILE, "security_context"), (CAPS, "resource_caps")]
)
@pytest.mark.parametrize(
    ("layers", "is_late"),
    [
        ("steps: [{of_all}, {adder}]", True),
        ("defaults: [{of_all}], steps: [{adder}]", True),
        ("steps: [{of_all}], enforce: [{adder}]", True),
        ("steps: [{adder}, {of_all}]", False),
        ("steps: [{adder}], enforce: [{of_all}]", False),
        ("steps: [{of_all}, {adder}], enforce: [{of_all}]", False),
        ("steps: [{adder}]", False),
    ],
)
def test_containers_that_come_after_what_is_about_all(
    advice: Advice, adder: str, of_all: str, name: str, layers: str, is_late: bool
) -> None:
    text = layers.replace("{of_all}", of_all).replace("{adder}", adder)
    found = advice(f"chains: {{default: {{{text}}}}}")
    assert len(found) == is_late
    if is_late:
        assert f"the containers that it adds come after {name} (" in found[0]
        assert "kubetailor.yaml:1:" in found[0]


def test_fields_of_the_pod_are_not_about_containers(advice: Advice) -> None:
    assert advice(f"chains: {{default: {{steps: [{FIELDS}, {SIDECAR}]}}}}") == ()


def test_what_takes_containers_off_adds_none(advice: Advice) -> None:
    removes = "{use: sidecars, with: {remove: [a]}}"
    assert advice(f"chains: {{default: {{steps: [{PROFILE}, {removes}]}}}}") == ()


GPU = "{use: gpu, allow: {type: , count: {max: 4}}}"


@pytest.mark.parametrize(
    ("rules", "is_open"),
    [
        (f"{GPU}, {{use: resources}}", True),
        (f"{GPU}, {{use: resources, allow: {{limits: }}}}", True),
        (f"{GPU}, {{use: resources, allow: {{limits: {{max: {{cpu: 4}}}}}}}}", True),
        (f"{GPU}, {{use: resources, allow: {{requests: {{keys: ['*.com/gpu']}}}}}}", True),
        (f"{GPU}, {{use: resources, allow: {{limits: {{keys: [cpu, memory]}}}}}}", False),
        (f"{GPU}, {{use: resources, allow: {{limits: {{max: 4}}}}}}", False),
        (
            f"{GPU}, {{use: resources, allow: {{limits: "
            "{keys: [cpu, nvidia.com/gpu], max: {nvidia.com/gpu: 4}}}}",
            False,
        ),
        (f"{GPU}, {{use: resources, allow: {{container: }}}}", False),
        ("{use: gpu, allow: {type: }}, {use: resources}", True),
        ("{use: gpu, allow: {type: , count: {in: [1, 2]}}}, {use: resources}", True),
        ("{use: gpu, allow: {type: , count: }}, {use: resources}", False),
        ("{use: gpu}, {use: resources}", False),
        (GPU, False),
        ("{use: resources}", False),
    ],
)
def test_a_limit_of_gpus_that_resources_go_round(advice: Advice, rules: str, is_open: bool) -> None:
    found = advice(f"chains: {{}}\noverridable: [{rules}]\n")
    assert len(found) == is_open
    if is_open:
        assert "lets `resources` set any number of GPUs" in found[0]


def test_a_broken_accelerator_is_said_and_no_advice(tmp_path: Path) -> None:
    path = tmp_path / "kubetailor.yaml"
    path.write_text(
        f"accelerators: {{a: {{resorce: x}}}}\noverridable: [{GPU}, {{use: resources}}]\n"
    )
    found, faults = check_config(path)
    assert found is None
    assert ["resorce" in str(fault) for fault in faults] == [True]
