"""FlyteAdmin and its data proxy, as far as pyflyte needs them to register and to launch."""

from __future__ import annotations

from collections.abc import Generator
from concurrent import futures
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc  # type: ignore[import-untyped]  # it has no stubs
from flyteidl.admin import (
    common_pb2,
    execution_pb2,
    launch_plan_pb2,
    matchable_resource_pb2,
    project_attributes_pb2,
    project_domain_attributes_pb2,
    task_pb2,
    workflow_attributes_pb2,
    workflow_pb2,
)
from flyteidl.core import compiler_pb2, identifier_pb2
from flyteidl.service import admin_pb2_grpc, dataproxy_pb2, dataproxy_pb2_grpc

from .closures import closure_of

__all__ = ["FlyteAdmin"]


class FlyteAdmin(
    admin_pb2_grpc.AdminServiceServicer,  # type: ignore[misc]  # flyteidl has no stubs
    dataproxy_pb2_grpc.DataProxyServiceServicer,  # type: ignore[misc]  # as above
):
    """It keeps what is registered, refuses another structure under the same id, and runs nothing.

    Attributes:
        endpoint: where it listens.
        tasks: CreateTask requests by (name, version).
        workflows: CreateWorkflow requests by (name, version).
        launch_plans: CreateLaunchPlan requests by (name, version).
        active: the active version of a launch plan, by its name.
        executions: CreateExecution requests, in their order.
        uploads: what was uploaded, by path.
        annotations: what its WorkflowExecutionConfig says, by project, domain and workflow.
        refusal: why it refuses executions, or None.
    """

    def __init__(self) -> None:
        self.endpoint = ""
        self.tasks: dict[tuple[str, str], Any] = {}
        self.workflows: dict[tuple[str, str], Any] = {}
        self.launch_plans: dict[tuple[str, str], Any] = {}
        self.active: dict[str, str] = {}
        self.executions: list[Any] = []
        self.uploads: dict[str, bytes] = {}
        self.annotations: dict[tuple[str, str, str], dict[str, str]] = {}
        self.refusal: str | None = None
        self._storage = ""

    @contextmanager
    def running(self) -> Generator[FlyteAdmin]:
        """Listen on free ports of this machine."""
        server = grpc.server(futures.ThreadPoolExecutor(4))
        admin_pb2_grpc.add_AdminServiceServicer_to_server(self, server)
        dataproxy_pb2_grpc.add_DataProxyServiceServicer_to_server(self, server)
        self.endpoint = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        uploads = self.uploads

        class Storage(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                uploads[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base's name)
                pass

        storage = ThreadingHTTPServer(("127.0.0.1", 0), Storage)
        self._storage = f"http://127.0.0.1:{storage.server_port}"
        thread = Thread(
            target=storage.serve_forever, args=(0.01,), daemon=True
        )  # polls for its end
        thread.start()
        server.start()
        try:
            yield self
        finally:
            server.stop(None).wait()
            storage.shutdown()
            storage.server_close()
            thread.join()

    def CreateTask(self, request: Any, context: Any) -> Any:
        self._keep(self.tasks, request, context, "task")
        return task_pb2.TaskCreateResponse()

    def CreateWorkflow(self, request: Any, context: Any) -> Any:
        self._keep(self.workflows, request, context, "workflow")
        return workflow_pb2.WorkflowCreateResponse()

    def CreateLaunchPlan(self, request: Any, context: Any) -> Any:
        self._keep(self.launch_plans, request, context, "launch plan")
        return launch_plan_pb2.LaunchPlanCreateResponse()

    def GetTask(self, request: Any, context: Any) -> Any:
        found = self._find(self.tasks, request, context)
        compiled = compiler_pb2.CompiledTask(template=found.spec.template)
        return task_pb2.Task(id=found.id, closure=task_pb2.TaskClosure(compiled_task=compiled))

    def GetWorkflow(self, request: Any, context: Any) -> Any:
        found = self._find(self.workflows, request, context)
        closure = closure_of(found.spec, self.tasks)
        return workflow_pb2.Workflow(
            id=found.id, closure=workflow_pb2.WorkflowClosure(compiled_workflow=closure)
        )

    def GetLaunchPlan(self, request: Any, context: Any) -> Any:
        found = self._find(self.launch_plans, request, context)
        return launch_plan_pb2.LaunchPlan(id=found.id, spec=found.spec)

    def GetActiveLaunchPlan(self, request: Any, context: Any) -> Any:
        key = (request.id.name, self.active.get(request.id.name, ""))
        if key not in self.launch_plans:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no active {request.id.name}")
        found = self.launch_plans[key]
        return launch_plan_pb2.LaunchPlan(id=found.id, spec=found.spec)

    def ListTasks(self, request: Any, context: Any) -> Any:
        found = _listed(self.tasks, request)
        return task_pb2.TaskList(tasks=[task_pb2.Task(id=each.id) for each in found])

    def ListWorkflows(self, request: Any, context: Any) -> Any:
        found = _listed(self.workflows, request)
        return workflow_pb2.WorkflowList(
            workflows=[workflow_pb2.Workflow(id=each.id) for each in found]
        )

    def ListLaunchPlans(self, request: Any, context: Any) -> Any:
        found = _listed(self.launch_plans, request)
        return launch_plan_pb2.LaunchPlanList(
            launch_plans=[launch_plan_pb2.LaunchPlan(id=each.id, spec=each.spec) for each in found]
        )

    def ListTaskIds(self, request: Any, context: Any) -> Any:
        return _names(self.tasks, request)

    def ListWorkflowIds(self, request: Any, context: Any) -> Any:
        return _names(self.workflows, request)

    def ListLaunchPlanIds(self, request: Any, context: Any) -> Any:
        return _names(self.launch_plans, request)

    def CreateExecution(self, request: Any, context: Any) -> Any:
        if self.refusal is not None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.refusal)
        self.executions.append(request)
        return execution_pb2.ExecutionCreateResponse(id=_execution(request))

    def GetExecution(self, request: Any, context: Any) -> Any:
        spec = self._execution(request, context).spec
        return execution_pb2.Execution(
            id=request.id, spec=spec, closure=execution_pb2.ExecutionClosure()
        )

    def GetExecutionData(self, request: Any, context: Any) -> Any:
        inputs = self._execution(request, context).inputs
        return execution_pb2.WorkflowExecutionGetDataResponse(full_inputs=inputs)

    def _execution(self, request: Any, context: Any) -> Any:
        for made in self.executions:
            if _execution(made).name == request.id.name:
                return made
        context.abort(grpc.StatusCode.NOT_FOUND, f"no {request.id.name}")

    def CreateUploadLocation(self, request: Any, context: Any) -> Any:
        path = f"/{request.project}/{request.content_md5.hex()}/{request.filename}"
        return dataproxy_pb2.CreateUploadLocationResponse(
            signed_url=f"{self._storage}{path}", native_url=f"s3://bucket{path}"
        )

    def GetWorkflowAttributes(self, request: Any, context: Any) -> Any:
        places = [(request.project, request.domain, name) for name in (request.workflow, "")]
        attributes = workflow_attributes_pb2.WorkflowAttributes(
            matching_attributes=self._configured(places, context)
        )
        return workflow_attributes_pb2.WorkflowAttributesGetResponse(attributes=attributes)

    def GetProjectDomainAttributes(self, request: Any, context: Any) -> Any:
        attributes = project_domain_attributes_pb2.ProjectDomainAttributes(
            matching_attributes=self._configured([(request.project, request.domain, "")], context)
        )
        return project_domain_attributes_pb2.ProjectDomainAttributesGetResponse(
            attributes=attributes
        )

    def GetProjectAttributes(self, request: Any, context: Any) -> Any:
        attributes = project_attributes_pb2.ProjectAttributes(
            matching_attributes=self._configured([(request.project, "", "")], context)
        )
        return project_attributes_pb2.ProjectAttributesGetResponse(attributes=attributes)

    def _configured(self, places: list[tuple[str, str, str]], context: Any) -> Any:
        found = next((self.annotations[place] for place in places if place in self.annotations), {})
        if not found:
            context.abort(grpc.StatusCode.NOT_FOUND, f"nothing is configured for {places[0]}")
        return matchable_resource_pb2.MatchingAttributes(
            workflow_execution_config=matchable_resource_pb2.WorkflowExecutionConfig(
                annotations=common_pb2.Annotations(values=found)
            )
        )

    @staticmethod
    def _find(kept: dict[tuple[str, str], Any], request: Any, context: Any) -> Any:
        found = kept.get(_key(request.id))
        if found is None:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no {request.id.name}")
        return found

    @staticmethod
    def _keep(kept: dict[tuple[str, str], Any], request: Any, context: Any, what: str) -> None:
        known = kept.setdefault(_key(request.id), request)
        if known is request:
            return
        one, other = (each.spec.SerializeToString(deterministic=True) for each in (known, request))
        if one == other:
            context.abort(
                grpc.StatusCode.ALREADY_EXISTS, f"{what} with identical structure already exists"
            )
        context.abort(
            grpc.StatusCode.INVALID_ARGUMENT, f"{what} with different structure already exists"
        )


def _listed(kept: dict[tuple[str, str], Any], request: Any) -> list[Any]:
    """The versions of a name, the latest first, as every client of flytekit's asks for them."""
    found = [
        each
        for each in kept.values()
        if (each.id.project, each.id.domain, each.id.name)
        == (request.id.project, request.id.domain, request.id.name)
    ]
    return found[::-1][: request.limit]


def _names(kept: dict[tuple[str, str], Any], request: Any) -> Any:
    there = {
        each.id.name: common_pb2.NamedEntityIdentifier(
            project=each.id.project, domain=each.id.domain, name=each.id.name
        )
        for each in kept.values()
        if (each.id.project, each.id.domain) == (request.project, request.domain)
    }
    return common_pb2.NamedEntityIdentifierList(entities=list(there.values()))


def _key(id_: Any) -> tuple[str, str]:
    return id_.name, id_.version


def _execution(request: Any) -> Any:
    return identifier_pb2.WorkflowExecutionIdentifier(
        project=request.project, domain=request.domain, name=request.name or "a7k"
    )
