"""How many replicas a Flyte task has of a role, where its `custom` says so.

flyteidl/plugins/*.proto, and what flytekit's plugins write there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kubetailor.registry import CannotChangeError, Workload
from kubetailor.transformers._task_fields import put
from kubetailor.workloads import Path, dotted
from kubetailor.workloads.task_pods import REPLICAS, ray_groups
from kubetailor.workloads.workload import has_role

__all__ = ["Replicas", "set_replicas"]

_ELASTIC: Path = ("custom", "elasticConfig")


class Replicas(NamedTuple):
    """How many are wanted; None for what stays.

    Attributes:
        number: how many.
        least: the least of a range.
        most: the most of a range.
    """

    number: int | None
    least: int | None
    most: int | None


def set_replicas(workload: Workload, role: str, wanted: Replicas) -> None:
    """Set how many replicas a task has of a role.

    Args:
        workload: the task.
        role: the role; `worker` is every `worker:<group>` too.
        wanted: how many.

    Raises:
        CannotChangeError: the task has no such role, no range, or a number outside of it.
    """
    kind = str(workload.get("type"))
    if kind == "ray":
        for path in _workers(workload, role):
            _set_ray_group(workload, path, wanted)
        return
    places = REPLICAS.get(kind, {})
    if kind in _FIXED:
        places = {name: place for name, place in places.items() if name != _FIXED[kind]}
    if role not in places:
        raise _no_role(kind, role, places)
    if kind != "dask" and not workload.get("taskTypeVersion"):
        raise CannotChangeError(
            f"the config of this {kind} task has the form of version 0, which flytekit writes no "
            "more: register it again",
            field="custom",
        )
    place = ("custom", *places[role])
    if kind == "pytorch" and workload.get(*_ELASTIC) is not None:
        _set_elastic(workload, place, wanted)
        return
    if wanted.number is None or (wanted.least, wanted.most) != (None, None):
        raise CannotChangeError(
            f"the {role} replicas of a {kind} task are a number, no range: give `replicas` alone",
            field=dotted(place),
        )
    if kind == "mpi" and not wanted.number:
        raise CannotChangeError(f"an MPI job needs a {role}", field=dotted(place))
    _set_count(workload, place, wanted.number)


_FIXED: Mapping[str, str] = {"dask": "scheduler", "pytorch": "master"}
"""Roles of which there is one, whatever is asked for."""


def _no_role(kind: str, role: str, there: Mapping[str, Any]) -> CannotChangeError:
    if not there:
        text = f"a task of type {kind!r} has no number of replicas"
        if kind == "spark":
            text += "; its executors are spark.executor.instances of `spark_conf`"
        return CannotChangeError(text, field="custom")
    return CannotChangeError(
        f"a {kind} task has no {role!r} whose number can be set; roles: {', '.join(there)}",
        field="custom",
    )


def _set_count(workload: Workload, place: Path, number: int) -> None:
    if place == ("custom", "workers"):
        put(workload, (*place, "numberOfWorkers"), number or None)
        return
    # Where the common spec is there, FlytePropeller reads that alone (flyteplugins,
    # kfoperators/common/common_operator.go, `ToReplicaSpecWithOverrides`).
    common = ("common",) if workload.get(*place, "common") is not None else ()
    put(workload, (*place, *common, "replicas"), number or None)


def _set_elastic(workload: Workload, place: Path, wanted: Replicas) -> None:
    """`nnodes` of flytekit's Elastic: a number, or a range whose most is how many there are."""
    least, most = (_number(workload, (*_ELASTIC, name)) for name in ("minReplicas", "maxReplicas"))
    number, asked_least, asked_most = wanted
    if number is not None and asked_most not in (None, number):
        raise CannotChangeError(
            f"Elastic starts with the most of its range: replicas {number} is not max_replicas "
            f"{asked_most}; give one of them",
            field=dotted(place),
        )
    if number is not None:
        least = most = number
    least = least if asked_least is None else asked_least
    most = most if asked_most is None else asked_most
    if not 1 <= least <= most:
        raise CannotChangeError(f"{least}:{most} is no range of nodes", field=dotted(_ELASTIC))
    put(workload, (*_ELASTIC, "minReplicas"), least)
    put(workload, (*_ELASTIC, "maxReplicas"), most)
    _set_count(workload, place, most)


def _set_ray_group(workload: Workload, path: Path, wanted: Replicas) -> None:
    """As flytekit's WorkerNodeConfig: without a range of its own a group has as many as it says."""
    names = ("replicas", "minReplicas", "maxReplicas")
    there, least, most = (_number(workload, (*path, name)) for name in names)
    number = there if wanted.number is None else wanted.number
    if least == most == there:
        least = most = number
    least = min(least, number) if wanted.least is None else wanted.least
    most = max(most, number) if wanted.most is None else wanted.most
    if not least <= number <= most:
        raise CannotChangeError(
            f"replicas {number} is not from min_replicas {least} to max_replicas {most}",
            field=dotted(path),
        )
    for name, value in zip(names, (number, least, most), strict=True):
        put(workload, (*path, name), value or None)
    ranged = (wanted.least, wanted.most) != (None, None)
    if ranged and not workload.get("custom", "rayCluster", "enableAutoscaling"):
        workload.warn(
            "without rayCluster.enableAutoscaling Ray keeps to replicas, whatever the range",
            dotted(path),
        )


def _workers(workload: Workload, role: str) -> list[Path]:
    """The worker groups of a Ray task that have a role."""
    groups = [(path, own) for path, own in ray_groups(workload.draft.root) if own != "head"]
    found = [path for path, own in groups if has_role(own, role)]
    if not found:
        raise _no_role("ray", role, dict.fromkeys(own for _, own in groups))
    return found


def _number(workload: Workload, path: Path) -> int:
    found = workload.get(*path)
    return int(found) if isinstance(found, int | float) else 0
