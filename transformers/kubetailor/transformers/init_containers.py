"""Init containers.

https://kubernetes.io/docs/concepts/workloads/pods/init-containers/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers._pod_types import Container
from kubetailor.transformers.types import names_to_remove

__all__ = ["init_containers"]


@transformer
def init_containers(
    pod: Pod,
    *,
    add: list[Container] | None = None,
    remove: list[str] | None = None,
    replace: bool = False,
) -> None:
    """Add and remove init containers, which run one after the other before all others.

    One that is there with all that is given stays as it is and where it is; a new one goes to the
    end.

    Args:
        pod: the pod.
        add: containers as Kubernetes writes them, in the order in which they run.
        remove: names of init containers that go, save what is added.
        replace: put one in place of another container of the same name; otherwise that is an
            error.
    """
    there = {entry.get("name") for entry in pod.get("initContainers") or ()}
    for name in names_to_remove(remove, {container["name"] for container in add or ()}):
        if name in there:
            pod.remove_container(name)
    for container in add or ():
        pod.add_container(container, init=True, replace=replace)
