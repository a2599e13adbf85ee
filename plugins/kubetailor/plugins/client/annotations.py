"""The annotations of an execution: those that it has anyway, and its override.

FlyteAdmin takes the first map that is not empty, whole: the request's, the launch plan's, then what
is configured for the workflow, the project and all projects (flyteadmin, `getExecutionConfig`). So
a request that adds one annotation has to send all the others too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kubetailor.plugins.cli.output import note
from kubetailor.registry import Override, OverrideError
from kubetailor.registry.overrides.document import OVERRIDE

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

__all__ = ["Merged", "launch_plan_of", "merged", "own_annotations"]


class Merged(NamedTuple):
    """What a request has to say.

    Attributes:
        annotations: those beside the override.
        override: the override: the launch plan's steps, then those of the execution.
    """

    annotations: dict[str, str]
    override: Override

    @property
    def request(self) -> dict[str, str]:
        """The annotations of the request."""
        own = {OVERRIDE: self.override.annotation()} if self.override.steps else {}
        return {**self.annotations, **own}


def merged(own: Mapping[str, str], given: Mapping[str, str], override: Override) -> Merged:
    """An override laid over the annotations that an execution has without it.

    An override among them is laid below it, so that both hold, and the new one wins where they set
    one thing.

    Args:
        own: those of the launch plan.
        given: those of the request, which beat them.
        override: the override.

    Raises:
        OverrideError: the override among them cannot be read.
    """
    found = {**own, **given}
    below = found.pop(OVERRIDE, None)
    if below is not None:
        where = "the request" if OVERRIDE in given else "the launch plan"
        override = Override.parse(below, f"{OVERRIDE} of {where}") + override
    return Merged(found, override)


def own_annotations(
    remote: FlyteRemote, launch_plan: Any, project: str | None, domain: str | None
) -> dict[str, str]:
    """The annotations that an execution has where its request has none.

    Args:
        remote: where it is launched.
        launch_plan: by which; None for a task.
        project: the project of the execution; by default the remote's.
        domain: the same.
    """
    found = getattr(launch_plan, "annotations", None)
    if found is not None and found.values:
        return dict(found.values)
    place = (project or remote.default_project, domain or remote.default_domain)
    return _configured(remote, *place, _workflow_of(launch_plan))


def launch_plan_of(remote: FlyteRemote, entity: Any) -> Any:
    """The launch plan by which `FlyteRemote.execute` launches an entity; None of a task.

    Raises:
        OverrideError: it does not take it.
    """
    from flytekit import LaunchPlan
    from flytekit.core.base_task import PythonTask
    from flytekit.core.reference_entity import ReferenceEntity
    from flytekit.core.workflow import WorkflowBase
    from flytekit.remote import FlyteLaunchPlan, FlyteTask, FlyteWorkflow

    if isinstance(entity, FlyteTask | PythonTask):
        return None
    if isinstance(entity, FlyteWorkflow | ReferenceEntity):
        named = entity.id
        return remote.fetch_launch_plan(named.project, named.domain, named.name, named.version)
    if isinstance(entity, WorkflowBase):
        return LaunchPlan.get_default_launch_plan(remote.context, entity)
    if isinstance(entity, FlyteLaunchPlan | LaunchPlan):
        return entity
    raise OverrideError(
        f"{type(entity).__name__}: expected a launch plan, a workflow or a task of flytekit's"
    )


def _workflow_of(launch_plan: Any) -> str:
    """The workflow by whose name FlyteAdmin looks for what is configured; none for a task."""
    if launch_plan is None:
        return ""
    found = getattr(launch_plan, "workflow_id", None) or launch_plan.workflow
    return str(found.name)


def _configured(remote: FlyteRemote, project: str, domain: str, workflow: str) -> dict[str, str]:
    """The annotations of FlyteAdmin's WorkflowExecutionConfig, the nearest there are."""
    from flytekit.exceptions.user import FlyteEntityNotExistException

    for ask in _questions(remote, project, domain, workflow):
        try:
            attributes = ask().attributes.matching_attributes
        except FlyteEntityNotExistException:
            continue
        except Exception as error:  # not every FlyteAdmin answers, nor to everyone
            if not _is_unimplemented(error):
                note(
                    f"FlyteAdmin does not say which annotations are configured for {project}/"
                    f"{domain}, so the execution has none of them: {type(error).__name__}"
                )
            return {}
        if found := dict(attributes.workflow_execution_config.annotations.values):
            return found
    return {}


def _questions(
    remote: FlyteRemote, project: str, domain: str, workflow: str
) -> Iterator[Callable[[], Any]]:
    from flyteidl.admin import project_attributes_pb2 as of_project
    from flyteidl.admin import project_domain_attributes_pb2 as of_domain
    from flyteidl.admin import workflow_attributes_pb2 as of_workflow
    from flyteidl.admin.matchable_resource_pb2 import WORKFLOW_EXECUTION_CONFIG

    client: Any = remote.client
    place: dict[str, Any] = {
        "project": project,
        "domain": domain,
        "resource_type": WORKFLOW_EXECUTION_CONFIG,
    }
    if workflow:
        asked = of_workflow.WorkflowAttributesGetRequest(**place, workflow=workflow)
        yield lambda: client.raw.get_workflow_attributes(asked)
    else:
        named = of_domain.ProjectDomainAttributesGetRequest(**place)
        yield lambda: client.raw.get_project_domain_attributes(named)
    del place["domain"]
    rest = of_project.ProjectAttributesGetRequest(**place)
    # flytekit has no word for it. The answer has what FlyteAdmin's own config says too.
    yield lambda: client._stub.GetProjectAttributes(rest, metadata=client._metadata)


def _is_unimplemented(error: Exception) -> bool:
    import grpc  # type: ignore[import-untyped]  # it has no stubs

    causes = (error, error.__cause__)
    return any(
        isinstance(cause, grpc.RpcError) and cause.code() is grpc.StatusCode.UNIMPLEMENTED
        for cause in causes
    )
