"""FlyteAdmin as pyflyte would reach it: the same config, the same login."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from os.path import exists
from typing import TYPE_CHECKING, Any

from kubetailor.plugins.client.asking import UnreachableError, ask
from kubetailor.plugins.client.names import Name
from kubetailor.workloads import KubetailorError

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

    from kubetailor.plugins.client.executions import Execution, ExecutionId
    from kubetailor.plugins.client.registered import Registered

__all__ = ["entity_of", "look_up", "look_up_execution", "remote_of"]


def remote_of(project: str, domain: str) -> FlyteRemote:
    """The FlyteAdmin of pyflyte's config, or of the environment; a sandbox where there is neither.

    Args:
        project: where executions are launched by default.
        domain: the same.

    Raises:
        KubetailorError: flytekit is not installed.
    """
    if find_spec("flytekit") is None:
        raise KubetailorError("flytekit is not installed: pip install 'kubetailor[flyte]'")
    from flytekit.configuration.plugin import get_plugin
    from flytekit.remote.remote_fs import REMOTE_PLACEHOLDER

    logger = logging.getLogger("flytekit")
    before = logger.level
    logger.setLevel(logging.ERROR)  # it warns of its whole config, where that is the environment's
    try:
        return get_plugin().get_remote(None, project, domain, REMOTE_PLACEHOLDER)
    finally:
        logger.setLevel(before)


def look_up(name: str) -> Registered:
    """What is registered under a name, where pyflyte would look.

    Args:
        name: ``PROJECT/DOMAIN/NAME[@VERSION]``.

    Raises:
        KubetailorError: there is none, FlyteAdmin cannot be asked, or flytekit is not installed.
    """
    from kubetailor.plugins.client.registered import find

    asked = Name.parse(name)
    with _origin_said():
        return find(remote_of(asked.project, asked.domain), asked)


def look_up_execution(execution: ExecutionId) -> Execution:
    """The execution of an id, where pyflyte would look.

    Raises:
        KubetailorError: there is none, FlyteAdmin cannot be asked, or flytekit is not installed.
    """
    from kubetailor.plugins.client.executions import Execution

    with _origin_said():
        return Execution.read(remote_of(execution.project, execution.domain), execution)


@contextmanager
def _origin_said() -> Generator[None]:
    """Where there is no FlyteAdmin, say what its address comes from."""
    try:
        yield
    except UnreachableError as error:
        raise UnreachableError(f"{error}; {_origin()}") from error


def _origin() -> str:
    """What the address of FlyteAdmin comes from, as flytekit finds it, and how to give another."""
    from flytekit.configuration.file import get_config_file

    named, file = os.environ.get("FLYTECTL_CONFIG"), get_config_file(None)
    if "FLYTE_PLATFORM_URL" in os.environ:
        return "its address is that of FLYTE_PLATFORM_URL"
    gone = f"FLYTECTL_CONFIG={named} names no file, and " if named and not exists(named) else ""
    if file is not None:
        used = f"the address is that of {getattr(file, '_location', 'its config file')}"
    else:
        used = (
            "pyflyte has no config (./flytekit.config, ~/.flyte/config, ~/.flyte/config.yaml), so "
            "the address is that of a sandbox on this machine"
        )
    return f"{gone}{used}; give another with FLYTECTL_CONFIG=FILE or FLYTE_PLATFORM_URL=HOST:PORT"


def entity_of(registered: Registered) -> Any:
    """What flytekit launches of what is registered: a FlyteLaunchPlan or a FlyteTask.

    Raises:
        KubetailorError: it is a workflow without a launch plan, or FlyteAdmin cannot be asked.
    """
    remote = registered.remote
    fetch = {"launch plan": remote.fetch_launch_plan, "task": remote.fetch_task}
    if registered.kind not in fetch:
        raise KubetailorError(
            f"{registered.name} has no launch plan: register one, as pyflyte register does"
        )
    return ask(str(registered.name), lambda: fetch[registered.kind](*registered.name))
