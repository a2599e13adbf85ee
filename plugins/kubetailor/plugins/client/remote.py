"""FlyteAdmin as pyflyte would reach it: the same config, the same login."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kubetailor.plugins.client.asking import ask
from kubetailor.plugins.client.names import Name
from kubetailor.workloads import KubetailorError

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

    from kubetailor.plugins.client.registered import Registered

__all__ = ["entity_of", "look_up", "remote_of"]


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
    return find(remote_of(asked.project, asked.domain), asked)


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
