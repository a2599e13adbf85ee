"""Objects of a cluster, found as kubectl finds them, by its config and its words; for reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from kubetailor.workloads import JsonMap, KubetailorError, nearest

__all__ = ["Cluster", "ResourceType"]

_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_TIMEOUT: Final = 30
_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""All types of a server in two answers (https://kubernetes.io/docs/concepts/overview/kubernetes-api)."""


@dataclass(frozen=True)
class ResourceType:
    """A type that the API server has, in one version.

    Attributes:
        group: its API group; empty for the core.
        version: its version.
        kind: its kind, such as ``PyTorchJob``.
        plural: its name in paths, such as ``pytorchjobs``.
        names: what else it is called, in lower case.
        namespaced: whether its objects are in a namespace.
    """

    group: str
    version: str
    kind: str
    plural: str
    names: frozenset[str]
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As an object has it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def is_called(self, text: str) -> bool:
        """Whether kubectl would take a text for it: ``pod``, ``jobs.batch``, ``jobs.v1.batch``."""
        name, _, rest = text.lower().partition(".")
        places = ("", self.group, f"{self.version}.{self.group}")
        return name in self.names and rest in places

    def path(self, name: str, namespace: str) -> str:
        """Where an object of it is."""
        root = f"/apis/{self.group}" if self.group else "/api"
        place = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}/{self.version}{place}/{self.plural}/{name}"


class Cluster:
    """A cluster.

    Attributes:
        namespace: where objects are looked for if nobody says where.
    """

    def __init__(self, get: Callable[[str, str], JsonMap], namespace: str) -> None:
        """One that is reached in some way.

        Args:
            get: what is at a path, in a form (as the header `Accept` says it).
            namespace: the namespace.
        """
        self._get = get
        self._types: list[ResourceType] = []
        self.namespace: str = namespace

    @classmethod
    def connect(cls, context: str | None = None) -> Cluster:
        """The cluster of the kubeconfig, else that of this pod, as kubectl has it.

        Args:
            context: the context; None for the current one.

        Raises:
            KubetailorError: kubernetes is not installed, or no config can be used.
        """
        if find_spec("kubernetes") is None:
            raise KubetailorError(
                "the package kubernetes is not installed: pip install 'kubetailor[kubernetes]'"
            )
        from kubernetes.client import ApiClient, Configuration
        from kubernetes.config import (
            ConfigException,
            list_kube_config_contexts,
            load_incluster_config,
            load_kube_config,
        )
        from yaml import YAMLError

        # Its own default is what the variable was when it was imported.
        file = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
        configuration = Configuration()
        try:
            load_kube_config(file, context, client_configuration=configuration)
            contexts: Any = list_kube_config_contexts(file)
            every, current = contexts
            chosen = next((one for one in every if one["name"] == context), current)
            namespace = chosen["context"].get("namespace")
        except (ConfigException, OSError, YAMLError) as error:
            if context is not None or "KUBERNETES_SERVICE_HOST" not in os.environ:
                raise KubetailorError(f"{file}: {error}; set KUBECONFIG as for kubectl") from None
            load_incluster_config(client_configuration=configuration)
            namespace = _NAMESPACE_FILE.read_text().strip()
        return cls(_getter(ApiClient(configuration)), namespace or "default")

    def read(self, text: str, namespace: str | None = None) -> JsonMap:
        """An object.

        Args:
            text: ``TYPE/NAME``, where TYPE is what kubectl takes: ``pod``, ``pods``, ``po``,
                ``pytorchjobs.kubeflow.org``.
            namespace: its namespace; by default that of the context.

        Raises:
            KubetailorError: there is no such type or object, or the server cannot be asked.
        """
        called, slash, name = text.partition("/")
        if not (called and slash and name) or "/" in name:
            raise KubetailorError(f"{text!r}: expected TYPE/NAME of an object, such as pod/train")
        found = next((one for one in self.types() if one.is_called(called)), None)
        if found is None:
            known = sorted({name for one in self.types() for name in one.names})
            raise KubetailorError(
                f"the server has no type {called!r}; {nearest(called, known, what='types')}"
            )
        return self._object(found, name, namespace or self.namespace)

    def owner(self, reference: JsonMap, namespace: str) -> JsonMap:
        """The object of an owner reference.

        Raises:
            KubetailorError: there is none, or the server cannot be asked.
        """
        wanted = (reference.get("apiVersion"), reference.get("kind"))
        for found in self.types():
            if (found.api_version, found.kind) == wanted:
                return self._object(found, str(reference.get("name")), namespace)
        raise KubetailorError(f"the server has no {wanted[1]} of {wanted[0]}")

    def types(self) -> list[ResourceType]:
        """All types that the server has: the core's first, of each group the preferred version."""
        if not self._types:
            for path in ("/api", "/apis"):
                self._types += _types(self._get(path, _DISCOVERY))
        return self._types

    def _object(self, type_: ResourceType, name: str, namespace: str) -> JsonMap:
        found = self._get(type_.path(name, namespace), "application/json")
        return {"apiVersion": type_.api_version, "kind": type_.kind, **found}


def _types(said: JsonMap) -> Iterator[ResourceType]:
    if said.get("kind") != "APIGroupDiscoveryList":
        raise KubetailorError("the API server is older than Kubernetes 1.30")
    for group in said.get("items") or ():
        for version in group["versions"]:
            for resource in version.get("resources") or ():
                if "responseKind" not in resource:
                    continue  # it has subresources alone
                kind, plural = resource["responseKind"]["kind"], resource["resource"]
                names = (plural, kind.lower(), *(resource.get("shortNames") or ()))
                yield ResourceType(
                    group=group["metadata"].get("name") or "",
                    version=version["version"],
                    kind=kind,
                    plural=plural,
                    names=frozenset(names),
                    namespaced=resource["scope"] == "Namespaced",
                )


def _getter(api: Any) -> Callable[[str, str], JsonMap]:
    """What asks the API server by the client of the package kubernetes."""
    from kubernetes.dynamic import DynamicClient
    from kubernetes.dynamic.exceptions import DynamicApiError
    from urllib3.exceptions import HTTPError

    # Its own discovery asks once for each group, and keeps a file.
    client = DynamicClient(api, discoverer=lambda *_: None)

    def get(path: str, form: str) -> JsonMap:
        try:
            found: JsonMap = client.request(
                "GET",
                path,
                header_params={"Accept": form},
                serializer=lambda _, data: data,
                _request_timeout=_TIMEOUT,
            )
        except DynamicApiError as error:
            raise KubetailorError(_refusal(error, path)) from None
        except HTTPError as error:
            server = api.configuration.host
            raise KubetailorError(f"the API server {server} cannot be asked: {error}") from None
        return found

    return get


def _refusal(error: Any, path: str) -> str:
    """What the server says of why not."""
    try:
        return str(error.summary())
    except (ValueError, KeyError, TypeError):  # it is no Status of Kubernetes'
        return f"{path}: {error.status} {error.reason}"
