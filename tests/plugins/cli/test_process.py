"""What only a process of its own can show: exit codes, streams, pipes, and what is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from .conftest import CONFIG, POD, Write

SCRIPT = [str(Path(sysconfig.get_path("scripts"), "kubetailor"))]
MODULE = [sys.executable, "-m", "kubetailor"]


@pytest.fixture(autouse=True)
def files(write: Write) -> None:
    write("kubetailor.yaml", CONFIG)
    write("pod.yaml", POD)


def start(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        args, env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("command", [SCRIPT, MODULE], ids=["script", "module"])
def test_it_runs(command: list[str]) -> None:
    done = start(*command, "render", "-f", "pod.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert yaml.safe_load(done.stdout)["metadata"]["labels"] == {"team": "speech"}


def test_module_calls_itself_by_its_name() -> None:
    assert start(*MODULE, "render").stderr.startswith("Usage: kubetailor render ")


def test_exit_codes() -> None:
    assert start(*MODULE, "render", "-f", "pod.yaml", "-o", "yaml").returncode == 0
    assert start(*MODULE, "render", "-f", "pod.yaml", "-o", "diff").returncode == 1
    wrong = start(*MODULE, "render", "-f", "none.yaml")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "Error: none.yaml: No such file or directory\n"


def test_colours_are_for_terminals() -> None:
    assert "\x1b" not in start(*MODULE, "render", "-f", "pod.yaml", "-o", "diff").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_diff_on_a_terminal(no_color: str) -> None:
    import pty

    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*MODULE, "render", "-f", "pod.yaml", "-o", "diff"],
        env={**os.environ, "NO_COLOR": no_color, "TERM": "xterm"},
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 1
    assert ("\x1b[32m+    team: speech" in shown) is not bool(no_color)
    assert "+    team: speech" in shown


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break otherwise there")
@pytest.mark.parametrize("output", ["yaml", "json", "diff", "patch"])
def test_a_closed_pipe_is_no_traceback(output: str) -> None:
    process = subprocess.Popen(
        [*MODULE, "render", "-f", "-", "-o", output],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(POD.encode())
    assert errors == b""
    assert process.returncode == 141  # as of kubectl, which SIGPIPE ends


def test_binary_manifests_come_from_standard_input() -> None:
    done = subprocess.run(
        [*MODULE, "render", "-f", "-"], input=b"\xff\xfe", capture_output=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == b"Error: <stdin>:1: not UTF-8 (byte 0xff)\n"


def loaded(*args: str) -> set[str]:
    """The modules that a command imports."""
    code = (
        "import json, sys\n"
        f"sys.argv = {['kubetailor', *args]!r}\n"
        "from kubetailor.plugins.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = start(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_no_command_of_ours_imports_flytekit() -> None:
    for args in (["--help"], ["render", "-f", "pod.yaml"], ["check"], ["schema"]):
        tops = {name.partition(".")[0] for name in loaded(*args)}
        assert tops.isdisjoint({"flytekit", "flyteidl", "kubernetes", "starlette"}), args


def test_help_of_a_command_loads_no_plugin() -> None:
    found = loaded("render", "--help")
    assert not {"pydantic", "rich", "kubetailor.transformers"} & found


def test_the_module_of_the_host_is_light() -> None:
    code = "import kubetailor.plugins.cli, sys; print({'click', 'rich'} & set(sys.modules))"
    assert start(sys.executable, "-c", code).stdout == "set()\n"
