"""The catalogue: how entries are read, what they are recognised by, and the presets that ship."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetailor.registry import Catalogue, ConfigError, TaskContext
from kubetailor.registry.entries import AcceleratorError
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.load import load_config
from kubetailor.registry.plugins import Plugins
from kubetailor.workloads import validate

GPU = "nvidia.com/gpu"
FILES = importlib.resources.files("kubetailor.transformers.accelerators")


def registered() -> dict[str, Any]:
    builtins = {"kubetailor": "kubetailor.transformers"}
    return dict(Plugins.load(entry_points=False, builtins=builtins).require().accelerators)


def presets() -> Catalogue:
    return Catalogue(registered())


# entries -----------------------------------------------------------------------------------------


def test_maps_merge_by_key_null_deletes_and_lists_replace() -> None:
    catalogue = Catalogue(
        {
            "parent": {
                "resource": GPU,
                "device": "d",
                "node_selector": {"a": "1", "b": "2"},
                "tolerations": [{"key": "x"}],
                "by_count": {4: {"limits": {"cpu": 1}}},
            },
            "child": {
                "extends": "parent",
                "device": None,
                "node_selector": {"a": None, "c": "3"},
                "tolerations": [{"key": "y"}],
                "by_count": {"4": {"limits": {"memory": "1Gi"}}},
            },
        }
    )
    child = catalogue["child"]
    assert child.device is None
    assert child.node_selector == {"b": "2", "c": "3"}
    assert child.tolerations == ({"key": "y"},)
    assert child.at(4).limits == {"cpu": "1", "memory": "1Gi"}
    assert catalogue["parent"].node_selector == {"a": "1", "b": "2"}


def test_a_number_fills_every_placeholder_and_brings_its_overlay() -> None:
    entry = Catalogue(
        {
            "e": {
                "resource": GPU,
                "runtime_class": "r",
                "node_selector": {"machine": "a2-{count}g", "pool": "p"},
                "node_requirements": [{"key": "n", "operator": "In", "values": ["{count}"]}],
                "by_count": {
                    8: {"runtime_class": None, "node_selector": {"pool": None, "whole": True}}
                },
            }
        }
    )["e"]
    assert entry.at(2).node_selector == {"machine": "a2-2g", "pool": "p"}
    assert entry.at(2).node_requirements == ({"key": "n", "operator": "In", "values": ["2"]},)
    assert entry.at(2).runtime_class == "r"
    assert entry.at(8).node_selector == {"machine": "a2-8g", "whole": "true"}
    assert entry.at(8).runtime_class is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"resourc": GPU}, r"no field 'resourc'; did you mean resource"),
        ({"device": "d"}, r"`resource` is required"),
        (
            {"resource": GPU, "node_selector": ["a"]},
            r"node_selector: expected a map, found \['a'\]",
        ),
        ({"resource": GPU, "node_selector": {"a": ["b"]}}, r"node_selector.a: expected a string"),
        ({"resource": GPU, "tolerations": {"key": "x"}}, r"tolerations: expected a list"),
        (
            {"resource": GPU, "tolerations": [{"keys": "x"}]},
            r"tolerations\[0\]: no field 'keys'; did you mean key",
        ),
        (
            {"resource": GPU, "node_requirements": [{"key": "a", "operator": "in"}]},
            r"node_requirements\[0\].operator: 'in'; it is one of In, NotIn",
        ),
        ({"resource": GPU, "node_requirements": [{"key": "a"}]}, r"`operator` is required"),
        ({"resource": GPU, "per_gpu": {"memory": "85GB"}}, r"per_gpu.memory: .*write 85G or 85Gi"),
        (
            {"resource": GPU, "by_count": {"many": {}}},
            r"by_count: expected a whole number, found 'many'",
        ),
        (
            {"resource": GPU, "by_count": {4: {"limit": {}}}},
            r"by_count.4: no field 'limit'; did you mean limits",
        ),
        ({"resource": GPU, "by_count": {4: {"resource": None}}}, r"`resource` cannot be taken off"),
        ({"extends": "nvidia"}, r"extends 'nvidia', which there is not"),
        ({"extends": "bad"}, r"cyclic `extends`: bad -> bad"),
    ],
)
def test_an_entry_that_cannot_be_used_says_why(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(AcceleratorError, match=message) as caught:
        Catalogue({"bad": entry})["bad"]
    assert "accelerator 'bad'" in str(caught.value)


def test_an_accelerator_that_is_not_there_has_neighbours() -> None:
    with pytest.raises(
        AcceleratorError, match=r"no accelerator 'nvidia-a100-80g'; did you mean nvidia-a100-80gb"
    ):
        presets().require("nvidia-a100-80g")


# configs -----------------------------------------------------------------------------------------


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "kubetailor.yaml"
    path.write_text(text)
    return path


def test_a_config_keeps_the_text_that_was_written(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        f"""
accelerators:
  odd:
    resource: {GPU}
    node_selector: {{a: true, b: 1.10, c: NO, d: 0755}}
    tolerations: [{{key: k, value: on, effect: NoExecute, tolerationSeconds: 60}}]
    by_count: {{4: {{limits: {{cpu: 12}}}}}}
