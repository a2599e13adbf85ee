"""etcd, the API server, the scheduler and the controller manager."""

from __future__ import annotations

import secrets
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ..build import program
from .certificates import Authority
from .client import Client
from .process import Process, free_port

__all__ = ["Core"]

ADMIN: Final = "admin"
_MASTERS: Final = "system:masters"
_AUDITED: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods"]}],
        }
    ],
}


class Core:
    """A cluster without nodes.

    Attributes:
        folder: where its files are.
        url: the API server's.
        kubeconfig: the administrator's.
        client: the administrator's.
        api_server: the process.
        audit: of pods that were created, and of what webhooks said of them; a JSON object a line.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        """Start it.

        Args:
            folder: where its files go.
            stack: what ends it.
        """
        self.folder: Path = folder
        self._port = free_port()
        self.url: str = f"https://127.0.0.1:{self._port}"
        self._token = secrets.token_hex(16)
        authority = Authority()
        self._certificates = authority.write(folder / "api-server")
        self._authority = folder / "ca.crt"
        self._authority.write_bytes(authority.pem)
        self.kubeconfig: Path = self._kubeconfig()
        self.audit: Path = folder / "audit.log"
        etcd = self._etcd(stack)
        key = self._signing_key()
        self.api_server: Process = stack.enter_context(self._api_server(etcd, key))
        self.client: Client = Client(self.kubeconfig)
        self.api_server.wait_for(lambda: self.client.raw("GET", "/readyz"))
        for process in (self._manager(key), self._scheduler()):
            stack.enter_context(process)

    def _kubeconfig(self) -> Path:
        path = self.folder / "kubeconfig"
        name = "loopback"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": ADMIN}}],
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": self.url, "certificate-authority": str(self._authority)},
                }
            ],
            "users": [{"name": ADMIN, "user": {"token": self._token}}],
        }
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        return path

    def _signing_key(self) -> Path:
        """What the API server signs the tokens of service accounts with."""
        path = self.folder / "service-accounts.key"
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return path

    def _etcd(self, stack: ExitStack) -> str:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        command = [
            program("etcd"),
            "--data-dir=etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]
        etcd = stack.enter_context(Process("etcd", command, folder=self.folder))

        def ready() -> bool:
            with urllib.request.urlopen(f"{client}/health", timeout=2) as answer:
                return bool(answer.status == 200)

        etcd.wait_for(ready)
        return client

    def _api_server(self, etcd: str, key: Path) -> Process:
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f"{self._token},{ADMIN},{ADMIN},{_MASTERS}\n")
        policy = self.folder / "audit.yaml"
        policy.write_text(yaml.safe_dump(_AUDITED))
        command = [
            program("kube-apiserver"),
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={self._certificates / 'tls.crt'}",
            f"--tls-private-key-file={self._certificates / 'tls.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--allow-privileged",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit}",
        ]
        return Process("kube-apiserver", command, folder=self.folder)

    def _own_ports(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            "--leader-elect=false",
        ]

    def _manager(self, key: Path) -> Process:
        command = [
            program("kube-controller-manager"),
            *self._own_ports(),
            f"--service-account-private-key-file={key}",
            f"--root-ca-file={self._authority}",
            "--use-service-account-credentials=false",
        ]
        return Process("kube-controller-manager", command, folder=self.folder)

    def _scheduler(self) -> Process:
        return Process(
            "kube-scheduler", [program("kube-scheduler"), *self._own_ports()], folder=self.folder
        )
