"""The protobufs of tasks and workflows that belong together, each through its chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kubetailor.plugins.flyte.messages import as_json, read_message, write_message
from kubetailor.plugins.flyte.node_metadata import followed, own_words
from kubetailor.plugins.flyte.overrides import contradictions
from kubetailor.plugins.flyte.report import Report
from kubetailor.plugins.flyte.tailoring import Outcome, tailor_pod_template, tailor_template
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, KubetailorError

__all__ = ["Entities", "Tailored", "task_nodes"]


@dataclass(frozen=True)
class Tailored:
    """One task of a package, or one node that gives its task another pod template.

    Attributes:
        task: the task's name.
        node: where the node is, ``workflow/node``; None for the task itself.
        before: what the author wrote, in JSON form.
        after: what is registered.
        outcome: what became of it.
    """

    task: str
    node: str | None
    before: JsonMap
    after: JsonMap
    outcome: Outcome

    @property
    def where(self) -> str:
        """What to call it in messages."""
        return f"node {self.node} (task {self.task})" if self.node else f"task {self.task}"


@dataclass
class Entities:
    """The protobufs of tasks and workflows that belong together.

    Attributes:
        tasks: TaskSpec messages.
        workflows: WorkflowSpec messages.
    """

    tasks: list[Any] = field(default_factory=list)
    workflows: list[Any] = field(default_factory=list)

    def tailor(self, tailor: Tailor, report: Report) -> Iterator[Tailored]:
        """Run the chain over each task, then over each pod template of a node; changes them.

        Nodes follow what changed of their tasks.

        Args:
            tailor: the config.
            report: what says it.

        Raises:
            KubetailorError: a step failed.
        """
        outcomes: dict[str, Outcome] = {}
        registered: dict[str, JsonMap] = {}
        for spec in self.tasks:
            template = spec.template
            whole = as_json(template)
            before = read_message(template)
            outcome = tailor_template(tailor, before)
            write_message(template, before, outcome.after)
            outcomes[_key(template.id)] = outcome
            registered[_key(template.id)] = before
            hidden = {key: value for key, value in whole.items() if key not in before}
            report.tally.add(_key(template.id), outcome)
            report.notices.say(outcome, f"task {template.id.name}")
            yield Tailored(
                template.id.name,
                None,
                _in_order(template, {**hidden, **outcome.author}),
                _in_order(template, {**hidden, **outcome.after}),
                outcome,
            )
        for spec in self.workflows:
            for workflow in (spec.template, *spec.sub_workflows):
                for node in task_nodes([*workflow.nodes, workflow.failure_node]):
                    key = _key(node.task_node.reference_id)
                    task = outcomes.get(key)
                    if task is not None:
                        metadata = as_json(node.metadata)
                        now = followed(metadata, registered[key], task.after)
                        if now is not metadata:
                            write_message(node.metadata, metadata, now, field="metadata")
                        yield from _tailor_node(tailor, workflow.id.name, node, task, report)


def _tailor_node(
    tailor: Tailor, workflow: str, node: Any, task: Outcome, report: Report
) -> Iterator[Tailored]:
    overrides = node.task_node.overrides
    where, name = f"{workflow}/{node.id}", node.task_node.reference_id.name
    own = own_words(as_json(node.metadata), task.after)
    against = contradictions(as_json(overrides), own, task.result, tailor.config.catalogue)
    report.notices.warn(f"node {where} (task {name})", against)
    if not overrides.HasField("pod_template"):
        return
    pod = overrides.pod_template
    before = as_json(pod)
    try:
        outcome = tailor_pod_template(tailor, before, task)
    except KubetailorError as error:
        raise KubetailorError(f"node {where}: {error}") from error
    write_message(pod, before, outcome.after, field="podTemplate")
    found = Tailored(name, where, outcome.author, outcome.after, outcome)
    report.notices.say(outcome, found.where)
    yield found


def task_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """The nodes that run a task, also those of branches and within array nodes."""
    for node in nodes:
        kind = node.WhichOneof("target")
        if kind == "task_node":
            yield node
        elif kind == "array_node":
            yield from task_nodes([node.array_node.node])
        elif kind == "branch_node":
            if_else = node.branch_node.if_else
            blocks = [if_else.case, *if_else.other]
            yield from task_nodes([*(block.then_node for block in blocks), if_else.else_node])


def _key(id_: Any) -> str:
    return f"{id_.project}:{id_.domain}:{id_.name}:{id_.version}"


def _in_order(template: Any, parts: JsonMap) -> JsonMap:
    """The parts in the order of the protobuf's fields."""
    order = [each.json_name for each in template.DESCRIPTOR.fields]
    return {name: parts[name] for name in order if name in parts}
