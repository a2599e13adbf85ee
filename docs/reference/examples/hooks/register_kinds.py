"""A row of the table, for a custom resource with a pod template."""

from collections.abc import Callable

from kubetailor.registry import Kind, PodPath, hookimpl


@hookimpl
def register_kinds(register: Callable[[Kind], None]) -> None:
    register(Kind("Notebook", "kubeflow.org", (PodPath("primary", "spec.template"),)))
