"""Where FlyteAdmin is looked for, as it is said where there is none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from flytekit.configuration.file import get_config_file

Run = Callable[..., Result]
COMMANDS = [
    ("launch", "a/b/c"),
    ("flyte", "show", "a/b/c"),
    ("execution", "show", "a/b/c"),
    ("override", "edit", "a/b/c"),
]
WAY_OUT = "give another with FLYTECTL_CONFIG=FILE or FLYTE_PLATFORM_URL=HOST:PORT"


@pytest.fixture
def nobody(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address that nobody listens at, and no config of pyflyte's."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.delenv("FLYTE_PLATFORM_URL")
        monkeypatch.delenv("FLYTECTL_CONFIG", raising=False)
        monkeypatch.setenv("HOME", str(folder))
        get_config_file.cache_clear()
        yield f"127.0.0.1:{closed.getsockname()[1]}"
    get_config_file.cache_clear()


def config_at(path: Path, endpoint: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"admin: {{endpoint: 'dns:///{endpoint}', insecure: true}}\n")
    return str(path)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_the_environment_is_named(
    run: Run, nobody: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("FLYTE_PLATFORM_URL", nobody)
    done = run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot reach FlyteAdmin: " in done.stderr
    assert "its address is that of FLYTE_PLATFORM_URL" in done.stderr


def test_the_file_is_named(
    run: Run, nobody: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = config_at(folder / ".flyte" / "config.yaml", nobody)
    done = run("execution", "show", "a/b/c")
    assert f"the address is that of {file}; {WAY_OUT}" in done.stderr
    get_config_file.cache_clear()
    monkeypatch.setenv("FLYTECTL_CONFIG", str(folder / "gone.yaml"))
    done = run("execution", "show", "a/b/c")
    assert f"FLYTECTL_CONFIG={folder / 'gone.yaml'} names no file, and the address" in done.stderr
    get_config_file.cache_clear()
    named = config_at(folder / "named.yaml", nobody)
    monkeypatch.setenv("FLYTECTL_CONFIG", named)
    assert f"the address is that of {named}; " in run("execution", "show", "a/b/c").stderr


def test_without_any_config_the_sandbox_is_named(
    run: Run, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flytekit.configuration import Config

    there = Config.for_endpoint(nobody, insecure=True)  # on this machine there may be a sandbox
    monkeypatch.setattr(Config, "for_sandbox", lambda: there)
    done = run("launch", "a/b/c")
    assert "pyflyte has no config (./flytekit.config, ~/.flyte/config" in done.stderr
    assert f"a sandbox on this machine; {WAY_OUT}" in done.stderr
