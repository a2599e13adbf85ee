"""Programs in forks of a process that has flytekit imported already.

The import takes ten times as long as what most tests do with it. A fork is a process like any
other: its directory, its environment, its streams and its status are its own. Where the import is
what a test is about, it starts a new process.

As a program this is the process that forks: each line on its standard input is an order, and it
answers with the status that the program ended with.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

IMPORTED = (
    "flytekit.clis.sdk_in_container.pyflyte",
    "flytekit.types.numpy",  # this and the next two are what flytekit imports at the first task
    "flytekit.types.schema.types_pandas",
    "flytekit.types.structured.basic_dfs",
    "kubernetes.client",
    "kubetailor.plugins.cli.root",
)


def run(
    program: Path, *args: str, cwd: Path, env: Mapping[str, str], merged: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a Python program, such as a command of this environment, and capture its output.

    Args:
        program: the program.
        args: its arguments.
        cwd: its working directory.
        env: its environment.
        merged: whether what goes to its standard error is to be in its output.
    """
    forking = _forking()
    assert forking.stdin is not None
    assert forking.stdout is not None
    argv = [str(program), *args]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "stdout"), Path(folder, "stdout" if merged else "stderr")
        order = {"argv": argv, "cwd": str(cwd), "env": dict(env), "streams": [str(out), str(err)]}
        print(json.dumps(order), file=forking.stdin, flush=True)
        status = int(forking.stdout.readline())
        said = "" if merged else err.read_text("utf-8")
        return subprocess.CompletedProcess(argv, status, out.read_text("utf-8"), said)


@functools.cache
def _forking() -> subprocess.Popen[str]:
    """The process that forks; it ends with this one, which holds its standard input."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KUBETAILOR", "FLYTE"))}
    process = subprocess.Popen(
        [sys.executable, __file__],
        env={**env, "COLUMNS": "400", "FLYTE_SDK_LOGGING_LEVEL": "50"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_end, process, os.getpid())
    return process


def _end(process: subprocess.Popen[str], owner: int) -> None:
    if os.getpid() == owner:  # not in what a test forks itself
        process.communicate()


def _next() -> str | None:
    """Fork for each order; returns the program to run in the fork, and at the end nothing."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return _become(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def _become(argv: list[str], cwd: str, env: dict[str, str], streams: list[str]) -> str:
    """Make this process what `python *argv` would be before the first line of the program."""
    for number, path in enumerate((os.devnull, *streams)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = argv
    added = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:1] = [os.path.dirname(os.path.abspath(argv[0])), *added]
    return argv[0]


def _run(program: str) -> NoReturn:
    """Run a program and end with its status, without what takes longest: freeing all memory."""
    status = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    for _name in IMPORTED:
        importlib.import_module(_name)
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, every page
    if (_program := _next()) is not None:
        _run(_program)
