"""An S3 server for Flyte's inputs, outputs and code, in memory."""

from __future__ import annotations

import sys
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from .process import Process, free_port

__all__ = ["S3", "start_s3"]


@dataclass(frozen=True)
class S3:
    """Where it is, and who may use it: everybody, but clients insist on keys."""

    url: str
    bucket: str = "flyte"
    key: str = "loopback"
    secret: str = "loopback"

    @property
    def env(self) -> dict[str, str]:
        """What flytekit reads."""
        return {
            "FLYTE_AWS_ENDPOINT": self.url,
            "FLYTE_AWS_ACCESS_KEY_ID": self.key,
            "FLYTE_AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def start_s3(folder: Path, stack: ExitStack) -> S3:
    """Start moto's server with one bucket."""
    port = free_port()
    s3 = S3(f"http://127.0.0.1:{port}")
    command = [Path(sys.executable).with_name("moto_server"), "--host=127.0.0.1", f"--port={port}"]
    process = stack.enter_context(Process("s3", command, folder=folder))

    def bucket() -> bool:
        request = urllib.request.Request(f"{s3.url}/{s3.bucket}", method="PUT")
        with urllib.request.urlopen(request, timeout=5) as answer:
            return bool(answer.status == 200)

    process.wait_for(bucket)
    return s3
