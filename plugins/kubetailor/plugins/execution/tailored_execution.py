"""What the chain and the override make of one execution: its task templates and its nodes.

The chain runs once for each pair of task template and node. Where the nodes of one task come out
different, the template is copied under a key of its own, its inner `id` unchanged, and the node's
`task` names the copy; where the uses of one subworkflow do, the subworkflow is copied likewise, and
`workflow.subWorkflowRef` names that. What is tailored here is what an author wrote: what an older
chain made of it is undone first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kubetailor.plugins.execution.elsewhere import elsewhere
from kubetailor.plugins.execution.graph_writer import GraphWriter
from kubetailor.plugins.execution.identity import bound_inputs, known_of_execution
from kubetailor.plugins.execution.instances import MOST, Instances
from kubetailor.plugins.execution.marks import with_marks
from kubetailor.plugins.execution.nodes import Node
from kubetailor.plugins.execution.override import JUDGED, judged, launch_alone
from kubetailor.plugins.execution.pairs import Pair, tailor_pair
from kubetailor.plugins.execution.tailored_node import Made, NodeError, TailoredNode
from kubetailor.plugins.execution.templates import Templates
from kubetailor.plugins.execution.watched import Watched
from kubetailor.registry import DeferError, OverrideError, Result
from kubetailor.registry.context import known_of_template
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.overrides.outcome import OverrideOutcome
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft, InvalidObjectError, JsonMap, Path
from kubetailor.workloads.primary import PRIMARY_ANNOTATIONS
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["MOST_WORK", "TailoredExecution"]

MOST_WORK: Final = 10_000_000
"""Nodes times steps times values of an override: what is far beyond takes minutes, and not seconds.

