"""``-f``: the objects of files, folders and the standard input, as kubectl takes them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kubetailor.registry.location import FILE_NAME
from kubetailor.workloads import Document, DocumentError, load_documents

__all__ = ["filename_options", "read_manifests"]

F = TypeVar("F", bound=Callable[..., Any])

_STDIN = "-"
_SUFFIXES = (".json", ".yaml", ".yml")


def filename_options(*, required: bool = True) -> Callable[[F], F]:
    """``-f`` and ``-R``, given to the command as `filename: tuple[str, ...]` and `recursive`.

    Args:
        required: whether there must be one.
    """
    recursive = click.option(
        "-R", "--recursive", is_flag=True, help="Read folders and all that is in them."
    )
    filename = click.option(
        "-f",
        "--filename",
        multiple=True,
        required=required,
        metavar="FILE|DIR|-",
        help="Manifests: YAML streams, JSON, or either with a List. Of a folder its *.yaml, *.yml "
        f"and *.json, but no {FILE_NAME}. Repeat it for more.",
    )
    return lambda command: filename(recursive(command))


def read_manifests(names: Sequence[str], recursive: bool) -> tuple[list[Document], list[str]]:
    """The objects of all the files, and what is wrong with some of them.

    Args:
        names: files, folders, or ``-``.
        recursive: read folders and all that is in them.
    """
    documents: list[Document] = []
    faults: list[str] = []
    for name in names:
        before = len(documents), len(faults)
        for path in _files(name, recursive):
            try:
                documents += load_documents(_bytes(path), _shown(path))
            except DocumentError as error:
                faults.append(str(error))
            except OSError as error:
                faults.append(f"{path}: {error.strerror or error}")
        if before == (len(documents), len(faults)):
            faults.append(f"{_shown(name)}: there is no object in it")
    return documents, faults


def _files(name: str, recursive: bool) -> list[str]:
    """The files that a name stands for, in the order of their paths."""
    if name == _STDIN or not Path(name).is_dir():
        return [name]
    found: list[str] = []
    for folder, folders, files in os.walk(name):
        folders[:] = sorted(folders) if recursive else []
        found += [
            str(Path(folder, file))
            for file in files
            if file.endswith(_SUFFIXES) and file != FILE_NAME
        ]
    return sorted(found)


def _bytes(path: str) -> bytes:
    return sys.stdin.buffer.read() if path == _STDIN else Path(path).read_bytes()


def _shown(path: str) -> str:
    return "<stdin>" if path == _STDIN else path
