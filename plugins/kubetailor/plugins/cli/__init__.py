"""The command line: what a chain does to manifests, and whether a config is sound.

This module is loaded as a plugin by every host, so it imports click only when a command runs.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command ``kubetailor``."""
    from kubetailor.plugins.cli.root import cli

    cli(prog_name="kubetailor")
