"""What FlyteAdmin would hold of an entity that is not fetched from it, as registering it does."""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from kubetailor.plugins.client.names import EntityKind, Name
from kubetailor.plugins.client.registered import Registered
from kubetailor.plugins.execution.compiled import closure_of_task
from kubetailor.plugins.flyte.entities import Entities
from kubetailor.plugins.flyte.install import left_alone
from kubetailor.plugins.flyte.messages import as_json
from kubetailor.plugins.flyte.notices import Notices
from kubetailor.plugins.flyte.report import Report
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, KubetailorError

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

__all__ = ["registered_of_local"]


def registered_of_local(
    remote: FlyteRemote,
    entity: Any,
    tailor: Tailor,
    *,
    project: str | None = None,
    domain: str | None = None,
) -> Registered:
    """What registering a local launch plan or task makes of it, by the config; nothing is sent.

    The launch plans that its nodes launch are those that FlyteAdmin holds.

    Args:
        remote: where it would be registered.
        entity: the launch plan or the task.
        tailor: the config.
        project: by default the remote's.
        domain: the same.

    Raises:
        KubetailorError: flytekit cannot serialize it, or a step of `serialize` fails.
    """
    from flytekit.core.base_task import PythonTask
    from flytekit.models.admin.workflow import WorkflowSpec
    from flytekit.models.task import TaskSpec

    place = (project or remote.default_project, domain or remote.default_domain)
    top, made = _serialized(entity, *place)
    entities = Entities(
        [each.to_flyte_idl() for each in made if isinstance(each, TaskSpec)],
        [each.to_flyte_idl() for each in made if isinstance(each, WorkflowSpec)],
    )
    for _ in entities.tailor(tailor, Report(_Silent())):
        pass
    tasks = {spec.template.id.name: as_json(spec.template) for spec in entities.tasks}
    name = Name(*place, entity.name)
    if isinstance(entity, PythonTask):
        closure, launch_plan = closure_of_task(tasks[entity.name]), None
    else:
        workflow = top.spec.workflow_id.name
        (spec,) = (each for each in entities.workflows if each.template.id.name == workflow)
        closure, launch_plan = _closure(as_json(spec), tasks), as_json(top.spec.to_flyte_idl())
    workflow_name = Name.of(closure["primary"]["template"]["id"])
    kind: EntityKind = "task" if launch_plan is None else "launch plan"
    return Registered(kind, name, workflow_name, closure, launch_plan, remote)


class _Silent(Notices):
    """What registering says is said when it is registered."""

    def _say(self, text: str) -> None:
        pass


def _serialized(entity: Any, project: str, domain: str) -> tuple[Any, list[Any]]:
    """What flytekit makes of an entity, and of all that it uses, before any chain."""
    from flytekit.configuration import ImageConfig, SerializationSettings
    from flytekit.tools.translator import get_serializable

    images = ImageConfig.auto_default_image()
    settings = SerializationSettings(images, project=project, domain=domain)
    made: OrderedDict[Any, Any] = OrderedDict()
    try:
        with left_alone(), contextlib.redirect_stdout(sys.stderr):
            top = get_serializable(made, settings, entity)
    except (Exception, SystemExit) as error:  # images are built, plugins run
        raise KubetailorError(
            f"{entity.name} cannot be serialized: {type(error).__name__}: {error}"
        ) from error
    return top, list(made.values())


def _closure(spec: JsonMap, tasks: dict[str, JsonMap]) -> JsonMap:
    """The closure of a workflow, as far as a chain reads it."""
    graphs = [_named(graph) for graph in (spec["template"], *spec.get("subWorkflows", ()))]
    return {
        "primary": {"template": graphs[0]},
        "subWorkflows": [{"template": graph} for graph in graphs[1:]],
        "tasks": [{"template": template} for template in tasks.values()],
    }


def _named(graph: JsonMap) -> JsonMap:
    """A graph in which what a branch runs is named after the branch.

    Source: flytepropeller, pkg/compiler/validators/branch.go.
    """
    return {**graph, "nodes": [_named_node(node) for node in graph.get("nodes", ())]}


def _named_node(node: JsonMap, prefix: str = "") -> JsonMap:
    found = {**node, "id": f"{prefix}{node['id']}"}
    if_else = node.get("branchNode", {}).get("ifElse")
    if if_else is None:
        return found
    below = f"{found['id']}-"
    named = {**if_else}
    if "case" in if_else:
        named["case"] = _named_block(if_else["case"], below)
    if "other" in if_else:
        named["other"] = [_named_block(block, below) for block in if_else["other"]]
    if "elseNode" in if_else:
        named["elseNode"] = _named_node(if_else["elseNode"], below)
    return {**found, "branchNode": {"ifElse": named}}


def _named_block(block: JsonMap, prefix: str) -> JsonMap:
    return {**block, "thenNode": _named_node(block["thenNode"], prefix)}
