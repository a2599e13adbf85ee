"""Environment variables.

https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.types import EnvValue, names_to_remove

__all__ = ["env"]


@transformer
def env(
    pod: Pod,
    *,
    set: dict[str, EnvValue] | None = None,
    remove: list[str] | None = None,
    container: str | None = None,
) -> None:
    """Set and remove environment variables of a container.

    One that is there is set in its place; a new one goes before the first that refers to it.

    Args:
        pod: the pod.
        set: variable -> text, or ``{valueFrom: …}`` as Kubernetes writes it.
        remove: variables that go.
        container: the container's name; by default the primary one.
    """
    target = pod.primary if container is None else pod.container(container)
    for name in names_to_remove(remove, set):
        target.remove_env(name)
    for name, value in (set or {}).items():
        if isinstance(value, str):
            target.set_env(name, value)
        else:
            target.set_env(name, value_from=dict(value["valueFrom"]))
