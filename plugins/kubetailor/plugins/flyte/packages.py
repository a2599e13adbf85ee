"""The package that `pyflyte package` writes: read it, run the chain over it, write it whole.

A package is a gzipped tar of protobufs, one file an entity, whose name ends in what it is
(flytekit/tools/serialize_helpers.py, `persist_registrable_entities`); the source code may be beside
them. Whatever the chain did not change keeps its bytes.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flyteidl.admin import task_pb2
from flyteidl.admin import workflow_pb2 as admin_workflow_pb2
from google.protobuf.message import DecodeError

from kubetailor.plugins.flyte.entities import Entities
from kubetailor.workloads import KubetailorError

__all__ = ["Package", "PackageError"]

_MESSAGES = {"_1.pb": task_pb2.TaskSpec, "_2.pb": admin_workflow_pb2.WorkflowSpec}


class PackageError(KubetailorError):
    """A file that is no package; the message names it and its member."""


@dataclass
class _Member:
    """One file of a package; `message` is None for what is no task or workflow."""

    info: tarfile.TarInfo
    data: bytes
    message: Any = None


class Package:
    """A package in memory.

    Attributes:
        source: its file, for messages.
        entities: the protobufs in it.
    """

    def __init__(self, source: str, members: list[_Member]) -> None:
        self.source: str = source
        self._members = members
        self.entities: Entities = Entities()
        # flytekit numbers its files, and tars them in whichever order the folder lists them.
        for member in sorted(members, key=lambda member: member.info.name):
            if isinstance(member.message, task_pb2.TaskSpec):
                self.entities.tasks.append(member.message)
            elif member.message is not None:
                self.entities.workflows.append(member.message)

    @classmethod
    def read(cls, path: Path) -> Package:
        """Read a package.

        Raises:
            PackageError: it is not there, no gzipped tar, or a member is no protobuf of Flyte's.
        """
        members: list[_Member] = []
        try:
            # All of it first, so that a file which was cut short is found even at its very end.
            whole = io.BytesIO(gzip.decompress(path.read_bytes()))
            with tarfile.open(fileobj=whole, mode="r:") as archive:
                for info in archive:
                    file = archive.extractfile(info) if info.isfile() else None
                    data = file.read() if file else b""
                    members.append(_Member(info, data, _parse(path, info, data)))
        except OSError as error:
            if isinstance(error, gzip.BadGzipFile):
                raise PackageError(f"{path}: not a package of `pyflyte package`: {error}") from None
            raise PackageError(f"{path}: {error.strerror or error}") from None
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise PackageError(f"{path}: not a package of `pyflyte package`: {error}") from None
        package = cls(str(path), members)
        if not package.entities.tasks and not package.entities.workflows:
            raise PackageError(
                f"{path}: no task and no workflow in it: `pyflyte package` writes them as files "
                "that end in _1.pb and _2.pb"
            )
        return package

    def write(self, path: Path) -> None:
        """Write the package, whole or not at all.

        Raises:
            PackageError: it cannot be written.
        """
        try:
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise PackageError(f"{path}: {error.strerror or error}") from None
        try:
            with (
                os.fdopen(handle, "wb") as file,
                gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped,
                tarfile.open(fileobj=zipped, mode="w") as archive,
            ):
                for member in self._members:
                    data = _bytes(member)
                    member.info.size = len(data)
                    archive.addfile(member.info, io.BytesIO(data))
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except OSError as error:
            raise PackageError(f"{path}: {error.strerror or error}") from None
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)


def _parse(path: Path, info: tarfile.TarInfo, data: bytes) -> Any:
    for suffix, kind in _MESSAGES.items():
        if info.isfile() and info.name.endswith(suffix):
            message = kind()
            try:
                message.ParseFromString(data)
            except DecodeError as error:
                raise PackageError(f"{path}: {info.name} is no {kind.__name__}: {error}") from None
            return message
    return None


def _bytes(member: _Member) -> bytes:
    """What to write: the bytes that were read, unless the chain changed what they say."""
    if member.message is None:
        return member.data
    unchanged = type(member.message)()
    unchanged.ParseFromString(member.data)
    if unchanged == member.message:
        return member.data
    found: bytes = member.message.SerializeToString(deterministic=True)
    return found


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
