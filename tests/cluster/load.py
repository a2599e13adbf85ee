"""Clients that create pods, each one after the other, until they are told to end."""

from __future__ import annotations

import itertools
import threading
from types import TracebackType
from typing import Any

from typing_extensions import Self

from .plain import pod
from .stack.client import ApiError, Client
from .stack.process import wait_for

__all__ = ["Load"]


class Load:
    """The load, while it is entered.

    Attributes:
        created: the pods, as the API server returned them.
        refused: the names of those that it did not take, and why.
    """

    def __init__(self, client: Client, namespace: str, *, clients: int = 8, **query: str) -> None:
        """Nothing is created yet.

        Args:
            client: who creates.
            namespace: where.
            clients: how many at a time.
            query: of each request, as in `Client.create`.
        """
        self.created: list[dict[str, Any]] = []
        self.refused: list[tuple[str, ApiError]] = []
        self._client = client
        self._namespace = namespace
        self._query = query
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self._faults: list[Exception] = []
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self._faults:
            raise self._faults[0]

    @property
    def answered(self) -> int:
        """How many requests have been answered, either way."""
        return len(self.created) + len(self.refused)

    def goes_on(self, count: int = 40) -> None:
        """Wait until so many more pods were created."""
        enough = len(self.created) + count
        wait_for("the load", lambda: self._faults or len(self.created) >= enough, every=0.01)

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._create(f"load-{next(self._numbers)}")
        except Exception as error:  # raised where the load ends
            self._faults.append(error)

    def _create(self, name: str) -> None:
        try:
            self.created.append(self._client.create(pod(self._namespace, name), **self._query))
        except ApiError as error:
            self.refused.append((name, error))
