"""Queues of Kueue for the tests, and what Kueue says of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .objects import condition
from .stack.client import Client
from .stack.process import wait_for

__all__ = ["QUEUE", "Queues", "is_held"]

QUEUE: Final = "kueue.x-k8s.io/queue-name"
_API: Final = "kueue.x-k8s.io/v1beta2"
_GATE: Final = {"name": "kueue.x-k8s.io/admission"}
_SUSPEND: Final[Mapping[str, tuple[str, ...]]] = {
    "Job": ("suspend",),
    "JobSet": ("suspend",),
    "PyTorchJob": ("runPolicy", "suspend"),
    "RayJob": ("suspend",),
}


class Queues:
    """A LocalQueue `team` in a namespace, its ClusterQueue, named like it, and its flavours.

    Attributes:
        flavors: the labels of the nodes of each.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        gpus: int,
        flavors: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Make them.

        Args:
            client: of the cluster.
            namespace: where the LocalQueue is.
            gpus: the quota of each flavour.
            flavors: the labels of the nodes of each, in the order in which Kueue tries them.
        """
        self._client = client
        self.namespace: str = namespace
        self.flavors: Mapping[str, Mapping[str, str]] = flavors
        quota = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(gpus)}
        resources = [{"name": name, "nominalQuota": value} for name, value in quota.items()]
        for name, nodes in flavors.items():
            self._create("ResourceFlavor", name, {"nodeLabels": dict(nodes)})
        self._create(
            "ClusterQueue",
            namespace,
            {
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": list(quota),
                        "flavors": [{"name": name, "resources": resources} for name in flavors],
                    }
                ],
            },
        )
        self._create("LocalQueue", "team", {"clusterQueue": namespace}, namespace=namespace)

    def _create(self, kind: str, name: str, spec: Any, **place: str) -> None:
        metadata = {"name": name, **place}
        self._client.create({"apiVersion": _API, "kind": kind, "metadata": metadata, "spec": spec})

    def forget(self) -> None:
        """Take them off; Kueue lets them go when nothing uses them."""
        self._client.delete(_API, "LocalQueue", self.namespace, "team")
        self._client.delete(_API, "ClusterQueue", None, self.namespace)
        for name in self.flavors:
            self._client.delete(_API, "ResourceFlavor", None, name)

    def hold(self) -> None:
        """Admit nothing for now, whatever comes next."""
        self._stop("Hold")
        wait_for("the queue to be held", self._is_held)

    def _is_held(self) -> bool:
        found = self._client.get(_API, "ClusterQueue", None, self.namespace)
        return condition(found, "Active").get("reason") == "Stopped"

    def release(self) -> None:
        """Admit again."""
        self._stop("None")

    def _stop(self, policy: str) -> None:
        spec = {"spec": {"stopPolicy": policy}}
        self._client.patch(_API, "ClusterQueue", None, self.namespace, spec)

    def workload(self, obj: Any) -> Any:
        """Kueue's own object for a job.

        Raises:
            LookupError: Kueue has made none.
        """
        uid = obj["metadata"]["uid"]
        for found in self._client.list(_API, "Workload", self.namespace):
            if any(owner["uid"] == uid for owner in found["metadata"].get("ownerReferences", ())):
                return found
        raise LookupError(f"no Workload of {obj['kind']} {obj['metadata']['name']}")

    def is_admitted(self, obj: Any) -> bool:
        """Whether Kueue lets it run."""
        return condition(self.workload(obj), "Admitted").get("status") == "True"

    def flavors_of(self, obj: Any) -> dict[str, str]:
        """Pod set -> the flavour of its GPUs, once Kueue lets it run."""
        admission = self.workload(obj)["status"]["admission"]
        return {
            found["name"]: found["flavors"]["nvidia.com/gpu"]
            for found in admission["podSetAssignments"]
        }

    def waits_for_quota(self, obj: Any) -> bool:
        """Whether Kueue has said that there is no quota for it now."""
        reserved = condition(self.workload(obj), "QuotaReserved")
        said = (reserved.get("status"), reserved.get("reason"))
        return said == ("False", "Pending") and "insufficient unused quota" in reserved["message"]


def is_held(obj: Any) -> bool:
    """Whether it is suspended or, a pod, gated."""
    if obj["kind"] == "Pod":
        return _GATE in obj["spec"].get("schedulingGates", ())
    found = obj["spec"]
    for key in _SUSPEND[obj["kind"]]:
        found = found.get(key, {})
    return found is True
