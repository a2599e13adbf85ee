"""Everything that a cluster needs for the webhook, as Kubernetes objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kubetailor.plugins.webhook.deployment import deployment
from kubetailor.plugins.webhook.objects import (
    CONFIG_KEY,
    NAME,
    SELECTED,
    CertificatesBy,
    Installation,
    cluster_object,
    namespaced_object,
)
from kubetailor.plugins.webhook.selection import configuration
from kubetailor.registry import ConfigError
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap

__all__ = ["installation", "manifests"]

_NOT_RUN: Final = frozenset({("", "PodTemplate"), ("flyte", "TaskTemplate")})
_ROOT: Final = f"{NAME}-self-signed"
_AUTHORITY: Final = f"{NAME}-authority"
_RBAC: Final = "rbac.authorization.k8s.io"
_POD_SECURITY: Final = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
}


def installation(
    tailor: Tailor, image: str, namespace: str, certificates: CertificatesBy
) -> Installation:
    """The installation of a config, and of the plugin files that it names.

    Raises:
        ConfigError: a plugin's file is not in the config's own folder.
    """
    kinds = tailor.config.plugins.kinds
    sent = tuple(kind for key, kind in kinds.items() if key not in _NOT_RUN)
    launches = "launch" in tailor.config.phases
    return Installation(image, namespace, certificates, dict(_files(tailor)), sent, launches)


def _files(tailor: Tailor) -> Iterator[tuple[str, str]]:
    """A ConfigMap holds no folders, so plugins given as files must be beside the config."""
    config = Path(tailor.config.file).resolve()
    yield CONFIG_KEY, config.read_text()
    for plugin in tailor.config.plugins.all:
        if plugin.distribution is None and plugin.origin.endswith(".py"):
            file = Path(plugin.origin)
            if file.parent != config.parent:
                raise ConfigError(
                    f"{config}: the plugin {file} is not in the folder of the config, so a "
                    "ConfigMap cannot hold it; put it there, or install it in the image"
                )
            yield file.name, file.read_text()


def manifests(of: Installation) -> list[JsonMap]:
    """The objects, in an order in which they can be applied."""
    return [
        cluster_object("Namespace", "v1", of.namespace, labels=_POD_SECURITY),
        *_identity(of),
        *_certificates(of),
        namespaced_object(of, "ConfigMap", "v1", data=dict(of.files)),
        namespaced_object(
            of,
            "Service",
            "v1",
            spec={
                "selector": dict(SELECTED),
                "ports": [{"name": "https", "port": 443, "targetPort": "https"}],
            },
        ),
        namespaced_object(
            of,
            "PodDisruptionBudget",
            "policy/v1",
            spec={
                "minAvailable": 1,
                "selector": {"matchLabels": dict(SELECTED)},
                # One that is not ready protects nothing, and would keep its node from a drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        ),
        deployment(of),
        configuration(of),
    ]


def _identity(of: Installation) -> Iterator[JsonMap]:
    """It calls the API server for nothing but its own certificates."""
    yield namespaced_object(of, "ServiceAccount", "v1", automountServiceAccountToken=False)
    if of.certificates != "self-signed":
        return
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": of.namespace}
    own_secret = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [NAME],
        "verbs": ["get", "update"],
    }
    own_configuration = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations"],
        "resourceNames": [NAME],
        "verbs": ["get", "patch"],
    }
    yield namespaced_object(of, "Role", f"{_RBAC}/v1", rules=[own_secret])
    yield namespaced_object(of, "RoleBinding", f"{_RBAC}/v1", **_bound("Role", subject))
    yield cluster_object("ClusterRole", f"{_RBAC}/v1", rules=[own_configuration])
    yield cluster_object("ClusterRoleBinding", f"{_RBAC}/v1", **_bound("ClusterRole", subject))


def _bound(role: str, subject: JsonMap) -> JsonMap:
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": NAME},
        "subjects": [subject],
    }


def _certificates(of: Installation) -> Iterator[JsonMap]:
    """A Secret to be filled, or who fills it.

    The kubelet needs a minute to mount a renewed certificate, and until then the old one must be
    good: so what signs it is an authority, which keeps its key when it is renewed itself.
    """
    if of.certificates == "self-signed":
        # Empty: the webhook fills it. It may update this one, and create none.
        yield namespaced_object(of, "Secret", "v1", type="Opaque")
        return
    yield _by_cert_manager(of, "Issuer", _ROOT, selfSigned={})
    yield _by_cert_manager(
        of,
        "Certificate",
        _AUTHORITY,
        secretName=_AUTHORITY,
        isCA=True,
        commonName=_AUTHORITY,
        duration="17520h",
        issuerRef={"kind": "Issuer", "name": _ROOT},
        privateKey={"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Never"},
    )
    yield _by_cert_manager(of, "Issuer", NAME, ca={"secretName": _AUTHORITY})
    yield _by_cert_manager(
        of,
        "Certificate",
        NAME,
        secretName=NAME,
        dnsNames=of.names,
        issuerRef={"kind": "Issuer", "name": NAME},
        privateKey={"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
    )


def _by_cert_manager(of: Installation, kind: str, name: str, **spec: Any) -> JsonMap:
    return namespaced_object(of, kind, "cert-manager.io/v1", name=name, spec=spec)
