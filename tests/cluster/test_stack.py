"""The stack itself: what is started runs, and ends with who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import MakeWebhook
from .objects import pod
from .stack import process as programs
from .stack.client import Client
from .stack.kwok import node
from .stack.process import Process, StackError, wait_for

CONFIG = """
phases: [admit]
chains:
  default:
    steps:
      - {use: node_selector, with: {set: {pool: gpu}}}
"""


def test_a_pod_is_bound_to_a_node_of_kwok_and_runs(
    client: Client, kwok: Process, namespace: str
) -> None:
    client.create(node("plain"))
    client.create(pod(namespace, "one"))

    wait_for(
        "the pod",
        lambda: client.get("v1", "Pod", namespace, "one")["status"]["phase"] == "Running",
    )


def test_the_webhook_is_asked_in_its_namespaces_alone(
    client: Client, webhook: MakeWebhook, namespace: str
) -> None:
    webhook(CONFIG, namespace)

    assert client.create(pod(namespace, "one"))["spec"]["nodeSelector"] == {"pool": "gpu"}
    assert "nodeSelector" not in client.create(pod("default", "one"))["spec"]


def test_a_program_that_ends_says_why(tmp_path: Path) -> None:
    process = Process("sh", ["sh", "-c", "echo no such disk >&2; exit 3"], folder=tmp_path)
    with pytest.raises(StackError, match=r"sh ended with 3:\n.*no such disk"):
        process.wait_for(lambda: False)


CHILD = "(trap '' TERM; exec sleep 600) & echo $! > child.new; mv child.new child;"


@pytest.mark.parametrize("end", [Process.stop, Process.kill])
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"trap 'exit 0' TERM; {CHILD} wait", id="ends when asked"),
        pytest.param(f"trap '' TERM; {CHILD} wait", id="does not"),
        pytest.param(f"{CHILD} exit 3", id="has ended before"),
    ],
)
def test_what_a_program_started_ends_with_it(
    script: str,
    end: Callable[[Process], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "_GRACE", 1.0)
    process = Process("sh", ["sh", "-c", script], folder=tmp_path)
    wait_for("the child", (tmp_path / "child").exists)
    child = int((tmp_path / "child").read_text())
    end(process)
    assert not process.is_running
    wait_for("its end", lambda: not _is_alive(child), seconds=10)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_run_that_is_broken_off(how: signal.Signals, tmp_path: Path) -> None:
    """A person's Ctrl-C, CI's end, and the kernel's."""
    test = tmp_path / "test_forever.py"
    test.write_text(
        "import time\n"
        "from pathlib import Path\n"
        "from tests.cluster.stack.process import Process\n"
        "def test_forever():\n"
        f"    with Process('sleep', ['sleep', '600'], folder=Path({str(tmp_path)!r})) as found:\n"
        f"        Path({str(tmp_path / 'pid')!r}).write_text(str(found.pid))\n"
        "        time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    root = str(Path(__file__).parents[2])
    run = subprocess.Popen(
        [*command, "-c", "/dev/null", str(test)],
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for("the program", (tmp_path / "pid").read_text)
        pid = int((tmp_path / "pid").read_text())
        assert _is_alive(pid)
        run.send_signal(how)
        run.wait(30)
        wait_for("its end", lambda: not _is_alive(pid), seconds=10)
    finally:
        run.kill()


@pytest.mark.usefixtures("running")
def test_ctrl_c_ends_the_run_and_not_just_a_test() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that nobody has waited for is dead too.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_waiting_says_what_was_seen_last() -> None:
    def broken() -> bool:
        raise KeyError("status")

    with pytest.raises(StackError, match=r"the pod: not within 0\.2 s; last: KeyError: 'status'"):
        wait_for("the pod", broken, seconds=0.2)
