"""The same code under another chain is another version."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from flytekit.configuration import Config, ImageConfig, PlatformConfig, SerializationSettings
from flytekit.exceptions.user import FlyteInvalidInputException
from flytekit.remote import FlyteRemote

from kubetailor.plugins.flyte.install import left_alone

from .flyteadmin import FlyteAdmin

SETTINGS = SerializationSettings(
    ImageConfig.auto_default_image(), project="speech", domain="development"
)


def version(*context: str) -> str:
    return str(FlyteRemote._version_from_hash(b"code", SETTINGS, None, *context))


def test_without_a_config_it_is_flytekits_own(configure: Callable[[str], Any]) -> None:
    with left_alone():
        expected = version("image:1")
    assert version("image:1") == expected
    configure("chains: {default: {}}")
    assert version("image:1") != expected


def test_it_changes_with_what_the_config_does(
    configure: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "chains: {default: {steps: [{use: priority_class, with: {name: a}}]}, other: {}}"
    configure(text)
    first = version()
    configure(f"# a comment\n{text}")
    assert version() == first
    configure(text.replace("name: a", "name: b"))
    assert version() != first
    configure(text)
    monkeypatch.setenv("KUBETAILOR_CHAIN", "other")
    forced = version()
    assert forced != first
    monkeypatch.setenv("KUBETAILOR_TASK", "domain=production")
    assert version() != forced


def test_in_a_task_pod_it_is_left_alone(
    configure: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = version()
    configure("chains: {default: {}}")
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "a7k")
    assert version() == expected


@pytest.fixture
def remote(admin: FlyteAdmin) -> Any:
    config = Config(platform=PlatformConfig(endpoint=admin.endpoint, insecure=True))
    return FlyteRemote(config, default_project="speech", default_domain="development")


def register(remote: Any, entity: Any) -> None:
    remote.register_task(entity, SETTINGS, version="v1")


CHAIN = "chains: {default: {steps: [{use: priority_class, with: {name: %s}}]}}"


def test_flyteadmins_refusal_of_another_chain_is_explained(
    flyte: Any,
    zoo: ModuleType,
    remote: Any,
    configure: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(CHAIN % "a")
    register(remote, zoo.prepare)
    register(remote, zoo.prepare)  # the same again is no fault
    configure(CHAIN % "b")
    assert capsys.readouterr().err == ""
    with pytest.raises(FlyteInvalidInputException):
        register(remote, zoo.prepare)
    said = capsys.readouterr().err
    assert said.startswith(
        "kubetailor: version v1 of zoo.prepare is registered after the chain default"
    )
    assert said.count("sha256:") == 2
    assert "register it as a new version" in said


def test_the_first_chain_over_a_version_is_explained(
    zoo: ModuleType,
    remote: Any,
    configure: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    register(remote, zoo.prepare)
    configure(CHAIN % "a")
    with pytest.raises(FlyteInvalidInputException):
        register(remote, zoo.prepare)
    assert "is registered as its author wrote it" in capsys.readouterr().err


def test_other_code_is_not_explained_by_the_chain(
    flyte: Any,
    zoo: ModuleType,
    remote: Any,
    configure: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    from flytekit import task

    configure(CHAIN % "a")
    register(remote, task(container_image="i:1")(_work))
    with pytest.raises(FlyteInvalidInputException):
        register(remote, task(container_image="i:2")(_work))
    assert capsys.readouterr().err == ""


def _work(x: int) -> int:
    return x


def test_a_remote_registers_what_the_chain_made(
    zoo: ModuleType, remote: Any, configure: Callable[[str], Any]
) -> None:
    configure(CHAIN % "a")
    register(remote, zoo.prepare)
    found = remote.client.get_task(
        remote._resolve_identifier(1, "zoo.prepare", "v1", SETTINGS)
    ).closure.compiled_task.template
    assert found.k8s_pod.pod_spec["priorityClassName"] == "a"
    stamp = json.loads(found.metadata.k8s_object_metadata.annotations["kubetailor.dev/applied"])
    assert stamp["task"] == "zoo.prepare"
