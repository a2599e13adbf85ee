"""Where a config is found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["FILE_NAME", "config_path", "find_config"]

FILE_NAME = "kubetailor.yaml"


def config_path(given: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The config in force, or None.

    It is the given path, else `KUBETAILOR_CONFIG`, else the nearest `kubetailor.yaml` at or above
    the working directory.
    """
    named = environ.get("KUBETAILOR_CONFIG")
    return given or (Path(named) if named else find_config(Path.cwd()))


def find_config(start: Path) -> Path | None:
    """The nearest `kubetailor.yaml` at or above a directory, or None."""
    for directory in (start, *start.parents):
        path = directory / FILE_NAME
        if path.is_file():
            return path
    return None
