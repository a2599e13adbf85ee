"""Environment variables from ConfigMaps and Secrets.

https://kubernetes.io/docs/tasks/configure-pod-container/configure-pod-configmap/#configure-all-key-value-pairs-in-a-configmap-as-container-environment-variables
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubetailor.registry import Pod, transformer
from kubetailor.transformers._lists import keep
from kubetailor.transformers._pod_types import EnvFrom, EnvFromMatch
from kubetailor.workloads.identity import IDENTITY

__all__ = ["env_from"]

_key = IDENTITY["envFrom"]


@transformer
def env_from(
    pod: Pod,
    *,
    add: list[EnvFrom] | None = None,
    remove: list[EnvFromMatch] | None = None,
    container: str | None = None,
) -> None:
    """Take all variables of a ConfigMap or Secret into a container.

    A source is known by its kind, its name and its prefix. One that is there keeps its place; a
    new one goes to the end, where its variables win. The container's `env` wins over all of them.

    Args:
        pod: the pod.
        add: sources as Kubernetes writes them.
        remove: parts of sources; whatever agrees in all that is given goes, save what is added.
        container: the container's name; by default the primary one.
    """
    target = pod.primary if container is None else pod.container(container)
    wanted = [_key(source) for source in add or ()]

    def is_kept(source: Mapping[str, Any]) -> bool:
        return _key(source) in wanted or not any(_agrees(source, gone) for gone in remove or ())

    keep(target, "envFrom", is_kept)
    for source in add or ():
        target.merge({"envFrom": [source]})


def _agrees(source: Mapping[str, Any], match: Mapping[str, Any]) -> bool:
    prefix = {"prefix": match["prefix"]} if "prefix" in match else {}
    parts = {**_names(source), "prefix": source.get("prefix") or ""}
    return {**_names(match), **prefix}.items() <= parts.items()


def _names(source: Mapping[str, Any]) -> dict[str, Any]:
    """The name of what each reference refers to."""
    return {key: ref.get("name") for key, ref in source.items() if isinstance(ref, dict)}
