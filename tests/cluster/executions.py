"""Executions of Flyte, and what the cluster made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from flytekit.core.options import Options
from flytekit.models.common import Annotations, Labels, NamedEntityIdentifier
from flytekit.models.core.execution import WorkflowExecutionPhase

from .stack.client import Client
from .stack.core import Core
from .stack.process import wait_for
from .stack.pyflyte import PROJECT, Pyflyte

__all__ = ["FOLDER", "Launcher", "Run", "creations", "register", "registered", "version_of"]

FOLDER: Final = Path(__file__).parent / "project"
"""The project that is registered."""


def register(pyflyte: Pyflyte, module: str, *, domain: str, **env: str) -> None:
    """Register a module of the project, `zoo.at_launch`; its version is `at-launch`."""
    words = ("--project", PROJECT, "--domain", domain, "--version", version_of(module))
    file = f"{module.replace('.', '/')}.py"
    pyflyte("register", *words, "--destination-dir", ".", file, folder=FOLDER, env=env)


def version_of(module: str) -> str:
    """The version under which `register` registers it."""
    return module.rpartition(".")[2].replace("_", "-")


def registered(remote: Any) -> set[tuple[str, str, str]]:
    """Kind, name and version of all that FlyteAdmin knows in the remote's project and domain."""
    every = NamedEntityIdentifier(remote.default_project, remote.default_domain)
    client = remote.client
    pages = {
        "task": client.list_tasks_paginated,
        "workflow": client.list_workflows_paginated,
        "launch_plan": client.list_launch_plans_paginated,
    }
    found = set()
    for kind, page in pages.items():
        token = ""
        while True:
            entities, token = page(every, limit=1000, token=token)
            found |= {(kind, entity.id.name, entity.id.version) for entity in entities}
            if not token:
                break
    return found


def creations(core: Core, run: Run) -> list[tuple[str, int]]:
    """Name and HTTP code of each pod of an execution that was to be created."""
    whole, _, _ = core.audit.read_text().rpartition("\n")
    lines = [json.loads(line) for line in whole.splitlines()]
    found = [(line["objectRef"].get("name", ""), line["responseStatus"]["code"]) for line in lines]
    return [(name, code) for name, code in found if name.startswith(f"{run.name}-")]


class Run:
    """One execution.

    Attributes:
        name: its name.
        namespace: where its objects are.
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
        self.name: str = name
        self.namespace: str = f"{PROJECT}-{domain}"
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
            "flyte.lyft.com/v1alpha1", "FlyteWorkflow", self.namespace, self.name
        )

    @property
    def pods(self) -> list[Any]:
        """Its pods; those of a child execution are not its own."""
        return [
            pod
            for pod in self._client.list("v1", "Pod", self.namespace)
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
        self._wait_for_end()
        assert self.has_failed
        return str(self.execution.error.message)

    def wait_for_success(self) -> None:
        """Wait until it has succeeded."""
        self._wait_for_end()
        assert not self.execution.error, self.execution.error.message

    def _wait_for_end(self) -> None:
        wait_for(f"{self.name} to end", lambda: self.sync().is_done, seconds=120, every=0.5)

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


class Launcher:
    """Launches what is registered of one module of the project, by flytekit's FlyteRemote."""

    def __init__(self, client: Client, pyflyte: Pyflyte, module: str, stack: ExitStack) -> None:
        """Launch nothing yet.

        Args:
            client: the cluster's.
            pyflyte: where FlyteAdmin is.
            module: as `register` has it.
            stack: terminates what still runs when it ends.
        """
        self._client = client
        self._pyflyte = pyflyte
        self._module = module
        self._stack = stack

    def __call__(
        self,
        what: str,
        name: str,
        *,
        domain: str = "development",
        is_task: bool = False,
        overwrite_cache: bool = False,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Run:
        """Launch a launch plan, or a task alone, with x=3.

        Args:
            what: its name in the module.
            name: of the execution.
            domain: where it is registered, and runs.
            is_task: it is a task.
            overwrite_cache: cached tasks run again, and what they return is kept.
            labels: of the execution.
            annotations: of the execution.
        """
        remote = self._pyflyte.remote(domain)
        fetch = remote.fetch_task if is_task else remote.fetch_launch_plan
        remote.execute(
            fetch(name=f"{self._module}.{what}", version=version_of(self._module)),
            inputs={"x": 3},
            execution_name=name,
            overwrite_cache=overwrite_cache,
            options=Options(
                labels=Labels(dict(labels)) if labels else None,
                annotations=Annotations(dict(annotations)) if annotations else None,
            ),
        )
        return self.started(name, domain=domain)

    def started(self, name: str, *, domain: str = "development") -> Run:
        """An execution that was launched in another way."""
        remote = self._pyflyte.remote(domain)
        return Run.started(self._client, remote, domain, name, self._stack)
