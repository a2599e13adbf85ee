"""flytekit's models as JSON data, and back."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from flytekit.models.task import TaskSpec

from kubetailor.plugins.flyte.messages import as_json, read_message, write_message
from kubetailor.plugins.flyte.models import read_model
from kubetailor.plugins.flyte.plain import plain
from kubetailor.plugins.flyte.write_models import write_model
from kubetailor.workloads import CannotChangeError, deep_copy


def models(mapping: Any) -> list[Any]:
    return [spec.template for spec in mapping.values() if isinstance(spec, TaskSpec)]


def test_a_model_says_what_its_message_says(flyte: Any, zoo: ModuleType) -> None:
    found = models(flyte.serialize(zoo.everything))
    assert len(found) > 15
    for template in found:
        assert read_model(template) == read_message(template.to_flyte_idl()), template.id.name


def test_parts_are_written_as_they_were_read(flyte: Any, zoo: ModuleType) -> None:
    for template in models(flyte.serialize(zoo.everything)):
        before = template.to_flyte_idl()
        read = read_model(template)
        # Every part is another object, so every part is written.
        for part in read:
            if part not in ("id", "type", "taskTypeVersion"):
                setattr(template, f"_{_MODEL_NAMES[part]}", None)
        nothing = {key: read[key] for key in read if key in ("id", "type", "taskTypeVersion")}
        write_model(template, nothing, deep_copy(read))
        assert template.to_flyte_idl() == before, template.id.name


_MODEL_NAMES = {
    "config": "config",
    "container": "container",
    "custom": "custom",
    "extendedResources": "extended_resources",
    "k8sPod": "k8s_pod",
    "metadata": "metadata",
    "securityContext": "security_context",
}


def test_messages_are_written_as_they_were_read(flyte: Any, zoo: ModuleType) -> None:
    for template in models(flyte.serialize(zoo.everything)):
        message = template.to_flyte_idl()
        read = read_message(message)
        empty = type(message)(interface=message.interface)
        write_message(empty, {}, deep_copy(read))
        assert empty == message


def test_what_did_not_change_is_not_touched(flyte: Any, zoo: ModuleType) -> None:
    (template,) = models(flyte.serialize(zoo.train))
    parts = {name: getattr(template, f"_{name}") for name in _MODEL_NAMES.values()}
    read = read_model(template)
    write_model(template, read, {**read, "config": {"a": "b"}})
    assert template.config == {"a": "b"}
    parts.pop("config")
    for name, part in parts.items():
        assert getattr(template, f"_{name}") is part


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": "spark"}, "type"),
        ({"container": {"image": "i", "ports": [{"containerPort": 1}]}}, "container.ports"),
        ({"metadata": {"tags": {"a": "b"}, "retries": {}}}, "metadata.tags"),
        (
            {"container": {"env": [{"key": "A", "value": "1"}, {"key": "A", "value": "2"}]}},
            "container.env",
        ),
        ({"k8sPod": {"podSpec": {}, "ports": []}}, "k8sPod.ports"),
        ({"k8sPod": {"metadata": {"name": "p"}}}, "metadata.name"),
        ({"metadata": {"nonsense": 1}}, "metadata"),
        ({"extendedResources": {"gpu": 1}}, "extendedResources"),
        ({"nonsense": {}, "config": {}}, "nonsense"),
    ],
)
def test_what_flytekit_cannot_hold_is_refused(
    flyte: Any, zoo: ModuleType, change: dict[str, Any], field: str
) -> None:
    (template,) = models(flyte.serialize(zoo.prepare))
    read = read_model(template)
    with pytest.raises(CannotChangeError) as error:
        write_model(template, read, {**read, **change})
    assert error.value.field == field


DATA = {"enabled": True, "inputPath": "/in", "outputPath": "/out", "format": "YAML"}


@pytest.mark.parametrize(
    "change",
    [
        {"securityContext": {"runAs": {"k8sServiceAccount": "trainer"}}},
        {"extendedResources": {"gpuAccelerator": {"device": "d", "unpartitioned": True}}},
        {"container": {"image": "i:2", "dataConfig": DATA}},
        {"container": {"image": "i:2", "config": [{"key": "a", "value": "b"}]}},
        {"custom": {"a": [1, {"b": None}]}},
        {
            "container": None,
            "k8sPod": {
                "metadata": {"labels": {"a": "b"}},
                "podSpec": {"containers": [{"name": "main"}]},
                "dataConfig": DATA,
                "primaryContainerName": "main",
            },
        },
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_part_can_be_written_and_taken_away(
    flyte: Any, zoo: ModuleType, change: dict[str, Any]
) -> None:
    (template,) = models(flyte.serialize(zoo.prepare))
    before = template.to_flyte_idl()
    read = read_model(template)
    changed = {key: value for key, value in {**read, **change}.items() if value is not None}
    write_model(template, read, changed)
    found = read_message(template.to_flyte_idl())
    for part, value in change.items():
        if value is None:
            assert part not in found
        elif part != "container":
            assert found[part] == value
        else:
            assert {key: found[part][key] for key in value} == value
    write_model(template, read_model(template), read)
    assert template.to_flyte_idl() == before


def test_a_change_of_metadata_alone_keeps_the_rest(flyte: Any, zoo: ModuleType) -> None:
    (template,) = models(flyte.serialize(zoo.train))
    before = as_json(template.to_flyte_idl())["metadata"]
    read = read_model(template)
    changed = {**read, "metadata": {**read["metadata"], "retries": {"retries": 7}}}
    write_model(template, read, changed)
    after = as_json(template.to_flyte_idl())["metadata"]
    assert after == {**before, "retries": {"retries": 7}}


def test_plain_is_the_value_itself_where_it_can_be() -> None:
    value = {"a": [1, "x", None, True, {"b": {}}]}
    assert plain(value) is value
    assert plain({"a": (1.0, 2.5), "b": {"c": 3.0}}) == {"a": [1, 2.5], "b": {"c": 3}}
    assert type(plain({"a": 1.0})["a"]) is int