Each step runs at each node, over what the steps before it have written there.
"""


class TailoredExecution:
    """One execution as it is tailored.

    Attributes:
        obj: the FlyteWorkflow as it came in.
        override: its override, or None.
        outcome: what the override did so far, here and in what else it is about.
        known: what is known of every task.
        warnings: what there is to say.
        chains: the name of each chain that ran -> its digest.
        steps: the names of the steps that changed something, in order.
        undecided: how many conditions could not be decided.
        instances: its nodes.
    """

    def __init__(
        self,
        obj: JsonMap,
        tailor: Tailor,
        *,
        namespace: str | None = None,
        **known: str,
    ) -> None:
        """An execution on its way in.

        Args:
            obj: the FlyteWorkflow.
            tailor: the config.
            namespace: its namespace.
            known: what else is known of its tasks, as fields of `TaskContext`.
        """
        self.obj: JsonMap = obj
        self.override: CompiledOverride | None = None
        self.outcome: OverrideOutcome | None = None
        self.known: JsonMap = {**known_of_execution(obj, namespace), **known}
        self.warnings: list[str] = []
        self.chains: dict[str, str] = {}
        self.steps: dict[str, None] = {}
        self.undecided: int = 0
        self.instances: Instances = Instances(obj)
        self._tailor = tailor
        self._draft = Draft(obj)
        self._templates = Templates(self._draft)
        self._made: dict[tuple[Path, str | None], Made] = {}  # None: in every use alike

    @property
    def is_offloaded(self) -> bool:
        """Whether its tasks are elsewhere."""
        return bool(self.obj.get("workflowClosureReference"))

    def tailored(
        self, override: CompiledOverride | None = None, outcome: OverrideOutcome | None = None
    ) -> JsonMap:
        """The FlyteWorkflow as it comes out.

        Args:
            override: its override.
            outcome: what takes note of what the override does; by default one of its own.

        Raises:
            NodeError: a task cannot be tailored.
            InvalidObjectError: there are too many nodes to tell apart, or the execution itself says
                which container of its pods is the primary one.
            OverrideError: the override is too much for so many nodes.
        """
        self._check_annotations()
        self.override = override
        if override is not None:
            self._check_work(override)
            self.outcome = outcome or OverrideOutcome(override)
        told_apart = self._run()
        GraphWriter(self._draft, self.instances, self._of, told_apart).write()
        return with_marks(self._draft.checkpoint(), self.obj)

    def nodes(self) -> Iterator[TailoredNode]:
        """Each node that runs a task, in each use of its graph; in the first, if there are many."""
        for key, graph in self.instances.graphs.items():
            for prefix in self.instances.some(key):
                for node in graph.nodes:
                    if made := self._of(node, prefix):
                        yield replace(made.tailored, id=f"{prefix}{node.id}")

    def judge(self) -> None:
        """Refuse an override that does nothing, or say what cannot be where no task is seen.

        One that was judged before has done what it does, or did it in the parent's execution.

        Raises:
            OverrideError: a step of it is for no task, or changes none, and there are no others.
        """
        if self.override is None or self.outcome is None:
            return
        if self.is_offloaded:
            self.warnings += (text for _, text in launch_alone(self.override))
            return
        if Draft(self.obj).get(("metadata", "annotations", JUDGED)) == judged(self.obj):
            return
        others = elsewhere(self.instances, self.obj.get("tasks"))
        if not others:
            self.outcome.check()
        for fault in self.outcome.faults():
            self.warnings.append(
                f"{fault}. It is not refused, as it may be for tasks that are not known here: "
                f"{'; '.join(others)}"
            )

    def _check_work(self, override: CompiledOverride) -> None:
        """Before anything of it runs: a time limit would say neither why nor what to do."""
        apart = any("node" in step.when.fields for step in override.steps)
        nodes = sum(
            len(graph.nodes) * (len(self.instances.some(key)) if apart else 1)
            for key, graph in self.instances.graphs.items()
        )
        steps, values = len(override.steps), override.values
        if nodes * steps * values > MOST_WORK:
            raise OverrideError(
                f"{steps} steps with {values} values in all are too much for the {nodes} nodes of "
                f"this execution: steps times values times nodes is {nodes * steps * values}, at "
                f"most {MOST_WORK}; say the same in fewer steps, or in the chain of the config"
            )

    def _check_annotations(self) -> None:
        """Which container `enforce` is about is not for whoever launches to say, for every pod."""
        for key in PRIMARY_ANNOTATIONS:
            if self._draft.get(("metadata", "annotations", key)) is not None:
                raise InvalidObjectError(
                    "an execution's annotations reach every pod, and this one says which container "
                    "is the primary one: take it off the execution or its launch plan",
                    field=f"metadata.annotations['{key}']",
                )

    # pairs -------------------------------------------------------------------------------------

    def _run(self) -> set[str]:
        """Tailor every node; returns the graphs of which the uses are told apart."""
        told_apart: dict[str, int] = {}
        for key, graph in self.instances.graphs.items():
            first = self.instances.first(key)
            for node in graph.nodes:
                template = self._templates.get(node.task)
                if template is None:
                    self.warnings.append(
                        f"node {first}{node.id}: the execution holds no task {node.task!r}"
                    )
                    continue
                made, asks = self._tailor_at(node, first, template)
                if not asks or self.instances.count(key) == 1:
                    self._made[node.path, None] = made
                    continue
                told_apart[key] = told_apart.get(key, 0) + self.instances.count(key)
                if sum(told_apart.values()) > MOST:
                    raise InvalidObjectError(
                        f"more than {MOST} nodes, counted in every use of a subworkflow, have to "
                        "be told apart, as a step asks for `node`"
                    )
                self._made[node.path, first] = made
                for prefix in self.instances.all(key)[1:]:
                    self._made[node.path, prefix], _ = self._tailor_at(node, prefix, template)
        return set(told_apart)

    def _of(self, node: Node, prefix: str) -> Made | None:
        return self._made.get((node.path, prefix)) or self._made.get((node.path, None))

    def _tailor_at(self, node: Node, prefix: str, template: JsonMap) -> tuple[Made, bool]:
        """What becomes of a node in one use, and whether its id was asked for."""
        task = self._task(template, node, prefix)
        tailored = self._tailored(template, node, f"{prefix}{node.id}", task)
        asks = "node" in task.read
        return Made(*self._templates.own_key(node.task, tailored.pair.template), tailored), asks

    def _task(self, template: JsonMap, node: Node, prefix: str) -> Watched:
        # The execution's project and domain, not those that the template is registered in.
        known = {"version": None, **known_of_template(template), **self.known}
        inputs = {**self.known["inputs"], **bound_inputs(node.spec)}
        known.update(node=f"{prefix}{node.id}", inputs=inputs)
        return Watched(self._tailor.task("launch", **known))

    def _tailored(self, template: JsonMap, node: Node, id_: str, task: Watched) -> TailoredNode:
        what = f"task {known_of_template(template)['task']} at node {id_}: "
        try:
            pair = tailor_pair(self._tailor, template, node.spec, task, self.override)
        except DeferError as unknown:
            until = Result(template, template, until="admit", unknown=unknown.field)
            warning = f"`select` needs {unknown.field}, which is not known yet"
            self.warnings.append(what + warning)
            self._note(task, until)
            return TailoredNode(id_, node, template, Pair(template, {}), until.notice, (warning,))
        except Exception as error:
            raise NodeError(what, template, error) from error
        warnings = [*pair.warnings]
        if pair.chain is not None and pair.result is not None:
            self.chains[pair.chain.name] = pair.chain.digest
            warnings += map(str, pair.result.warnings)
            self.undecided += pair.result.undecided
            self.steps.update(dict.fromkeys(step.name for _, step, _ in pair.result.versions()))
            self._note(task, pair.result)
        self.warnings += [what + warning for warning in warnings]
        notice = None if pair.result is None else pair.result.notice
        return TailoredNode(id_, node, template, pair, notice, tuple(warnings))

    def _note(self, task: Watched, result: Result) -> None:
        if self.outcome is not None:
            self.outcome.add(task, result, TASK_TEMPLATE)
