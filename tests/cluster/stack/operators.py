"""Kueue, and the operators of custom resources."""

from __future__ import annotations

import base64
import datetime as dt
import functools
import json
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import yaml

from ..build import TOOLS, program
from .certificates import Authority
from .core import Core
from .kubectl import kubectl
from .process import Process, StackError, free_port, wait_for

__all__ = [
    "apply_crds",
    "start_jobset",
    "start_kuberay",
    "start_kueue",
    "start_training_operator",
]

FRAMEWORKS: Final = (
    "batch/job",
    "pod",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "jobset.x-k8s.io/jobset",
)

_POD: Final = {"containers": [{"name": "main", "image": "main"}], "restartPolicy": "Never"}
_QUEUED: Final = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "queued",
        "namespace": "default",
        "labels": {"kueue.x-k8s.io/queue-name": "none"},
    },
    "spec": {"template": {"spec": _POD}},
}
"""What Kueue suspends, once the API server asks it."""

_METRICS: Final = "/etc/kueue/metrics/certs"


@functools.cache
def apply_crds(core: Core, tool: str) -> None:
    """Install the custom resource definitions that come with a tool, once."""
    folder = TOOLS[tool].home / "crd"
    files = [path for path in sorted(folder.glob("*.yaml")) if path.name != "kustomization.yaml"]
    named = (f"--filename={file}" for file in files)
    # Server-side: some are too large for the annotation of a client-side apply.
    applied = kubectl(core, "apply", "--server-side", "--output=name", *named).split()
    for name in applied:
        plural, _, group = name.rpartition("/")[2].partition(".")
        served = functools.partial(_is_served, core, plural, group)
        wait_for(f"{plural} of {group}", served)


def _is_served(core: Core, plural: str, group: str) -> bool:
    """Asked of the API server's index: `kubectl wait` fails where there are no conditions yet."""
    versions = json.loads(core.client.raw("GET", f"/apis/{group}"))
    newest = versions["preferredVersion"]["groupVersion"]
    served = json.loads(core.client.raw("GET", f"/apis/{newest}"))["resources"]
    return any(found["name"] == plural for found in served)


def start_training_operator(core: Core, stack: ExitStack) -> Process:
    """Start Kubeflow's operator: PyTorchJob, TFJob, MPIJob v1 …"""
    apply_crds(core, "training-operator")
    command = [program("training-operator"), f"-kubeconfig={core.kubeconfig}"]
    return stack.enter_context(Process("training-operator", command, folder=core.folder))


def start_kuberay(core: Core, stack: ExitStack) -> Process:
    """Start KubeRay."""
    apply_crds(core, "kuberay")
    command = [
        program("kuberay"),
        f"-kubeconfig={core.kubeconfig}",
        "-enable-leader-election=false",
        f"-metrics-addr=127.0.0.1:{free_port()}",
        f"-health-probe-bind-address=127.0.0.1:{free_port()}",
    ]
    return stack.enter_context(Process("kuberay", command, folder=core.folder))


def start_jobset(core: Core, stack: ExitStack) -> Process:
    """Start JobSet's operator with its own webhooks."""
    apply_crds(core, "jobset")
    folder = core.folder / "jobset"
    authority = Authority()
    port = free_port()
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "webhook": {
            "host": "127.0.0.1",
            "port": port,
            "certDir": str(authority.write(folder / "certificates")),
        },
        "metrics": {"bindAddress": f"127.0.0.1:{free_port()}"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
    }
    file = folder / "configuration.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command = [program("jobset"), f"--config={file}", f"--kubeconfig={core.kubeconfig}"]
    jobset = stack.enter_context(Process("jobset", command, folder=core.folder))
    jobset.wait_for(lambda: _listens(port))
    for obj in _webhooks_of("jobset", authority, port):
        core.client.create(obj)
    return jobset


def start_kueue(core: Core, stack: ExitStack) -> Process:
    """Start Kueue with its own webhooks."""
    # A kind that it does not find when it starts, Kueue looks for ever more rarely.
    for tool in ("kueue", "training-operator", "kuberay", "jobset"):
        if TOOLS[tool].is_built:
            apply_crds(core, tool)
    folder = core.folder / "kueue"
    authority = Authority()
    certificates = authority.write(folder / "certificates")
    port = free_port()
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
        "metrics": {"bindAddress": f"127.0.0.1:{free_port()}"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "integrations": {"frameworks": list(FRAMEWORKS)},
    }
    _insisted(authority)
    file = folder / "configuration.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command = [
        program("kueue"),
        f"--config={file}",
        f"--kubeconfig={core.kubeconfig}",
        "--feature-gates=VisibilityOnDemand=false",
    ]
    kueue = stack.enter_context(Process("kueue", command, folder=core.folder))
    kueue.wait_for(lambda: _listens(port))
    for obj in _webhooks_of("kueue", authority, port):
        core.client.create(obj)
    kueue.wait_for(lambda: core.client.create(_QUEUED, dryRun="All")["spec"]["suspend"])
    return kueue


def _webhooks_of(tool: str, authority: Authority, port: int) -> list[dict[str, Any]]:
    """The webhook configurations that come with a tool, led to where it listens here."""
    objects = list(yaml.safe_load_all((TOOLS[tool].home / "webhook.yaml").read_text()))
    for obj in objects:
        obj["metadata"]["name"] = f"{tool}-{obj['metadata']['name']}"
        for webhook in obj["webhooks"]:
            path = webhook["clientConfig"].pop("service")["path"]
            webhook["clientConfig"] = {
                "url": f"https://127.0.0.1:{port}{path}",
                "caBundle": base64.b64encode(authority.pem).decode(),
            }
    return objects


def _insisted(authority: Authority) -> None:
    """Kueue reads the certificate of its metrics from this folder alone (cmd/kueue/main.go)."""
    if Path(_METRICS, "tls.crt").exists():
        return
    try:
        authority.write(Path(_METRICS), lives=dt.timedelta(days=3650))
    except PermissionError as error:
        raise StackError(
            f"Kueue does not start without {_METRICS}/tls.crt and tls.key, and they cannot be "
            f"written: sudo install -d -o $USER {_METRICS}"
        ) from error


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
