"""What the cluster will do with an execution, before there is one, by the same code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubetailor.plugins.client.names import Name
from kubetailor.plugins.client.notices import Notices
from kubetailor.plugins.client.preview import ExecutionPreview, NodePreview, Preview
from kubetailor.plugins.client.registered import Registered
from kubetailor.plugins.client.request import Request
from kubetailor.plugins.execution.compiled import flyte_workflow
from kubetailor.plugins.execution.literals import plain_values
from kubetailor.plugins.execution.override import override_of
from kubetailor.plugins.execution.tailored_execution import TailoredExecution
from kubetailor.plugins.execution.tailored_node import NodeError
from kubetailor.registry import OverrideError
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.overrides.document import OVERRIDE, Override
from kubetailor.registry.overrides.outcome import OverrideOutcome
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, KubetailorError
from kubetailor.workloads.form import form_fault
from kubetailor.workloads.task_template import TASK_TEMPLATE

if TYPE_CHECKING:
    from kubetailor.plugins.client.executions import Execution

__all__ = ["preview", "preview_of"]


def preview(
    registered: Registered,
    tailor: Tailor,
    override: Override | None = None,
    request: Request | None = None,
) -> Preview:
    """What the cluster will make of an execution.

    Args:
        registered: what is launched.
        tailor: the config; `Tailor.built_in()` where there is none.
        override: the execution's override; None for the one that the annotations hold.
        request: what else is said of it; a `when` sees those inputs that are plain values, and it
            runs where it is registered unless another place is said.

    Returns:
        What will happen. An override that would be refused is no exception here: see `faults`.
    """
    request = request or Request()
    return _Previewing(tailor, request.overwrite_cache).of(registered, override, request)


def preview_of(execution: Execution, tailor: Tailor) -> Preview:
    """What the cluster would make, by a config, of an execution that was launched.

    Args:
        execution: the execution.
        tailor: the config.

    Raises:
        KubetailorError: what was launched is registered no more, or FlyteAdmin cannot be asked.
    """
    return preview(execution.registered(), tailor, request=execution.request())


class _Previewing:
    """One preview while it is made."""

    def __init__(self, tailor: Tailor, overwrite_cache: bool) -> None:
        self._tailor = tailor
        self._notices = Notices(tailor, overwrite_cache)
        self._faults: dict[str, None] = {}
        self._warnings: dict[str, None] = {}
        self._executions: list[ExecutionPreview] = []
        self._override: CompiledOverride | None = None
        self._kept: CompiledOverride | None = None  # what the cluster can do of it
        self._seen: set[Name] = set()
        self._outcome: OverrideOutcome | None = None

    def of(self, registered: Registered, override: Override | None, request: Request) -> Preview:
        annotations = dict(request.annotations or registered.annotations)
        inputs = {**registered.inputs, **(request.inputs or {})}
        try:
            if override is not None:
                self._override = self._tailor.config.overrides.compile(override)
                annotations[OVERRIDE] = override.annotation()
            elif (text := annotations.get(OVERRIDE)) is not None:
                self._override = self._tailor.config.overrides.read(text)
        except OverrideError as error:
            self._faults[str(error)] = None
            annotations.pop(OVERRIDE, None)
        self._kept = self._notices.kept(self._override)
        if self._kept is not None:
            self._outcome = OverrideOutcome(self._kept)
        obj = flyte_workflow(
            registered.closure,
            project=request.project or registered.name.project,
            domain=request.domain or registered.name.domain,
            labels=request.labels or registered.labels,
            annotations=annotations,
            inputs=plain_values(inputs),
        )
        unknown = registered.variables - inputs.keys() if request.inputs is None else frozenset()
        self._add(registered, (), obj, unknown)
        self._judge()
        return Preview(
            tuple(self._executions),
            self._override,
            tuple(self._faults),
            tuple(self._warnings),
            tuple(self._notices.said),
        )

    # executions --------------------------------------------------------------------------------

    def _add(
        self,
        registered: Registered,
        path: tuple[str, ...],
        obj: JsonMap,
        unknown: frozenset[str],
    ) -> None:
        """One execution, then those that its nodes launch: each launch plan once, as all are alike.

        Args:
            registered: what it is an execution of.
            path: the nested ids of the nodes that lead to it.
            obj: the FlyteWorkflow.
            unknown: the inputs that are not known.
        """
        self._seen.add(registered.name)
        execution, after = self._tailored(obj, path)
        where = "".join(f"{each}: " for each in path)
        self._warnings.update(dict.fromkeys(where + each for each in execution.warnings))
        nodes = tuple(NodePreview.of(each, path) for each in execution.nodes())
        self._executions.append(ExecutionPreview(registered, path, nodes, obj, after))
        self._notices.of_execution(execution, path, unknown)
        for id_, child in self._children(registered, path).items():
            if child.name not in self._seen:
                unknown = child.variables - child.inputs.keys()
                self._add(child, (*path, id_), _launched_by(after, child), unknown)

    def _tailored(self, obj: JsonMap, path: tuple[str, ...]) -> tuple[TailoredExecution, JsonMap]:
        """An execution with its override; without it, if it would be refused with it."""
        for override in (self._override_of(obj), None):
            execution = TailoredExecution(obj, self._tailor, namespace=obj["metadata"]["namespace"])
            try:
                outcome = self._outcome if override is self._kept else None
                return execution, execution.tailored(override, outcome)
            except NodeError as error:
                self._faults["".join(f"{each}: " for each in path) + self._fault(error)] = None
            except KubetailorError as error:
                self._faults[str(error)] = None
        return execution, obj

    def _override_of(self, obj: JsonMap) -> CompiledOverride | None:
        """The override of an execution: the one asked for, or that of a child's own launch plan."""
        text = obj["metadata"].get("annotations", {}).get(OVERRIDE)
        top = self._executions[0].before if self._executions else obj
        if text == top["metadata"].get("annotations", {}).get(OVERRIDE):
            return self._kept
        try:
            return self._notices.kept(override_of(obj, self._tailor))
        except OverrideError as error:
            self._faults[str(error)] = None
            return None

    def _fault(self, error: NodeError) -> str:
        """Why a task cannot be tailored.

        Raises:
            Exception: it is our fault, or a transformer's.
        """
        fault = form_fault(error.error, error.template, TASK_TEMPLATE)
        if fault is not None:
            return f"{error.what}{fault}"
        if not isinstance(error.error, KubetailorError):
            raise error.error
        return str(error)

    def _children(self, registered: Registered, path: tuple[str, ...]) -> Mapping[str, Registered]:
        try:
            return registered.children()
        except KubetailorError as error:
            self._notices.of_unknown(path, str(error))
            return {}

    # the override ------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Each step of the override that does nothing, over all executions."""
        if self._outcome is None or self._faults:
            return
        for step in self._outcome.idle():
            fault = str(self._outcome.fault(step))
            if why := self._notices.may_yet(step):
                self._notices.say(f"{fault}; it may do so yet: {why}")
            else:
                self._faults[fault] = None


def _launched_by(parent: JsonMap, child: Registered) -> JsonMap:
    """The FlyteWorkflow of an execution that a node launches: it inherits labels and annotations.

    What FlyteAdmin does with those of the child's launch plan is what it does for any request.
    """
    metadata: JsonMap = parent["metadata"]
    return flyte_workflow(
        child.closure,
        project=parent["executionId"]["project"],
        domain=parent["executionId"]["domain"],
        labels=metadata.get("labels") or child.labels,
        annotations=metadata.get("annotations") or child.annotations,
        inputs=child.inputs,
    )