""",
    )
    odd = load_config(path, entry_points=False).catalogue["odd"]
    assert odd.node_selector == {"a": "true", "b": "1.10", "c": "NO", "d": "0755"}
    assert all(type(value) is str for value in odd.node_selector.values())
    assert odd.tolerations == (
        {"key": "k", "value": "on", "effect": "NoExecute", "tolerationSeconds": 60},
    )
    assert odd.at(4).limits == {"cpu": "12"}


def test_a_config_names_the_place_of_a_fault(tmp_path: Path) -> None:
    entry = config(tmp_path, f"accelerators:\n  fine: {{resource: {GPU}}}\n  odd: {{resourc: x}}\n")
    with pytest.raises(ConfigError, match=r"kubetailor.yaml:3:3: accelerator 'odd': no field"):
        load_config(entry, entry_points=False)
    step = config(
        tmp_path,
        "chains: {default: {steps: [\n  {use: gpu, with: {type: nvidia-h100-80g}}]}}\n",
    )
    with pytest.raises(
        ConfigError, match=r":2:21: gpu: type: no accelerator .*did you mean nvidia-h100-80gb"
    ):
        load_config(step, entry_points=False)


def test_a_config_extends_a_preset(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        """
accelerators:
  h100-pool: {extends: nvidia-h100-80gb, node_selector: {acme.io/pool: h100}}
chains:
  default:
    steps:
      - use: gpu
        with: {type: h100-pool}
        when: {requests: nvidia.com/gpu}
