"""`kubetailor webhook serve`, in front of the API server."""

from __future__ import annotations

import base64
import datetime as dt
import json
import ssl
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from kubetailor.plugins.webhook.manifests import installation
from kubetailor.plugins.webhook.reload import load_tailor
from kubetailor.plugins.webhook.selection import configuration

from .certificates import Authority
from .client import ApiError
from .core import Core
from .process import Process, free_port, wait_for
from .service import Service

__all__ = ["Webhook"]

KUBETAILOR = Path(sys.executable).with_name("kubetailor")
_PROBE: Final = "kubetailor.dev/probe"


class Webhook:
    """The webhook for some namespaces: its servers, their Service, its configuration.

    Attributes:
        name: of the webhook configuration.
        config: the file of the config; it is reloaded when it changes.
        authority: who signs its certificates.
        certificates: the folder they are in.
        replicas: port -> server.
    """

    def __init__(
        self,
        core: Core,
        stack: ExitStack,
        config: str,
        *namespaces: str,
        name: str = "kubetailor",
        files: Mapping[str, str] | None = None,
        replicas: int = 1,
    ) -> None:
        """Serve, and let the API server ask.

        Args:
            core: the cluster.
            stack: what ends it, and takes the configuration off.
            config: the text of the config.
            namespaces: those that it is asked for.
            name: of the webhook configuration; the API server asks them in the order of names.
            files: what lies beside the config, a plugin's file say.
            replicas: how many servers.
        """
        self._core = core
        self._stack = stack
        self.name: str = name
        self._folder = core.folder / f"webhook-{name}-{free_port()}"
        self.authority: Authority = Authority()
        self.certificates: Path = self.authority.write(self._folder / "certificates")
        self.config: Path = self._folder / "config" / "kubetailor.yaml"
        self.config.parent.mkdir()
        for file, text in (files or {}).items():
            (self.config.parent / file).write_text(text)
        self.config.write_text(config)
        self.replicas: dict[int, Process] = {}
        for _ in range(replicas):
            self.serve()
        self._service = stack.enter_context(Service(self._ready))
        stack.callback(self.forget)
        core.client.create(self.configuration(namespaces))
        if namespaces:
            wait_for(f"{name} to be asked", lambda: self._is_asked(namespaces[0]), every=0.02)

    def serve(self, port: int | None = None, *, until: str = "/readyz") -> int:
        """Start one more server.

        Args:
            port: where it listens; None for a port of its own.
            until: the page that is waited for.

        Returns:
            Its port.
        """
        port = port or free_port()
        command = [
            KUBETAILOR,
            "webhook",
            "serve",
            f"--config={self.config}",
            "--host=127.0.0.1",
            f"--port={port}",
            f"--certificates={self.certificates}",
        ]
        server = self._stack.enter_context(Process(f"server-{port}", command, folder=self._folder))
        self.replicas[port] = server
        server.wait_for(lambda: self.ask(port, until))
        return port

    def configuration(self, namespaces: tuple[str, ...]) -> dict[str, Any]:
        """What `kubetailor webhook manifests` makes, led to here and bound to the namespaces."""
        of = installation(load_tailor(self.config), "loopback", "kubetailor-system", "self-signed")
        found = configuration(of)
        found["metadata"]["name"] = self.name
        for webhook in found["webhooks"]:
            webhook["clientConfig"] = {
                "url": f"https://127.0.0.1:{self._service.port}/mutate",
                "caBundle": base64.b64encode(self.authority.pem).decode(),
            }
            webhook["namespaceSelector"]["matchExpressions"].append(
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": list(namespaces),
                }
            )
        found["webhooks"].append(_probe(self.name))
        return found

    def reload(self, config: str, *, seconds: float = 120) -> None:
        """Replace the config, and wait until all servers use it."""
        new = self.config.with_suffix(".new")
        new.write_text(config)
        new.replace(self.config)
        digest = load_tailor(self.config).digest
        wait_for("the new config", lambda: self._use(digest), seconds=seconds)

    def _use(self, digest: str) -> bool:
        return all(digest in self.ask(port, "/metrics") for port in self.replicas)

    def forget(self) -> None:
        """The API server asks no longer."""
        self._core.client.delete(
            "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", None, self.name
        )

    def ask(self, port: int, path: str) -> str:
        """GET a page of one server."""
        trust = ssl.create_default_context(cadata=self.authority.pem.decode())
        url = f"https://127.0.0.1:{port}{path}"
        with urllib.request.urlopen(url, timeout=5, context=trust) as answer:
            return str(answer.read().decode())

    def renew(self, *, lives: dt.timedelta) -> None:
        """Replace the certificates on disk."""
        self.authority.write(self.certificates, lives=lives)

    def log(self) -> str:
        """What all servers have logged."""
        return "".join(file.read_text() for file in sorted(self._folder.glob("server-*.log")))

    def events(self, event: str) -> list[dict[str, Any]]:
        """The lines of the log about an event; every line is one JSON object."""
        lines = [json.loads(line) for line in self.log().splitlines()]
        return [line for line in lines if line["event"] == event]

    def decisions(self, *names: str) -> list[dict[str, Any]]:
        """What was logged of the objects of these names; without one, of all."""
        found = self.events("decision")
        return [line for line in found if line.get("name") in names] if names else found

    def wait_for_events(self, event: str, count: int) -> None:
        """Wait until something was logged so often."""
        wait_for(event, lambda: len(self.events(event)) >= count)

    def _is_asked(self, namespace: str) -> bool:
        """Whether the API server has noticed the configuration, which takes it a moment."""
        metadata = {"name": "probe", "namespace": namespace, "labels": {_PROBE: self.name}}
        probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        try:
            self._core.client.create(probe, dryRun="All")
        except ApiError:
            return True
        return False

    def _ready(self) -> list[int]:
        """The ports of the servers that are there, as a kubelet's probes keep them."""
        return [port for port, server in self.replicas.items() if server.is_running]


def _probe(name: str) -> dict[str, Any]:
    """A webhook that nobody serves: what it selects is denied once the configuration is in use."""
    return {
        "name": "probe.kubetailor.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
                "operations": ["CREATE"],
            }
        ],
        "objectSelector": {"matchLabels": {_PROBE: name}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
    }
