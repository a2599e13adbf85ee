"""Writes anew what deploy/ has from elsewhere.

That is what `kubetailor webhook manifests` prints, and the alert rules as the Prometheus operator
reads them. With `--check` it writes nothing, says which are stale, and ends with 1 if any is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from kubetailor.plugins.webhook.manifests import installation, manifests
from kubetailor.plugins.webhook.objects import CertificatesBy, Installation, namespaced_object
from kubetailor.plugins.webhook.reload import load_tailor
from kubetailor.workloads import dump_yaml

DEPLOY = Path(__file__).resolve().parent
IMAGE = "registry.example.com/kubetailor"
NAMESPACE = "kubetailor-system"
HEAD = "# Written by deploy/generate.py: `make docs`.\n"


def base(certificates: CertificatesBy) -> Installation:
    """What is installed by the config of the base."""
    tailor = load_tailor(DEPLOY / "base" / "kubetailor.yaml")
    return installation(tailor, IMAGE, NAMESPACE, certificates)


def webhook() -> list[Any]:
    """All that a cluster needs."""
    return list(manifests(base("self-signed")))


def certificates() -> list[Any]:
    """What cert-manager is asked for."""
    objects = manifests(base("cert-manager"))
    return [obj for obj in objects if obj["apiVersion"].startswith("cert-manager.io/")]


def prometheus_rule() -> list[Any]:
    """The alert rules as the Prometheus operator reads them."""
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text(encoding="utf-8"))
    version = "monitoring.coreos.com/v1"
    return [namespaced_object(base("self-signed"), "PrometheusRule", version, spec=rules)]


FILES: dict[str, Callable[[], list[Any]]] = {
    "base/webhook.yaml": webhook,
    "cert-manager/certificates.yaml": certificates,
    "monitoring/prometheusrule.yaml": prometheus_rule,
}


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    stale: list[str] = []
    for name, objects in FILES.items():
        path = DEPLOY / name
        text = HEAD + dump_yaml(objects())
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"deploy/{name} {'is stale' if check else 'written'}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
