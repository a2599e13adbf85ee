"""Executions of Flyte, and what the cluster made of them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from flytekit.models.core.execution import WorkflowExecutionPhase

from .stack.client import Client
from .stack.process import wait_for
from .stack.pyflyte import PROJECT

__all__ = ["Run"]


class Run:
    """One execution.

    Attributes:
        name: its name.
        execution: as FlyteAdmin knew it last.
    """

    def __init__(self, client: Client, remote: Any, domain: str, name: str) -> None:
        """Look it up.

        Args:
            client: the cluster's.
            remote: flytekit's.
            domain: where it runs, in the stack's project.
            name: its name.
        """
        self._client = client
        self._remote = remote
        self._namespace = f"{PROJECT}-{domain}"
        self.name: str = name
        self.execution: Any = remote.fetch_execution(name=name)

    @classmethod
    def started(cls, client: Client, remote: Any, domain: str, name: str, stack: ExitStack) -> Run:
        """One that was launched; the stack terminates it if it still runs then."""
        run = cls(client, remote, domain, name)
        stack.callback(run.end)
        return run

    def end(self) -> None:
        """Terminate it, if it still runs."""
        if not self.sync().is_done:
            self._remote.terminate(self.execution, "the test is over")

    @property
    def flyte_workflow(self) -> Any:
        """The FlyteWorkflow."""
        return self._client.get(
            "flyte.lyft.com/v1alpha1", "FlyteWorkflow", self._namespace, self.name
        )

    @property
    def pods(self) -> list[Any]:
        """Its pods; those of a child execution are not its own."""
        return [
            pod
            for pod in self._client.list("v1", "Pod", self._namespace)
            if any(o["name"] == self.name for o in pod["metadata"].get("ownerReferences", ()))
        ]

    def wait_for_pods(self, count: int) -> list[Any]:
        """So many, while it goes on."""

        def goes_on() -> None:
            self.sync()
            assert not self.execution.is_done, self.execution.error

        what = f"{count} pods of {self.name}"
        wait_for(what, lambda: len(self.pods) >= count, while_=goes_on, seconds=120, every=0.5)
        found = self.pods
        assert len(found) == count, [pod["metadata"]["name"] for pod in found]
        return found

    def sync(self) -> Any:
        """The execution as FlyteAdmin knows it."""
        self.execution = self._remote.sync_execution(self.execution)
        return self.execution

    def wait_for_failure(self) -> str:
        """Wait until it has failed; the error's message."""
        wait_for(f"{self.name} to end", lambda: self.sync().is_done, seconds=120, every=0.5)
        assert self.has_failed
        return str(self.execution.error.message)

    @property
    def has_failed(self) -> bool:
        """Whether FlyteAdmin has said so, when it was asked last."""
        return bool(self.execution.closure.phase == WorkflowExecutionPhase.FAILED)

    def child(self, node: str) -> str:
        """The name of the child execution of a node."""

        def name() -> str:
            nodes = self._remote.sync_execution(self.execution, sync_nodes=True).node_executions
            return str(nodes[node].closure.workflow_node_metadata.execution_id.name)

        wait_for(f"the child execution of {node}", name, every=0.5)
        return name()
