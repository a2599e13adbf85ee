"""Scheduling gates.

https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from kubetailor.registry import Pod, transformer
from kubetailor.transformers._lists import keep
from kubetailor.transformers._scheduling_types import SchedulingGate

__all__ = ["scheduling_gates"]

_KUEUE = "kueue.x-k8s.io/"
_FIELD = "schedulingGates"


def _ours(gate: SchedulingGate) -> SchedulingGate:
    """kubernetes-sigs/kueue, pkg/controller/jobs/pod/pod_webhook.go, `Default`."""
    if gate["name"].startswith(_KUEUE):
        raise ValueError(
            f"{gate['name']} is Kueue's own, which takes it off nothing but what is queued: use "
            "`kueue`"
        )
    return gate


@transformer
def scheduling_gates(
    pod: Pod,
    *,
    add: list[Annotated[SchedulingGate, AfterValidator(_ours)]] | None = None,
    remove: list[SchedulingGate] | None = None,
) -> None:
    """Keep the pods from being scheduled until a controller takes the gates off.

    Args:
        pod: the pod.
        add: gates as Kubernetes writes them.
        remove: gates that go, save those of `add`.
    """
    wanted = {gate["name"] for gate in add or ()}
    gone = {gate["name"] for gate in remove or ()} - wanted
    keep(pod, _FIELD, lambda gate: gate.get("name") not in gone)
    if add:
        pod.merge({_FIELD: add})
