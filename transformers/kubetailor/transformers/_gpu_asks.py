"""Which containers ask for GPUs, and how they are made to ask for others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubetailor.registry import Accelerator, Container, KubetailorError, Pod
from kubetailor.workloads import InvalidObjectError, parse_quantity
from kubetailor.workloads.quantity import is_extended_resource, is_whole, times

__all__ = ["ask_for", "gpus_of", "target_of"]

_PARTS = ("requests", "limits")


def gpus_of(
    pod: Pod, resources: frozenset[str], field: str = "containers"
) -> dict[str, dict[str, int]]:
    """Container -> GPU resource -> how many, for those that ask for more than none.

    Args:
        pod: the pod.
        resources: the resources that are GPUs.
        field: `containers` or `initContainers`.
    """
    full = {alias: name for name, alias in pod.workload.resource_aliases.items()}
    found: dict[str, dict[str, int]] = {}
    for entry in pod.peek(field) or ():
        asked = entry.get("resources") if isinstance(entry, dict) else None
        for part in _PARTS:
            for name, quantity in ((asked or {}).get(part) or {}).items():
                name = full.get(name, name)
                if name not in resources or quantity is None:
                    continue
                if (number := _number(name, quantity, pod.where(field))) > 0:
                    found.setdefault(str(entry.get("name")), {})[name] = number
    return found


def _number(name: str, quantity: Any, field: str) -> int:
    number = parse_quantity(quantity, field)
    if not is_whole(quantity):
        raise InvalidObjectError(f"{name} must be a whole number, found {quantity}", field=field)
    return int(number)


def target_of(
    pod: Pod, asking: Mapping[str, Mapping[str, int]], name: str | None
) -> tuple[Container, Mapping[str, int]]:
    """The container whose GPUs change, and what it asks for now.

    Args:
        pod: the pod.
        asking: as `gpus_of`.
        name: the container's name, if it was given.

    Raises:
        KubetailorError: which one is meant cannot be told, or the one that is named asks for none
            where another does.
    """
    if name is None and len(asking) > 1:
        raise KubetailorError(
            f"more than one container asks for a GPU: {', '.join(asking)}; name one with "
            "`container`",
            field=pod.where("containers"),
        )
    if name is not None:
        container = pod.container(name)
        if asking and name not in asking:
            raise KubetailorError(
                f"container {name!r} asks for no GPU; {', '.join(asking)} does",
                field=pod.where("containers"),
            )
        return container, asking.get(name, {})
    for only, asked in asking.items():
        return pod.container(only), asked
    return pod.primary, {}


def ask_for(
    container: Container,
    new: Accelerator,
    count: int,
    *,
    asked: Iterable[str],
    besides: Iterable[str] = (),
) -> None:
    """Let a container ask for an accelerator, and for what goes with it.

    Its resource is in the limits, since Kubernetes takes no extended resource without, and in the
    requests where the old one was. https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/

    Args:
        container: the container.
        new: the entry for this number of GPUs.
        count: how many GPUs.
        asked: the GPU resources that it asks for now.
        besides: what the old accelerator set besides; extended resources of it go too.
    """
    there = container.resources
    aliases = container.pod.workload.resource_aliases
    wanted: dict[str, dict[str, str | None]] = {}
    for part, stated in zip(_PARTS, (new.requests, new.limits), strict=True):
        known = there.get(part) or {}
        # An alias goes even if its number stays: the full name is written.
        old = [n for name in asked for n in (name, aliases.get(name, name)) if n in known]
        gone = [*old, *(name for name in besides if name in known and is_extended_resource(name))]
        wanted[part] = dict.fromkeys(gone)
        if old or part == "limits":
            wanted[part][new.resource] = str(count)
        wanted[part] |= {name: times(share, count) for name, share in new.per_gpu.items()}
        wanted[part] |= stated
    container.set_resources(wanted["requests"], wanted["limits"])
