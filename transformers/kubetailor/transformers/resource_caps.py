"""Caps of what containers may ask for.

https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from kubetailor.registry import CannotChangeError, InvalidObjectError, Pod, transformer
from kubetailor.transformers._lists import chosen
from kubetailor.transformers.types import Quantity
from kubetailor.workloads import parse_quantity

__all__ = ["resource_caps"]

_PARTS = ("requests", "limits")


@transformer(replicas=True)
def resource_caps(
    pod: Pod,
    *,
    max: dict[str, Quantity],
    on_excess: Literal["refuse", "reduce"] = "refuse",
    containers: list[str] | None = None,
) -> None:
    """Let no container ask for more of a resource than a cap.

    It sees requests and limits as they are when the step runs, so it belongs into `enforce`. What
    is not asked for is not capped: a container without a limit has none after it.

    Args:
        pod: the pod.
        max: resource -> the most that a request or a limit may be.
        on_excess: refuse the workload, or reduce what is too much to the cap, with a warning.
        containers: globs of the names of the containers; by default every one, init containers
            too, and what the pod as a whole asks for.
    """
    _check_kind(pod, max)
    reduce = on_excess == "reduce"
    for target in pod.every_container if containers is None else chosen(pod, containers):
        whose = f"container {target.name!r}"
        _cap(pod, target.resources, max, whose, target.set_resources, reduce)
    if containers is None:
        _cap(pod, pod.get("resources") or {}, max, "the pod", _of_pod(pod), reduce)


_Put = Callable[[dict[str, Any], dict[str, Any]], None]
"""Sets requests and limits."""


def _of_pod(pod: Pod) -> _Put:
    def set_resources(*parts: dict[str, Any]) -> None:
        for part, values in zip(_PARTS, parts, strict=True):
            if values:
                pod.edit("resources", part).update(values)

    return set_resources


def _check_kind(pod: Pod, most: Mapping[str, str]) -> None:
    own = [name for name in most if "/" not in name]
    if own and pod.workload.kind_name.endswith("SparkApplication"):
        raise CannotChangeError(
            f"no cap of {', '.join(own)} reaches Spark, whose cores and memory are fields of its "
            "own; leave it out with `when: {not: {kind: '*SparkApplication'}}`",
            field=pod.where(),
        )


def _cap(
    pod: Pod,
    resources: Mapping[str, Any],
    most: Mapping[str, str],
    whose: str,
    put: _Put,
    reduce: bool,
) -> None:
    for name, cap in most.items():
        alias = pod.workload.resource_aliases.get(name)
        over = dict(_over(resources, name, alias, cap, pod.where("containers")))
        if not over:
            continue
        asked = ", ".join(f"{part}.{name} {value}" for part, value in over.items())
        text = f"{asked} of {whose} is more than the cap {cap}"
        if not reduce:
            raise InvalidObjectError(text, field=pod.where("containers"))
        put(*({name: cap} if part in over else {} for part in _PARTS))
        pod.workload.warn(f"{text}, to which it is reduced", pod.where("containers"))


def _over(
    resources: Mapping[str, Any], name: str, alias: str | None, cap: str, where: str
) -> Iterator[tuple[str, Any]]:
    """The (part, quantity) of each request and limit that is more than a cap."""
    for part in _PARTS:
        there = resources.get(part) or {}
        value = there.get(name, there.get(alias) if alias else None)
        if value is not None and parse_quantity(value, where) > parse_quantity(cap):
            yield part, value
