"""A stack for a person: `make cluster-up` starts it and leaves it, `make cluster-down` ends it.

python -m tests.cluster.up          start it, print where it is
python -m tests.cluster.up --down   end it
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from .build import TOOLS, BuildError, cache
from .stack.core import Core
from .stack.flyte import start_flyteadmin, start_propeller
from .stack.kubelet import KUBELET, start_kubelet
from .stack.kwok import node, start_kwok
from .stack.operators import start_kuberay, start_kueue, start_training_operator
from .stack.process import StackError, wait_for
from .stack.s3 import start_s3

_STATE: Final = "stack.json"
_STARTS_IN: Final = 180.0


def _state() -> Path:
    return cache() / _STATE


def _hold() -> None:
    """Start everything, say where it is, and wait to be told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="kubetailor-") as folder, ExitStack() as stack:
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
        told = {"pid": os.getpid(), "kubeconfig": str(core.kubeconfig), "flyteadmin": admin}
        new = _state().with_suffix(".new")
        new.write_text(json.dumps({**told, "env": s3.env}))
        new.rename(_state())
        stack.callback(_state().unlink, missing_ok=True)
        signal.pause()


def _running() -> dict[str, str] | None:
    """What the running stack said of itself; None if there is none."""
    try:
        told: dict[str, str] = json.loads(_state().read_text())
        os.kill(int(told["pid"]), 0)
    except (OSError, ValueError):
        return None
    return told


def up() -> None:
    """Start a stack, unless one runs, and print where it is."""
    if _running() is None:
        cache().mkdir(parents=True, exist_ok=True)
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
    print(f"export KUBECONFIG={told['kubeconfig']}")
    print(f"FlyteAdmin at {told['flyteadmin']}; `make cluster-down` ends all")


def down() -> None:
    """End the stack that runs, and wait for it."""
    told = _running()
    if told is None:
        sys.exit("no stack is running")
    os.kill(int(told["pid"]), signal.SIGTERM)
    while _running() is not None:
        time.sleep(0.2)


def main() -> None:
    """Up, down, or hold."""
    parser = argparse.ArgumentParser(description="A stack of real control planes on loopback.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--down", dest="act", action="store_const", const=down, help="end it")
    what.add_argument(
        "--hold", dest="act", action="store_const", const=_hold, help=argparse.SUPPRESS
    )
    act = parser.parse_args().act or up
    try:
        act()
    except (StackError, BuildError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
