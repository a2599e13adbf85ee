"""What FlyteAdmin holds under a name: a launch plan, a workflow or a task, and its children."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kubetailor.plugins.client.asking import ask
from kubetailor.plugins.client.names import EntityKind, Name, find_message, why_not
from kubetailor.plugins.execution.compiled import closure_of_task, flyte_workflow
from kubetailor.plugins.execution.instances import Instances
from kubetailor.plugins.execution.literals import plain_inputs
from kubetailor.workloads import JsonMap, KubetailorError

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

__all__ = ["Registered", "find", "registered_of"]

_KINDS: Final[tuple[EntityKind, ...]] = ("launch plan", "workflow", "task")
"""The order in which a name is looked up."""


@dataclass(frozen=True)
class Registered:
    """What is registered under a name, as FlyteAdmin keeps it.

    Attributes:
        kind: what it is.
        name: what it is registered as, with its version.
        workflow: what runs; of a task, the workflow that FlyteAdmin makes of it
            (``.flytegen.<task>``).
        closure: flyteidl.core.CompiledWorkflowClosure in JSON form; of a task, that workflow's.
        launch_plan: flyteidl.admin.LaunchPlanSpec in JSON form; None where it is no launch plan.
        remote: where it is registered.
    """

    kind: EntityKind
    name: Name
    workflow: Name
    closure: JsonMap
    launch_plan: JsonMap | None
    remote: FlyteRemote = field(repr=False, compare=False)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that its launch plan gives to executions."""
        return dict(self._said("labels").get("values", {}))

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations that its launch plan gives to executions.

        FlyteAdmin takes them only where the request has none: whoever adds one has to send all.
        """
        return dict(self._said("annotations").get("values", {}))

    @property
    def env(self) -> Mapping[str, str]:
        """The variables that its launch plan gives to executions."""
        entries = self._said("envs").get("values", ())
        return {entry.get("key", ""): entry.get("value", "") for entry in entries}

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Its launch plan's inputs, fixed ones and defaults, those that are plain values."""
        parameters = self._said("defaultInputs").get("parameters", {})
        defaults = {name: said.get("default") for name, said in parameters.items()}
        fixed = self._said("fixedInputs").get("literals", {})
        return {**plain_inputs(defaults), **plain_inputs(fixed)}

    @property
    def variables(self) -> frozenset[str]:
        """The names of the inputs that it takes."""
        template = self.closure["primary"]["template"]
        found = template.get("interface", {}).get("inputs", {}).get("variables", {})
        return frozenset(found)

    def children(self) -> Mapping[str, Registered]:
        """The launch plans that its nodes launch, by the nested id of the node.

        They are fetched when they are asked for first.

        Raises:
            KubetailorError: one that is not registered, or FlyteAdmin cannot be asked.
        """
        return self._children

    @functools.cached_property
    def _children(self) -> Mapping[str, Registered]:
        place = self.name
        obj = flyte_workflow(self.closure, project=place.project, domain=place.domain)
        instances = Instances(obj)
        found: dict[Name, Registered] = {}
        children: dict[str, Registered] = {}
        for key, graph in instances.graphs.items():
            for child in graph.children:
                name = Name.of(child.launch_plan)
                if name not in found:
                    found[name] = find(self.remote, name, "launch plan")
                for prefix in instances.some(key):
                    children[f"{prefix}{child.id}"] = found[name]
        return children

    def _said(self, part: str) -> JsonMap:
        found: JsonMap = (self.launch_plan or {}).get(part, {})
        return found


def find(remote: FlyteRemote, name: str | Name, *kinds: EntityKind) -> Registered:
    """What is registered under a name: a launch plan, else a workflow, else a task.

    Without a version it is the latest one; of a launch plan the active one, if there is one.

    Args:
        remote: where to look.
        name: ``PROJECT/DOMAIN/NAME[@VERSION]``.
        kinds: what it may be; by default anything.

    Raises:
        KubetailorError: there is none, and what there is instead; or FlyteAdmin cannot be asked.
    """
    asked = Name.parse(name) if isinstance(name, str) else name
    for kind in kinds or _KINDS:
        found = find_message(remote, asked, kind)
        if found is not None:
            return _registered(remote, kind, found)
    raise KubetailorError(f"{asked}: {why_not(remote, asked, kinds or _KINDS)}")


def registered_of(
    remote: FlyteRemote,
    entity: Any,
    *,
    project: str | None = None,
    domain: str | None = None,
    version: str | None = None,
) -> Registered:
    """What is registered of an entity of flytekit's.

    Args:
        remote: where to look.
        entity: a FlyteLaunchPlan, FlyteWorkflow or FlyteTask, also a lazy one; or a local launch
            plan, workflow or task that is registered by now.
        project: of a local entity; by default the remote's.
        domain: of a local entity; by default the remote's.
        version: of a local entity; by default the latest one.

    Raises:
        KubetailorError: it is not registered, or is of another type.
    """
    from flytekit import LaunchPlan
    from flytekit.core.base_task import PythonTask
    from flytekit.core.reference_entity import ReferenceEntity
    from flytekit.core.workflow import WorkflowBase
    from flytekit.models.core.identifier import ResourceType
    from flytekit.remote.remote_callable import RemoteEntity

    asked: Any = entity
    of_resource: dict[int, EntityKind] = {
        ResourceType.LAUNCH_PLAN: "launch plan",
        ResourceType.WORKFLOW: "workflow",
        ResourceType.TASK: "task",
    }
    if isinstance(entity, RemoteEntity | ReferenceEntity):
        kind = of_resource.get(asked.id.resource_type)
        if kind is not None:
            return find(remote, Name.of(asked.id), kind)
    local: dict[type, EntityKind] = {
        LaunchPlan: "launch plan",
        WorkflowBase: "workflow",
        PythonTask: "task",
    }
    for type_, kind in local.items():
        if isinstance(entity, type_):
            place = (project or remote.default_project, domain or remote.default_domain)
            return find(remote, Name(*place, str(asked.name), version or ""), kind)
    raise KubetailorError(
        f"{type(entity).__name__}: expected a launch plan, a workflow or a task of flytekit's"
    )


def _registered(remote: FlyteRemote, kind: EntityKind, found: Any) -> Registered:
    from kubetailor.plugins.flyte.messages import as_json

    name, launch_plan = Name.of(found.id), None
    if kind == "task":
        closure = closure_of_task(as_json(found.closure.compiled_task.template))
    else:
        if kind == "launch plan":
            launch_plan = as_json(found.spec)
            workflow = Name.of(found.spec.workflow_id)
            found = ask(f"workflow {workflow}", lambda: find_message(remote, workflow, "workflow"))
        closure = as_json(found.closure.compiled_workflow)
    workflow = Name.of(closure["primary"]["template"]["id"])
    return Registered(kind, name, workflow, closure, launch_plan, remote)
