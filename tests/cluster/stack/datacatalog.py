"""A stand-in for DataCatalog, which is in no Go module: what cached tasks returned, in memory.

    python -m tests.cluster.stack.datacatalog PORT

FlytePropeller's own client of DataCatalog asks it. The rules are those of flyteorg/flyte v1.16.8,
datacatalog/pkg/manager/impl; reservations (`cache_serialize`), queries and lists are not there.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import grpc  # type: ignore[import-untyped]  # it has no stubs
from flyteidl.datacatalog import datacatalog_pb2 as idl
from flyteidl.datacatalog import datacatalog_pb2_grpc as service

from .core import Core
from .process import Process, free_port

__all__ = ["start_datacatalog"]

T = TypeVar("T")


class DataCatalog(service.DataCatalogServicer):  # type: ignore[misc]  # it has no types
    """Datasets (a task's cache version and interface), what is in them, and tags (its inputs)."""

    def __init__(self) -> None:
        self._datasets: dict[bytes, Any] = {}
        self._artifacts: dict[tuple[bytes, str], Any] = {}
        self._tags: dict[tuple[bytes, str], Any] = {}

    def CreateDataset(self, request: Any, context: Any) -> Any:
        """Make a dataset, which must be new."""
        _put(self._datasets, _key(request.dataset.id), request.dataset, context)
        return idl.CreateDatasetResponse()

    def GetDataset(self, request: Any, context: Any) -> Any:
        """Give a dataset."""
        found = _get(self._datasets, _key(request.dataset), context)
        return idl.GetDatasetResponse(dataset=found)

    def CreateArtifact(self, request: Any, context: Any) -> Any:
        """Keep what a task returned."""
        artifact = request.artifact
        dataset = _key(artifact.dataset)
        _get(self._datasets, dataset, context)
        artifact.created_at.GetCurrentTime()
        _put(self._artifacts, (dataset, artifact.id), artifact, context)
        return idl.CreateArtifactResponse()

    def GetArtifact(self, request: Any, context: Any) -> Any:
        """Give what a task returned."""
        return idl.GetArtifactResponse(artifact=self._artifact(request, context))

    def UpdateArtifact(self, request: Any, context: Any) -> Any:
        """Keep what it returned now instead."""
        artifact = self._artifact(request, context)
        del artifact.data[:]
        artifact.data.extend(request.data)
        artifact.metadata.CopyFrom(request.metadata)
        return idl.UpdateArtifactResponse(artifact_id=artifact.id)

    def AddTag(self, request: Any, context: Any) -> Any:
        """Say for which inputs it was."""
        tag, dataset = request.tag, _key(request.tag.dataset)
        artifact = _get(self._artifacts, (dataset, tag.artifact_id), context)
        _put(self._tags, (dataset, tag.name), artifact, context)
        artifact.tags.append(tag)
        return idl.AddTagResponse()

    def _artifact(self, request: Any, context: Any) -> Any:
        handle = request.WhichOneof("query_handle")
        found = {"tag_name": self._tags, "artifact_id": self._artifacts}[handle]
        return _get(found, (_key(request.dataset), getattr(request, handle)), context)


def _get(there: dict[T, Any], key: T, context: Any) -> Any:
    if key not in there:
        context.abort(grpc.StatusCode.NOT_FOUND, "it is not there")
    return there[key]


def _put(there: dict[T, Any], key: T, value: Any, context: Any) -> None:
    if key in there:
        context.abort(grpc.StatusCode.ALREADY_EXISTS, "it is there")
    there[key] = value


def _key(dataset: Any) -> bytes:
    key: bytes = dataset.SerializeToString(deterministic=True)
    return key


def start_datacatalog(core: Core, stack: ExitStack) -> str:
    """Start it as a process of its own.

    Returns:
        Its endpoint, host:port.
    """
    port = free_port()
    command = [sys.executable, "-m", __name__, port]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process = stack.enter_context(Process("datacatalog", command, folder=core.folder, env=env))

    def listens() -> bool:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True

    process.wait_for(listens)
    return f"localhost:{port}"


def main() -> None:
    """Serve until SIGTERM."""
    server = grpc.server(ThreadPoolExecutor(1))  # one call after the other: nothing is locked
    service.add_DataCatalogServicer_to_server(DataCatalog(), server)
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
