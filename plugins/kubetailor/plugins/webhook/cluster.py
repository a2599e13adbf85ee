"""The few calls to the API server that the webhook makes for its own certificates.

A client library would take more memory than the rest of the server.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubetailor.workloads import JsonMap, KubetailorError

__all__ = ["ACCOUNT", "ApiServer", "ApiServerError"]

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the files of its service account."""

_JSON: Final = "application/json"
_TIMEOUT: Final = 10.0


class ApiServerError(KubetailorError):
    """The API server refused a call.

    Attributes:
        code: the HTTP code; 0 if there was no answer.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code: int = code


@dataclass(frozen=True)
class ApiServer:
    """Where it is, and who calls.

    Attributes:
        host: its address.
        port: its port.
        token_file: the file with the bearer token; it is read for each call, since it is renewed.
        ca_file: whom to trust.
    """

    host: str
    port: int
    token_file: Path
    ca_file: Path

    @classmethod
    def of_this_pod(
        cls, environ: Mapping[str, str] = os.environ, account: Path = ACCOUNT
    ) -> ApiServer:
        """As every pod finds it.

        https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/

        Args:
            environ: the environment.
            account: the folder with the files of the service account.

        Raises:
            KubetailorError: this is no pod.
        """
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise KubetailorError(
                "KUBERNETES_SERVICE_HOST is not set: this is no pod, so no Secret can hold "
                "certificates; give a folder of files with --certificates alone"
            )
        return cls(host, int(port), account / "token", account / "ca.crt")

    def call(self, method: str, path: str, body: Any = None, content_type: str = _JSON) -> JsonMap:
        """Call it.

        Raises:
            ApiServerError: it refused, or could not be reached.
        """
        try:
            context = ssl.create_default_context(cafile=str(self.ca_file))
            connection = http.client.HTTPSConnection(
                self.host, self.port, context=context, timeout=_TIMEOUT
            )
            try:
                headers = {
                    "Authorization": f"Bearer {self.token_file.read_text().strip()}",
                    "Content-Type": content_type,
                    "Accept": _JSON,
                }
                text = None if body is None else json.dumps(body)
                connection.request(method, path, text, headers)
                answer = connection.getresponse()
                said = answer.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise ApiServerError(0, f"{method} {path}: {error}") from error
        if answer.status >= 300:
            raise ApiServerError(answer.status, f"{method} {path}: {answer.status} {_reason(said)}")
        found: JsonMap = json.loads(said)
        return found


def _reason(said: bytes) -> str:
    try:
        return str(json.loads(said).get("message"))
    except (ValueError, AttributeError):
        return said[:200].decode(errors="replace")
