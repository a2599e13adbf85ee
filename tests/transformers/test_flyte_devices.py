"""Each device that flytekit and Flyte 2 have a name for is an accelerator, or is said not to be."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetailor.registry import Catalogue, Chain, Step, TaskContext
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import ALWAYS
from kubetailor.registry.transformer import Transformer, options_of
from kubetailor.transformers import gpu
from kubetailor.workloads import BUILTIN_KINDS, KindTable

LISTS: dict[str, Any] = yaml.load(
    (Path(__file__).parent / "flyte_devices.yaml").read_text(encoding="utf-8"), yaml.BaseLoader
)
FLYTE = FlyteSettings("flyte/device", "flyte/partition")
KINDS = KindTable(BUILTIN_KINDS)
PRESETS = Plugins.load(entry_points=False, builtins={"kubetailor": "kubetailor.transformers"})
CATALOGUE = Catalogue(PRESETS.require().accelerators, FLYTE)

ABSENT = {
    "nvidia-tesla-k80": "Kepler, which NVIDIA's operator does not support",
    "nvidia-tesla-m60": "Maxwell, which NVIDIA's operator does not support",
    "nvidia-l4-vws": "a virtual workstation of Compute Engine; GKE has no node label for it",
    "nvidia-a100g": "a word of Flyte 2 that no GPU has",
    "AppleSilicon": "a Mac that runs Flyte's devbox, not a node of a cluster",
}
"""Devices without an accelerator, and why; the docs name them too."""


def listed() -> Iterator[Any]:
    for package, each in LISTS.items():
        for name, words in each["devices"].items():
            for part in [None, *words["parts"]]:
                yield pytest.param(words["device"], part, id=f"{package} {name} {part}")


@pytest.mark.parametrize(("device", "part"), list(listed()))
def test_a_device_is_an_accelerator_or_is_said_not_to_be(device: str, part: str | None) -> None:
    there = [e for e in CATALOGUE.all if device in e.devices and e.partition == part]
    assert bool(there) != (device in ABSENT)
    pairs = FLYTE.pairs(device, part)
    found = CATALOGUE.marks.present(pairs.items(), [])
    assert {e.name for e in there} <= {e.name for e in found}
    if not there:
        return
    # What FlytePropeller made of it goes, whatever the pod is given instead.
    after = run(pod(there[0].resource, pairs, FLYTE.tolerations(device, part)), "nvidia-l4-eks", 1)
    assert "nodeSelector" not in after["spec"]
    assert after["spec"]["tolerations"] == [*CATALOGUE["nvidia-l4-eks"].tolerations]
    assert after["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


def test_what_is_said_to_be_absent_is_in_a_list_and_in_the_docs() -> None:
    words = {each["device"] for one in LISTS.values() for each in one["devices"].values()}
    page = Path(__file__).parents[2] / "docs/how-to/add-an-accelerator.md"
    text = page.read_text(encoding="utf-8")
    assert ABSENT.keys() <= words
    assert all(f"`{device}`" in text for device in ABSENT)


def test_the_list_is_that_of_the_flytekit_that_is_installed() -> None:
    """Its module alone: it needs flyteidl, and not the rest of flytekit."""
    path = importlib.metadata.distribution("flytekit").locate_file(LISTS["flytekit"]["file"])
    spec = importlib.util.spec_from_file_location("accelerators_of_flytekit", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if isinstance(value, module.BaseAccelerator):
            parts = [part for key, part in vars(type(value)).items() if key[:2] in ("pa", "sl")]
            found[name] = {
                "device": value.to_flyte_idl().device,
                "parts": [part.to_flyte_idl().partition_size for part in parts],
            }
    assert found == LISTS["flytekit"]["devices"]


SAMPLES = ["nvidia-h100-80gb", "nvidia-mig-1g.10gb", "tpu-v5e-2x4", "aws-trn1-eks"]


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_preset_comes_and_goes(name: str) -> None:
    """Put on a bare pod, then taken off for one of every sort: nothing of it stays."""
    entry = CATALOGUE[name]
    on = run(pod(entry.resource), name, 1)
    spec = on["spec"]
    assert spec.get("nodeSelector", {}) == entry.node_selector
    assert spec.get("tolerations", []) == [*entry.tolerations]
    assert spec["containers"][0]["resources"]["limits"] == {entry.resource: "1"}
    required = [
        expression
        for term in spec.get("affinity", {"nodeAffinity": {}})["nodeAffinity"]
        .get("requiredDuringSchedulingIgnoredDuringExecution", {})
        .get("nodeSelectorTerms", ())
        for expression in term["matchExpressions"]
    ]
    assert required == [*entry.node_requirements]
    for other in SAMPLES:
        assert run(on, other, 2) == run(pod(CATALOGUE[other].resource), other, 2)


def pod(resource: str, selector: Any = None, tolerations: Any = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "img"}]}
    spec["containers"][0]["resources"] = {"limits": {resource: "1"}}
    if selector:
        spec["nodeSelector"] = dict(selector)
    if tolerations:
        spec["tolerations"] = tolerations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def run(obj: dict[str, Any], name: str, count: int) -> dict[str, Any]:
    options = options_of(gpu)
    assert options is not None
    transformer = Transformer.of(gpu, name="gpu", plugin="kubetailor", options=options)
    arguments = read_parameters(transformer, {"type": name, "count": count}, CATALOGUE)
    step = Step("gpu", "enforce", transformer, arguments, ALWAYS)
    kind = KINDS.of(obj)
    assert kind is not None
    chain = Chain("test", (step,), catalogue=CATALOGUE)
    return chain.run(obj, kind, TaskContext("admit")).after
