"""kubectl, as a person runs it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from ..build import program
from .process import StackError

if TYPE_CHECKING:
    from .core import Core

__all__ = ["kubectl", "ran"]


def kubectl(core: Core, *arguments: str, stdin: str | None = None) -> str:
    """What kubectl prints.

    Raises:
        StackError: it fails.
    """
    done = ran(core, *arguments, stdin=stdin)
    if done.returncode:
        raise StackError(f"kubectl {' '.join(arguments)}: {done.stderr or done.stdout}")
    return done.stdout


def ran(core: Core, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """What came of it, whether it failed or not, with what it said besides."""
    return subprocess.run(
        [program("kubectl"), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "KUBECONFIG": str(core.kubeconfig),
            # It keeps what a server knows by its port, which another cluster may have had.
            "KUBECACHEDIR": str(core.folder / "kubectl"),
        },
        timeout=120,
        check=False,
    )