""",
    )
    loaded = load_config(path, entry_points=False)
    container = {"name": "main", "image": "img", "resources": {"limits": {GPU: "1"}}}
    obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"},
            "containers": [container],
        },
    }
    kind = loaded.plugins.kinds.of(obj)
    assert kind is not None
    after = loaded.chain("default").run(obj, kind, TaskContext("admit")).after
    assert after["spec"]["nodeSelector"] == {
        "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
        "acme.io/pool": "h100",
    }


# marks -------------------------------------------------------------------------------------------


def test_the_number_in_a_mark_is_any_number() -> None:
    entries = {
        "a2": {"resource": GPU, "node_selector": {"machine": "a2-{count}g"}},
        "twice": {"resource": GPU, "node_selector": {"machine": "{count}x{count}"}},
    }
    marks = Catalogue(entries).marks

    def names(value: Any) -> list[str]:
        return [entry.name for entry in marks.present([("machine", value)], ())]

    assert names("a2-16g") == ["a2"]
    assert names("a2-g") == names("a2-1gb") == names(16) == names("1x2") == []
    assert names("2x2") == ["twice"]


def test_an_overlay_has_marks_too() -> None:
    overlay = {8: {"node_selector": {"machine": "whole"}, "resource": "whole.com/gpu"}}
    marks = Catalogue({"e": {"resource": GPU, "by_count": overlay}}).marks
    assert [entry.name for entry in marks.present([("machine", "whole")], ())] == ["e"]
    assert marks.resources == {GPU, "whole.com/gpu"}


def test_a_resource_is_a_mark_if_one_entry_alone_uses_it() -> None:
    entries = {"a": {"resource": GPU}, "b": {"resource": GPU}, "c": {"resource": "amd.com/gpu"}}
    marks = Catalogue(entries).marks
    assert marks.present((), [GPU]) == ()
    assert [entry.name for entry in marks.present((), ["amd.com/gpu"])] == ["c"]


def test_flytes_labels_are_marks_of_a_device() -> None:
    entries = {
        "whole": {"resource": GPU, "device": "d"},
        "slice": {"resource": GPU, "device": "d", "partition": "1g.5gb"},
    }
    marks = Catalogue(entries, FlyteSettings("device", "partition")).marks
    found = marks.present([("device", "d"), ("partition", "1g.5gb")], ())
    assert [entry.name for entry in found] == ["slice"]
    assert {entry.name for entry in marks.present([("device", "d")], ())} == {"whole", "slice"}


def test_a_slices_resource_tells_all_that_use_it_and_a_whole_gpus_none() -> None:
    """An entry that extends a slice does not make the slice unknown."""
    entries: dict[str, Any] = {
        "slice": {"resource": "nvidia.com/mig-1g.5gb"},
        "pool": {"extends": "slice", "node_selector": {"pool": "p"}},
        "whole": {"resource": GPU},
        "other": {"extends": "whole"},
    }
    marks = Catalogue(entries).marks
    found = marks.present((), ["nvidia.com/mig-1g.5gb"])
    assert [entry.name for entry in found] == ["pool", "slice"]
    placed = marks.present([("pool", "p")], ["nvidia.com/mig-1g.5gb"])
    assert [entry.name for entry in placed] == ["pool"]
    assert marks.present((), [GPU]) == ()


def test_every_word_for_a_device_is_a_mark() -> None:
    entries = {"e": {"resource": GPU, "device": "d", "aliases": ["old", "D"], "partition": "p"}}
    catalogue = Catalogue(entries, FlyteSettings("device", "partition"))
    for word in ("d", "old", "D"):
        (entry,) = catalogue.marks.present([("device", word)], ())
        stated = catalogue.stated((entry,))
        assert entry.name == "e"
        assert stated.selects("device", word)
        assert stated.tolerates(
            {"key": "device", "operator": "Equal", "value": word, "effect": "NoSchedule"}
        )
    assert not catalogue.marks.present([("device", "other")], ())
    # It is written by its first word alone.
    assert catalogue.flyte.pairs(entry.device, entry.partition) == {"device": "d", "partition": "p"}


def test_the_pages_of_an_entry_are_not_in_the_digest(tmp_path: Path) -> None:
    def digest(more: str) -> str:
        text = f"accelerators: {{a: {{resource: {GPU}, device: d{more}}}}}\n"
        steps = "chains: {default: {steps: [{use: gpu, with: {type: a}}]}}\n"
        return load_config(config(tmp_path, text + steps), entry_points=False).digest

    assert digest("") == digest(", pages: ['https://example.com']")
    assert digest("") != digest(", aliases: [e]")


# presets -----------------------------------------------------------------------------------------


def test_every_entry_of_every_file_is_registered_as_it_is_written() -> None:
    written: dict[str, Any] = {}
    for file in FILES.iterdir():
        if file.name.endswith(".yaml"):
            found = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
            pages = found.pop("pages")
            assert not written.keys() & found.keys()
            written.update({name: {"pages": pages, **entry} for name, entry in found.items()})
    found = {name: {**entry, "pages": [*entry["pages"]]} for name, entry in registered().items()}
    assert found == written


@pytest.mark.parametrize("name", sorted(presets()))
def test_a_preset_is_something_that_kubernetes_takes(name: str) -> None:
    entry = presets()[name]
    assert not any([entry.per_gpu, entry.requests, entry.limits, entry.by_count])
    validate(
        {},
        {
            "spec": {
                "nodeSelector": dict(entry.node_selector),
                "tolerations": [dict(toleration) for toleration in entry.tolerations],
                "containers": [{"name": "main", "resources": {"limits": {entry.resource: "1"}}}],
            }
        },
    )
    # A resource of its own is enough of a place.
    assert any([entry.node_selector, entry.node_requirements, "/mig-" in entry.resource])
    assert entry.is_slice == (entry.partition is not None)
    assert entry.pages
    assert all(page.startswith("https://") for page in entry.pages)


def test_a_preset_is_recognised_on_a_pod_that_it_places() -> None:
    """With others that say the same, but never is a slice taken for a whole GPU."""
    catalogue = presets()
    for entry in catalogue.values():
        pairs = [*entry.node_selector.items()]
        pairs += [(r["key"], value) for r in entry.node_requirements for value in r["values"]]
        found = catalogue.marks.present(pairs, [entry.resource])
        if pairs:
            assert entry in found
        assert not entry.is_slice or all(other.is_slice for other in found)


def test_a_preset_looks_like_no_other() -> None:
    """Two names of one thing would be one too many, and a slip of the data."""
    forms: dict[str, list[str]] = {}
    for name, entry in presets().items():
        placed = [entry.resource, entry.node_selector, entry.node_requirements, entry.tolerations]
        forms.setdefault(repr(placed), []).append(name)
    assert not [names for names in forms.values() if len(names) > 1]


def test_gkes_are_placed_by_flyte_where_its_label_is_gkes() -> None:
    label, size = "cloud.google.com/gke-accelerator", "cloud.google.com/gke-gpu-partition-size"
    ours = Catalogue(registered(), FlyteSettings(label, size))
    for name in ("nvidia-a100-80gb", "nvidia-l4", "nvidia-a100-40gb-1g.5gb"):
        assert ours.placed_by_flyte(ours[name])
        assert not presets().placed_by_flyte(presets()[name])
    assert not ours.placed_by_flyte(ours["nvidia-l4-operator"])
