"""The process: the application on uvicorn, with TLS, until it is told to end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import uvicorn

from kubetailor.plugins.webhook.app import App, Refresh
from kubetailor.plugins.webhook.certificates import CertificateFiles
from kubetailor.plugins.webhook.cluster import ACCOUNT, ApiServer
from kubetailor.plugins.webhook.logs import use_json
from kubetailor.plugins.webhook.metrics import Metrics
from kubetailor.plugins.webhook.reload import ConfigInUse, throttled
from kubetailor.plugins.webhook.rotation import SelfSigned
from kubetailor.plugins.webhook.server import Server
from kubetailor.workloads import KubetailorError

__all__ = ["serve"]

_KEEP_ALIVE: Final = 120
"""Longer than the API server keeps an idle connection (90 s), so that it never writes on one that
is just being closed."""

_GRACE: Final = 15
_SECRET_SECONDS: Final = 60.0


def serve(
    config: Path,
    *,
    host: str,
    port: int,
    certificates: Path,
    self_signed: tuple[str, str] | None,
    account: Path = ACCOUNT,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        config: the file of the config.
        host: the address to listen on.
        port: the port; 0 for any that is free.
        certificates: the folder with `tls.crt` and `tls.key`.
        self_signed: the namespace and name of the Secret from which they come and in which they
            are renewed; None if somebody else writes them.
        account: the folder with the files of the pod's service account.

    Raises:
        KubetailorError: the certificates cannot be used.
    """
    use_json()
    metrics = Metrics()
    refresh: list[Refresh] = []
    if self_signed is not None:
        namespace, name = self_signed
        rotation = SelfSigned(
            ApiServer.of_this_pod(account=account),
            namespace=namespace,
            name=name,
            directory=certificates,
        )
        asyncio.run(rotation.refresh())
        refresh.append(throttled(rotation.refresh, _SECRET_SECONDS))
    files = CertificateFiles(certificates)
    metrics.certificate(files.seconds_left)
    app = App(ConfigInUse(config, metrics), metrics, refresh=(*refresh, files.refresh))
    settings = uvicorn.Config(
        app,
        host=host,
        port=port,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
        ssl_certfile=files.certificate,
        ssl_keyfile=files.key,
    )
    try:
        settings.load()
    except OSError as error:  # ssl.SSLError is one
        raise KubetailorError(f"{files.certificate}, {files.key}: {error}") from error
    assert settings.ssl is not None
    files.use_in(settings.ssl)
    Server(settings).run()
