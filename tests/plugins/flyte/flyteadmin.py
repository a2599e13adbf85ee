"""FlyteAdmin and its data proxy, as far as pyflyte needs them to register and to launch."""

from __future__ import annotations

from collections.abc import Generator
from concurrent import futures
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc  # type: ignore[import-untyped]  # it has no stubs
from flyteidl.admin import execution_pb2, launch_plan_pb2, task_pb2, workflow_pb2
from flyteidl.core import compiler_pb2, identifier_pb2
from flyteidl.service import admin_pb2_grpc, dataproxy_pb2, dataproxy_pb2_grpc

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
        executions: CreateExecution requests, in their order.
        uploads: what was uploaded, by path.
    """

    def __init__(self) -> None:
        self.endpoint = ""
        self.tasks: dict[tuple[str, str], Any] = {}
        self.workflows: dict[tuple[str, str], Any] = {}
        self.launch_plans: dict[tuple[str, str], Any] = {}
        self.executions: list[Any] = []
        self.uploads: dict[str, bytes] = {}
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
        thread = Thread(target=storage.serve_forever, daemon=True)
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
        closure = compiler_pb2.CompiledWorkflowClosure(
            primary=compiler_pb2.CompiledWorkflow(template=found.spec.template),
            tasks=[
                compiler_pb2.CompiledTask(template=each.spec.template)
                for (_, version), each in self.tasks.items()
                if version == found.id.version
            ],
        )
        return workflow_pb2.Workflow(
            id=found.id, closure=workflow_pb2.WorkflowClosure(compiled_workflow=closure)
        )

    def GetLaunchPlan(self, request: Any, context: Any) -> Any:
        found = self._find(self.launch_plans, request, context)
        return launch_plan_pb2.LaunchPlan(id=found.id, spec=found.spec)

    def CreateExecution(self, request: Any, context: Any) -> Any:
        self.executions.append(request)
        return execution_pb2.ExecutionCreateResponse(id=_execution(request))

    def GetExecution(self, request: Any, context: Any) -> Any:
        spec = self.executions[-1].spec
        return execution_pb2.Execution(
            id=request.id, spec=spec, closure=execution_pb2.ExecutionClosure()
        )

    def CreateUploadLocation(self, request: Any, context: Any) -> Any:
        path = f"/{request.project}/{request.content_md5.hex()}/{request.filename}"
        return dataproxy_pb2.CreateUploadLocationResponse(
            signed_url=f"{self._storage}{path}", native_url=f"s3://bucket{path}"
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


def _key(id_: Any) -> tuple[str, str]:
    return id_.name, id_.version


def _execution(request: Any) -> Any:
    return identifier_pb2.WorkflowExecutionIdentifier(
        project=request.project, domain=request.domain, name=request.name or "a7k"
    )
