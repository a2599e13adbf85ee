"""Requests and limits.

https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.types import Quantity

__all__ = ["resources"]


@transformer(replicas=True)
def resources(
    pod: Pod,
    *,
    requests: dict[str, Quantity | None] | None = None,
    limits: dict[str, Quantity | None] | None = None,
    raise_limits: bool = False,
    container: str | None = None,
) -> None:
    """Set requests and limits of a container; those that are not named stay.

    An extended resource's request is its limit, so one that is given for either is set in both
    where both are there. A request over the limit that is there is an error, never cut.

    Args:
        pod: the pod.
        requests: resource -> quantity; null removes it.
        limits: the same for limits.
        raise_limits: raise a limit that is less than the request that is set.
        container: the container's name; by default the primary one.
    """
    target = pod.primary if container is None else pod.container(container)
    target.set_resources(requests, limits, raise_limits=raise_limits)
