"""A stack for a person: `make cluster-up` starts it and leaves it, `make cluster-down` ends it.

python -m tests.cluster.up          start it, print where it is
python -m tests.cluster.up --down   end it
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from .build import TOOLS, BuildError, cache
from .stack.core import Core
from .stack.flyte import start_flyteadmin, start_propeller
from .stack.kubelet import KUBELET, start_kubelet
from .stack.kwok import node, start_kwok
from .stack.operators import start_kuberay, start_kueue, start_training_operator
from .stack.process import StackError, wait_for
from .stack.pyflyte import Pyflyte
from .stack.s3 import start_s3

_STARTS_IN: Final = 900.0  # where a person starts a FlyteAdmin for it


def _state() -> Path:
    """What the running stack says of itself."""
    return cache() / "stack.json"


@contextmanager
def _alone() -> Generator[bool]:
    """Whether no stack runs: whoever holds one holds the lock, for as long as it lives."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "stack.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _running() -> dict[str, Any] | None:
    """What the running stack says of itself; None if there is none, or not yet."""
    with _alone() as alone:
        if alone or not _state().is_file():
            return None
        told: dict[str, Any] = json.loads(_state().read_text())
        return told


def hold() -> None:
    """Start everything, say where it is, and wait to be told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ExitStack() as stack:
        if not stack.enter_context(_alone()):
            sys.exit("another stack is running")
        # The last to go: until then the stack is not gone.
        stack.callback(_state().unlink, missing_ok=True)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kubetailor-"))
        core = Core(Path(folder), stack)
        start_kwok(core, stack)
        start_training_operator(core, stack)
        if TOOLS["kuberay"].is_built:
            start_kuberay(core, stack)
        start_kueue(core, stack)
        s3 = start_s3(core.folder, stack)
        admin = start_flyteadmin(core, s3, stack)
        start_propeller(core, s3, admin, stack)
        start_kubelet(core, s3, stack)
        core.client.create(node("kwok-0", gpus=8))
        core.client.create(node("process-0", labels=KUBELET))
        told = {
            "pid": os.getpid(),
            "env": {"KUBECONFIG": str(core.kubeconfig), **Pyflyte(admin, s3).env},
        }
        new = _state().with_suffix(".new")
        new.write_text(json.dumps(told))
        new.rename(_state())
        signal.pause()


def up() -> None:
    """Start a stack, unless one runs, and print what a shell is to know."""
    if _running() is None:
        log = cache() / "stack.log"
        with log.open("w") as output:
            holder = subprocess.Popen(
                [sys.executable, "-m", "tests.cluster.up", "--hold"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

        def alive() -> None:
            if holder.poll() is not None:
                sys.exit(log.read_text())

        wait_for("the stack", _running, seconds=_STARTS_IN, while_=alive)
    told = _running()
    assert told is not None
    for name, value in told["env"].items():
        print(f"export {name}={shlex.quote(value)}")


def down() -> None:
    """End the stack that runs, and wait until nothing of it is left."""
    told = _running()
    if told is None:
        print("no stack is running", file=sys.stderr)
        return
    os.kill(told["pid"], signal.SIGTERM)
    wait_for("its end", lambda: _running() is None and not _state().exists())


def main() -> None:
    """Up, down, or hold."""
    parser = argparse.ArgumentParser(description="A stack of real control planes on loopback.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--down", dest="act", action="store_const", const=down, help="end it")
    what.add_argument(
        "--hold", dest="act", action="store_const", const=hold, help=argparse.SUPPRESS
    )
    act = parser.parse_args().act or up
    try:
        act()
    except (StackError, BuildError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
