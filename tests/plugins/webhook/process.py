"""A process of `kubetailor webhook serve`, and connections to it."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from kubetailor.plugins.webhook.certificates import Certificates, renewed
from kubetailor.plugins.webhook.reviews import dump

from .conftest import review_of


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def write(directory: Path, found: Certificates) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "tls.key").write_bytes(found.key)
    (directory / "tls.crt").write_bytes(found.certificate)


class Server:
    """The process, what it logs, and connections to it."""

    def __init__(self, process: subprocess.Popen[bytes], bundle: bytes) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._started = threading.Event()
        self.port = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self._started.wait(60), self.lines
        assert self.port, self.lines
        self.trust(bundle)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            self.lines.append(said)
            if "running on https://" in said.get("message", ""):
                self.port = int(said["message"].partition("https://127.0.0.1:")[2].split(" ")[0])
                self._started.set()
        self._started.set()

    def trust(self, bundle: bytes) -> None:
        self._context = ssl.create_default_context(cadata=bundle.decode())

    def connect(self) -> http.client.HTTPSConnection:
        found = http.client.HTTPSConnection(
            "localhost", self.port, context=self._context, timeout=20
        )
        found.connect()
        return found

    @staticmethod
    def post(connection: http.client.HTTPSConnection, body: bytes) -> tuple[int, bytes]:
        connection.request("POST", "/mutate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def mutate(self, connection: http.client.HTTPSConnection) -> dict[str, Any]:
        _, text = self.post(connection, dump(review_of("pod-n0-0")))
        found: dict[str, Any] = json.loads(text)["response"]
        return found

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextlib.contextmanager
def serving(config: Path) -> Generator[Server]:
    """A server of a config, with certificates in a folder beside it."""
    made = renewed(None, ["localhost"], now())
    write(config.parent / "certificates", made)
    arguments = ["--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "kubetailor", "webhook", "serve", *arguments),
            *("--config", str(config)),
            *("--certificates", str(config.parent / "certificates")),
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    found = Server(process, made.bundle)
    try:
        yield found
    finally:
        if process.poll() is None:
            found.end()
