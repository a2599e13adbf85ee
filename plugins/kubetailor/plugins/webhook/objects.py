"""What the objects of an installation have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from kubetailor.workloads import JsonMap, Kind

__all__ = [
    "CONFIG_KEY",
    "NAME",
    "SELECTED",
    "CertificatesBy",
    "Installation",
    "cluster_object",
    "namespaced_object",
]

CertificatesBy: TypeAlias = Literal["cert-manager", "self-signed"]

NAME: Final = "kubetailor"
"""Of every object; as a webhook configuration it sorts before Kueue's, and so is called first."""

CONFIG_KEY: Final = "kubetailor.yaml"
"""The config's key in the ConfigMap."""

_LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/name": NAME,
    "app.kubernetes.io/component": "webhook",
}
SELECTED: Final[Mapping[str, str]] = {**_LABELS, "app.kubernetes.io/instance": NAME}
"""The labels of the pods."""


@dataclass(frozen=True)
class Installation:
    """What is to be installed.

    Attributes:
        image: the image.
        namespace: the namespace.
        certificates: who makes the certificates.
        files: name -> text of what is mounted beside each other, the config among them.
        kinds: the kinds that are sent to the webhook.
        launches: whether executions of Flyte's are sent too.
    """

    image: str
    namespace: str
    certificates: CertificatesBy
    files: Mapping[str, str]
    kinds: tuple[Kind, ...]
    launches: bool

    @property
    def names(self) -> list[str]:
        """The DNS names of the Service."""
        return [f"{NAME}.{self.namespace}.svc", f"{NAME}.{self.namespace}.svc.cluster.local"]


def cluster_object(
    kind: str,
    version: str,
    name: str = NAME,
    *,
    labels: Mapping[str, str] | None = None,
    **rest: Any,
) -> JsonMap:
    """An object without a namespace."""
    metadata = {"name": name, "labels": {**_LABELS, **(labels or {})}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def namespaced_object(of: Installation, kind: str, version: str, **rest: Any) -> JsonMap:
    """An object in the namespace of the installation."""
    found = cluster_object(kind, version, **rest)
    found["metadata"]["namespace"] = of.namespace
    return found
