"""Topology spread.

https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers._scheduling_types import Spreading, SpreadMatch

__all__ = ["topology_spread"]


@transformer
def topology_spread(
    pod: Pod,
    *,
    add: list[Spreading] | None = None,
    remove: list[SpreadMatch] | None = None,
    replace: bool = False,
) -> None:
    """Spread the pods over zones, racks or nodes.

    A constraint takes the place of the one with the same topology key and `whenUnsatisfiable`; all
    others stay.

    Args:
        pod: the pod.
        add: constraints as Kubernetes writes them; without a `labelSelector` they count no pods.
        remove: parts of constraints; whatever agrees in all that is given goes, save what is added.
        replace: what is added takes the place of every constraint with its topology key.
    """
    wanted = {(entry["topologyKey"], entry["whenUnsatisfiable"]) for entry in add or ()}
    gone: list[SpreadMatch] = [*(remove or ())]
    if replace:
        gone += [SpreadMatch(topologyKey=entry["topologyKey"]) for entry in add or ()]
    for there in pod.get("topologySpreadConstraints") or () if gone else ():
        key, when = there.get("topologyKey"), there.get("whenUnsatisfiable")
        parts = {"topologyKey": key, "whenUnsatisfiable": when}
        if (key, when) not in wanted and any(match.items() <= parts.items() for match in gone):
            pod.unspread(key, when_unsatisfiable=when)
    for entry in add or ():
        if "labelSelector" not in entry:
            # k8s.io/apimachinery, pkg/apis/meta/v1/helpers.go: no selector selects nothing.
            pod.workload.warn(
                f"the topology spread over {entry['topologyKey']} has no labelSelector, so that it "
                "counts no pods",
                pod.where("topologySpreadConstraints"),
            )
        pod.spread(entry)
