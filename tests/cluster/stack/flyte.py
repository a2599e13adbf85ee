"""Flyte's control plane: FlytePropeller, and FlyteAdmin or what stands in for it."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from typing import Any, Final

import yaml

from ..build import program
from .core import Core
from .datacatalog import start_datacatalog
from .operators import apply_crds
from .process import Process, free_port, wait_for
from .s3 import S3

__all__ = ["start_flyteadmin", "start_propeller", "start_standin"]

_REAL: Final = "KUBETAILOR_FLYTEADMIN"
_REAL_STARTS_IN: Final = 600.0

_PLUGINS: Final = (
    "container",
    "sidecar",
    "K8S-ARRAY",
    "pytorch",
    "tensorflow",
    "mpi",
    "ray",
    "dask",
    "echo",
)

_SETTINGS: Final = {
    "task_resources": {
        "defaults": {"cpu": "100m", "memory": "100Mi"},
        "limits": {"cpu": "128", "memory": "1Ti", "gpu": "16"},
    }
}

_DASK_JOB: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "daskjobs.kubernetes.dask.org"},
    "spec": {
        "group": "kubernetes.dask.org",
        "scope": "Namespaced",
        "names": {"kind": "DaskJob", "plural": "daskjobs", "singular": "daskjob"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
"""Dask's operator is Python and its definitions are in no Go module: any DaskJob is taken."""


def start_flyteadmin(core: Core, s3: S3, stack: ExitStack) -> str:
    """Start the stand-in, or wait for a real one: see tools/flyteadmin/README.md.

    Returns:
        Its endpoint, host:port.
    """
    real = os.environ.get(_REAL)
    if not real:
        return start_standin(core, s3, stack)
    file = core.folder / "real-flyteadmin.yaml"
    server = {"server": {"kube-config": str(core.kubeconfig)}}
    new = file.with_suffix(".new")
    new.write_text(yaml.safe_dump({**_SETTINGS, **server, "storage": _storage(s3)}))
    new.rename(file)
    what = f"the FlyteAdmin of {_REAL}, {real}, to be started with {file}"
    host, _, port = real.rpartition(":")
    wait_for(what, lambda: _listens(host, int(port)), seconds=_REAL_STARTS_IN, every=0.5)
    return real


def _listens(host: str, port: int) -> bool:
    with socket.create_connection((host, port), timeout=1):
        return True


def start_standin(core: Core, s3: S3, stack: ExitStack, **settings: Any) -> str:
    """Start the stand-in.

    Args:
        core: the cluster that it writes into.
        s3: where it keeps data.
        stack: what ends it.
        settings: sections of FlyteAdmin's config beside those that the stack needs.

    Returns:
        Its endpoint, host:port.
    """
    port = free_port()
    file = core.folder / "flyteadmin.yaml"
    file.write_text(yaml.safe_dump({**_SETTINGS, **settings}))
    command = [
        program("flyteadmin"),
        f"--config={file}",
        f"--listen=127.0.0.1:{port}",
        f"--kubeconfig={core.kubeconfig}",
        f"--s3-endpoint={s3.url}",
        f"--s3-access-key={s3.key}",
        f"--s3-secret-key={s3.secret}",
        f"--bucket={s3.bucket}",
    ]
    process = stack.enter_context(Process("flyteadmin", command, folder=core.folder))
    process.wait_for(lambda: _listens("127.0.0.1", port))
    return f"localhost:{port}"


def start_propeller(core: Core, s3: S3, admin: str, stack: ExitStack) -> Process:
    """Start FlytePropeller for all namespaces."""
    apply_crds(core, "flytepropeller")
    core.client.create(_DASK_JOB)
    file = core.folder / "propeller.yaml"
    catalog = start_datacatalog(core, stack)
    file.write_text(yaml.safe_dump(_configuration(core, s3, admin, catalog)))
    command = [program("flytepropeller"), f"--config={file}"]
    process = stack.enter_context(Process("flytepropeller", command, folder=core.folder))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/flyteworkflows.flyte.lyft.com"
    wait_for(
        "the definition of FlyteWorkflow",
        lambda: core.client.raw("GET", path),
        while_=process.check,
    )
    return process


def _configuration(core: Core, s3: S3, admin: str, catalog: str) -> dict[str, Any]:
    return {
        "propeller": {
            "create-flyteworkflow-crd": True,
            "kube-config": str(core.kubeconfig),
            "limit-namespace": "all",
            "leader-election": {"enabled": False},
            "metrics-prefix": "flyte",
            "rawoutput-prefix": f"s3://{s3.bucket}/data",
            "metadata-prefix": "metadata/propeller",
            "prof-port": free_port(),
            "workers": 4,
            "workflow-reeval-duration": "2s",
            "downstream-eval-duration": "1s",
            # Flyte's charts wait 5 s and more between two tries; Propeller alone does not wait, and
            # has tried for the last time within a second.
            "queue": {
                "queue": {
                    "type": "maxof",
                    "base-delay": "200ms",
                    "max-delay": "5s",
                    "rate": 1000,
                    "capacity": 10000,
                }
            },
        },
        "storage": _storage(s3),
        "event": {"type": "admin", "rate": 500, "capacity": 1000},
        "admin": {"endpoint": f"dns:///{admin}", "insecure": True},
        "catalog-cache": {
            "type": "datacatalog",
            "endpoint": f"dns:///{catalog}",
            "insecure": True,
        },
        "tasks": {"task-plugins": {"enabled-plugins": list(_PLUGINS)}},
        "plugins": {
            "k8s": {
                "default-cpus": "100m",
                "default-memory": "100Mi",
                # As on GKE.
                "gpu-device-node-label": "cloud.google.com/gke-accelerator",
                "gpu-partition-size-node-label": "cloud.google.com/gke-gpu-partition-size",
            }
        },
        "logger": {"level": 3, "show-source": True},
    }


def _storage(s3: S3) -> dict[str, Any]:
    """The section of that name, which all of Flyte's programs read."""
    return {
        "type": "stow",
        "container": s3.bucket,
        "stow": {
            "kind": "s3",
            "config": {
                "auth_type": "accesskey",
                "access_key_id": s3.key,
                "secret_key": s3.secret,
                "region": "us-east-1",
                "endpoint": s3.url,
                "disable_ssl": "true",
            },
        },
    }
