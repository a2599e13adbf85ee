"""ACME's plugin for kubetailor.

Every function marked with `@transformer` is registered as `acme_platform.<function>`; the functions
marked with `@hookimpl` register what is not a transformer. Nothing here says when a transformer
runs, or in which order: that is for kubetailor.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubernetes.client import V1PodDNSConfig, V1PodDNSConfigOption, V1PodSpec

from kubetailor.registry import Kind, Pod, PodPath, TaskContext, Workload, hookimpl, transformer

__all__ = ["cost_centre", "ndots", "register_kinds", "spot", "validate"]


@transformer
def spot(pod: Pod, *, pool: str = "spot") -> None:
    """Let the task run on the team's spot pool.

    Args:
        pod: the pod.
        pool: the pool of spot nodes.
    """
    pod.select_node("acme.example.com/pool", pool)
    pod.tolerate("acme.example.com/spot", effect="NoSchedule")


@transformer
def cost_centre(workload: Workload, task: TaskContext) -> None:
    """Label the object itself, not its pods, with who pays: the Flyte project."""
    if task.project is not None:
        workload.label("acme.example.com/cost-centre", task.project)


@transformer
def ndots(spec: V1PodSpec, *, value: int = 2) -> V1PodSpec:
    """Have the pod try a name with `value` dots as it is first; spares the cluster's DNS.

    Args:
        spec: the pod spec, as a model of the kubernetes client.
        value: the number of dots.
    """
    dns = spec.dns_config or V1PodDNSConfig()
    others = [option for option in dns.options or [] if option.name != "ndots"]
    dns.options = [*others, V1PodDNSConfigOption(name="ndots", value=str(value))]
    spec.dns_config = dns
    return spec


@hookimpl
def register_kinds(register: Callable[[Kind], None]) -> None:
    """ACME's own job: kubetailor learns where it keeps its pods."""
    register(
        Kind(
            "TrainingRun",
            "acme.example.com",
            (
                PodPath("trainer", "spec.trainer.template", primary=("trainer",)),
                PodPath("evaluator", "spec.evaluator.template", primary=("evaluator",)),
            ),
        )
    )


@hookimpl
def validate(workload: Workload) -> Iterator[str]:
    """Refuse images that may be another tomorrow: without a tag, or tagged `latest`."""
    for pod in workload.pods():
        for container in pod.containers:
            if container.image and _floats(container.image):
                yield f"container {container.name!r}: image {container.image!r} has no fixed tag"


def _floats(image: str) -> bool:
    tag = image.rpartition("/")[2].partition(":")[2]
    return "@" not in image and tag in ("", "latest")
