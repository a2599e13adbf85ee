"""A rule of the team, for what every chain puts out."""

from collections.abc import Iterable

from kubetailor.registry import Workload, hookimpl


@hookimpl
def validate(workload: Workload) -> Iterable[str]:
    for pod in workload.pods():
        for container in pod.containers:
            if str(container.image).endswith(":latest"):
                yield f"container {container.name}: {container.image} is no fixed version"
