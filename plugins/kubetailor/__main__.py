"""``python -m kubetailor``."""

# ruff: noqa: INP001 - a namespace package has no __init__.py

from __future__ import annotations

from kubetailor.plugins.cli import main

main()
