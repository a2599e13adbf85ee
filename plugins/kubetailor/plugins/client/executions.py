"""Executions that were launched, as FlyteAdmin keeps them, and how one is launched again."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kubetailor.plugins.client.asking import ask, raw
from kubetailor.plugins.client.names import Name
from kubetailor.plugins.client.registered import Registered, find
from kubetailor.plugins.client.request import Request
from kubetailor.plugins.execution.literals import plain_inputs
from kubetailor.registry.overrides.document import OVERRIDE, Override
from kubetailor.workloads import JsonMap, KubetailorError

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

__all__ = ["Execution", "ExecutionId"]


@dataclass(frozen=True)
class ExecutionId:
    """Which execution; printed as ``PROJECT/DOMAIN/ID``.

    Attributes:
        project: the project.
        domain: the domain.
        name: its id, as the console shows it.
    """

    project: str
    domain: str
    name: str

    def __str__(self) -> str:
        return f"{self.project}/{self.domain}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> ExecutionId:
        """Read ``PROJECT/DOMAIN/ID``.

        Raises:
            KubetailorError: it has another form.
        """
        parts = text.split("/")
        if len(parts) != len(cls.__dataclass_fields__) or not all(parts):
            raise KubetailorError(f"{text!r}: expected PROJECT/DOMAIN/ID of an execution")
        return cls(*parts)


@dataclass(frozen=True)
class Execution:
    """One execution.

    Attributes:
        id: which one.
        spec: flyteidl.admin.ExecutionSpec, the request as FlyteAdmin keeps it.
        phase: how far it is, such as ``SUCCEEDED``.
        remote: where it is.
    """

    id: ExecutionId
    spec: Any
    phase: str
    remote: FlyteRemote

    @classmethod
    def read(cls, remote: FlyteRemote, execution: ExecutionId) -> Execution:
        """The execution of an id.

        Raises:
            KubetailorError: there is none, or FlyteAdmin cannot be asked.
        """
        from flyteidl.admin.execution_pb2 import WorkflowExecutionGetRequest
        from flyteidl.core.execution_pb2 import WorkflowExecution

        request = WorkflowExecutionGetRequest(id=_identifier(execution))
        found = ask(f"execution {execution}", lambda: raw(remote).get_execution(request))
        phase = WorkflowExecution.Phase.Name(found.closure.phase)
        return cls(execution, found.spec, phase, remote)

    @property
    def launched(self) -> Name:
        """What was launched: a launch plan, or a task."""
        named = self.spec.launch_plan
        return Name(named.project, named.domain, named.name, named.version)

    def registered(self) -> Registered:
        """The same, as it is registered.

        Raises:
            KubetailorError: it is not there any more, or FlyteAdmin cannot be asked.
        """
        from flyteidl.core.identifier_pb2 import ResourceType

        is_task = self.spec.launch_plan.resource_type == ResourceType.TASK
        return find(self.remote, self.launched, "task" if is_task else "launch plan")

    @property
    def url(self) -> str:
        """Its page in the console."""
        from flytekit.models.core.identifier import WorkflowExecutionIdentifier

        place = (self.id.project, self.id.domain, self.id.name)
        return str(self.remote.generate_console_url(WorkflowExecutionIdentifier(*place)))

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the request."""
        return dict(self.spec.labels.values)

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the request; where there are none, those of the launch plan hold."""
        return dict(self.spec.annotations.values)

    def override(self) -> Override | None:
        """The override that it was launched with, its launch plan's included, or None.

        Raises:
            OverrideError: what is there is none.
        """
        annotations: Mapping[str, str] = self.annotations or self.registered().annotations
        text = annotations.get(OVERRIDE)
        return None if text is None else Override.parse(text, f"{OVERRIDE} of {self.id}")

    def inputs(self) -> Any:
        """Its inputs, flyteidl.core.LiteralMap.

        Raises:
            KubetailorError: FlyteAdmin cannot be asked, or they are too large for it to say.
        """
        from flyteidl.admin.execution_pb2 import WorkflowExecutionGetDataRequest

        request = WorkflowExecutionGetDataRequest(id=_identifier(self.id))
        what = f"inputs of execution {self.id}"
        found = ask(what, lambda: raw(self.remote).get_execution_data(request))
        if not found.full_inputs.literals and found.inputs.bytes:
            raise KubetailorError(
                f"{what}: {found.inputs.bytes} bytes, which FlyteAdmin does not send"
            )
        return found.full_inputs

    def plain_inputs(self) -> JsonMap:
        """Those inputs that are plain values, by name."""
        from google.protobuf.json_format import MessageToDict

        return plain_inputs(MessageToDict(self.inputs()).get("literals"))

    def request(self) -> Request:
        """What was said of it, besides its override: as it would be asked for again.

        Raises:
            KubetailorError: as `inputs`.
        """
        return Request(
            annotations=self.annotations,
            labels=self.labels,
            inputs=self.plain_inputs(),
            overwrite_cache=self.spec.overwrite_cache,
            project=self.id.project,
            domain=self.id.domain,
        )

    def relaunch(self, annotations: Mapping[str, str]) -> Execution:
        """Launch the same again, with these annotations.

        FlyteAdmin's own relaunch keeps those of the request; all else is as it does it
        (flyteadmin, pkg/manager/impl/execution_manager.go, `RelaunchExecution`).

        Args:
            annotations: all annotations of the new request.

        Raises:
            KubetailorError: FlyteAdmin refuses it.
        """
        from flyteidl.admin.execution_pb2 import (
            ExecutionCreateRequest,
            ExecutionMetadata,
            ExecutionSpec,
        )

        spec = ExecutionSpec()
        spec.CopyFrom(self.spec)
        spec.ClearField("annotations")
        spec.annotations.values.update(annotations)
        spec.metadata.CopyFrom(
            ExecutionMetadata(
                mode=ExecutionMetadata.RELAUNCH, reference_execution=_identifier(self.id)
            )
        )
        request = ExecutionCreateRequest(
            project=self.id.project,
            domain=self.id.domain,
            name=f"f{uuid.uuid4().hex[:19]}",  # as flytekit names one
            spec=spec,
            inputs=self.inputs(),
        )
        made = ask(f"relaunch of {self.id}", lambda: raw(self.remote).create_execution(request))
        named = ExecutionId(made.id.project, made.id.domain, made.id.name)
        return replace(self, id=named, spec=spec, phase="UNDEFINED")


def _identifier(execution: ExecutionId) -> Any:
    from flyteidl.core.identifier_pb2 import WorkflowExecutionIdentifier

    return WorkflowExecutionIdentifier(
        project=execution.project, domain=execution.domain, name=execution.name
    )
