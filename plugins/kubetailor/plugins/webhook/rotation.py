"""Certificates of our own, kept in a Secret that all replicas share, and renewed by any of them.

The Secret is written first, and by one replica alone (`resourceVersion`); then the API server is
told whom to trust; only then is the new certificate served. While the authority changes both are
trusted, so no replica is ever served that the API server does not know. Who empties the Secret has
all made anew in the same way.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kubetailor.plugins.webhook.certificates import CERTIFICATE, KEY, Certificates, renewed
from kubetailor.plugins.webhook.cluster import ApiServer, ApiServerError
from kubetailor.plugins.webhook.logs import log
from kubetailor.workloads import JsonMap

__all__ = ["SelfSigned"]

_FIELDS: Final[Mapping[str, str]] = {
    "bundle": "ca.crt",
    "authority_key": "ca.key",
    "certificate": CERTIFICATE,
    "key": KEY,
}
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_CONFLICT: Final = 409
_ATTEMPTS: Final = 5
_TOLD_SECONDS: Final = 2.0
"""What the API server needs to notice its own webhook configuration."""


class SelfSigned:
    """Keeps the certificates in a folder what they should be."""

    def __init__(
        self,
        api: ApiServer,
        *,
        namespace: str,
        name: str,
        directory: Path,
        clock: Callable[[], datetime.datetime] | None = None,
        told_seconds: float = _TOLD_SECONDS,
    ) -> None:
        """Nothing is done yet.

        Args:
            api: the API server.
            namespace: the namespace of the Secret and of the Service.
            name: the name of both, and of the webhook configuration.
            directory: where the certificate and its key are written.
            clock: the time.
            told_seconds: how long the API server needs to notice whom it is to trust.
        """
        self._api = api
        self._secret = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        self._configuration = f"{_CONFIGURATIONS}/{name}"
        self._names: Sequence[str] = (
            f"{name}.{namespace}.svc",
            f"{name}.{namespace}.svc.cluster.local",
        )
        self._directory = directory
        self._clock = clock or (lambda: datetime.datetime.now(datetime.timezone.utc))
        self._told_seconds = told_seconds
        self._in_use: Certificates | None = None

    async def refresh(self) -> None:
        """Renew what is due, by this replica or another, and write it into the folder.

        Raises:
            ApiServerError: the API server refused.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(None, self._agreed)
        told = await loop.run_in_executor(None, self._tell, found.bundle)
        if self._in_use is not None and found.certificate == self._in_use.certificate:
            return
        if told:
            await asyncio.sleep(self._told_seconds)
        self._write(found)
        self._in_use = found

    def _agreed(self) -> Certificates:
        """What the Secret holds, renewed if it is due."""
        for _ in range(_ATTEMPTS):
            secret = self._api.call("GET", self._secret)
            old = _read(secret)
            new = renewed(old, self._names, self._clock())
            if new is old:
                return new
            if old is None and self._in_use is not None:
                new = replace(new, bundle=new.bundle + self._in_use.bundle)
            data = {_FIELDS[field]: _text(getattr(new, field)) for field in _FIELDS}
            try:
                self._api.call("PUT", self._secret, {**secret, "data": data})
            except ApiServerError as error:
                if error.code != _CONFLICT:
                    raise
            else:
                log("info", "certificate renewed", secret=self._secret)
                return new
        raise ApiServerError(_CONFLICT, f"{self._secret}: changed by others again and again")

    def _tell(self, bundle: bytes) -> bool:
        """Let the API server trust the bundle; False if it does already."""
        found = self._api.call("GET", self._configuration)
        wanted = _text(bundle)
        patch = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": wanted}
            for index, webhook in enumerate(found.get("webhooks") or ())
            if webhook["clientConfig"].get("caBundle") != wanted
        ]
        if not patch:
            return False
        version = found["metadata"]["resourceVersion"]
        test = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
        self._api.call("PATCH", self._configuration, [test, *patch], "application/json-patch+json")
        return True

    def _write(self, found: Certificates) -> None:
        """The key first: a reader that sees one of them new and one old tries again."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for name, text in ((KEY, found.key), (CERTIFICATE, found.certificate)):
            new = self._directory / f".{name}"
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(text)
            new.replace(self._directory / name)


def _read(secret: JsonMap) -> Certificates | None:
    data = secret.get("data") or {}
    if not all(data.get(name) for name in _FIELDS.values()):
        return None
    return Certificates(**{field: base64.b64decode(data[name]) for field, name in _FIELDS.items()})


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
