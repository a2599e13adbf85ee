"""flytekit's own commands and client, against the stack."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .process import StackError
from .s3 import S3

__all__ = ["DOMAINS", "PROJECT", "Pyflyte"]

PROJECT: Final = "flytesnacks"
DOMAINS: Final = ("development", "staging", "production")


class Pyflyte:
    """`pyflyte` as installed, told where FlyteAdmin and S3 are."""

    def __init__(self, endpoint: str, s3: S3) -> None:
        """Nothing is asked yet.

        Args:
            endpoint: FlyteAdmin's, host:port.
            s3: where it keeps data.
        """
        self.endpoint: str = endpoint
        self.env: dict[str, str] = {
            **s3.env,
            "FLYTE_PLATFORM_URL": f"dns:///{endpoint}",
            "FLYTE_PLATFORM_INSECURE": "true",
        }

    def __call__(
        self,
        *words: str,
        folder: Path,
        env: Mapping[str, str] | None = None,
        program: str = "pyflyte",
    ) -> str:
        """Run a command.

        Args:
            words: what comes after its name.
            folder: where.
            env: what it is told beside all else.
            program: its name, of what is installed beside this Python.

        Returns:
            What it printed.

        Raises:
            StackError: it fails.
        """
        command = [str(Path(sys.executable).with_name(program)), *words]
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("KUBETAILOR_")}
        done = subprocess.run(
            command,
            cwd=folder,
            env={**inherited, **self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise StackError(f"{program} {' '.join(words)}:\n{done.stderr}\n{done.stdout}")
        return done.stdout + done.stderr

    def remote(self, domain: str) -> Any:
        """A FlyteRemote."""
        from flytekit.configuration import Config, DataConfig, PlatformConfig, S3Config
        from flytekit.remote import FlyteRemote

        s3 = S3Config(
            endpoint=self.env["FLYTE_AWS_ENDPOINT"],
            access_key_id=self.env["FLYTE_AWS_ACCESS_KEY_ID"],
            secret_access_key=self.env["FLYTE_AWS_SECRET_ACCESS_KEY"],
        )
        config = Config(
            platform=PlatformConfig(endpoint=self.env["FLYTE_PLATFORM_URL"], insecure=True),
            data_config=DataConfig(s3=s3),
        )
        return FlyteRemote(config, default_project=PROJECT, default_domain=domain)
