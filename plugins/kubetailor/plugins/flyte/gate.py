"""Whether a chain concerns a task at all, asked before its pods are read."""

from __future__ import annotations

from collections.abc import Iterable

from kubetailor.registry import DeferError
from kubetailor.registry.context import known_of_template
from kubetailor.registry.selectors import POD_FIELDS, Selector
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, Workload
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["Gate"]


class Gate:
    """The conditions of a config that can be decided by a task's id, type and metadata."""

    def __init__(self, tailor: Tailor) -> None:
        self._tailor = tailor
        self._chains = {
            name: [step.when for step in chain.steps]
            for name, chain in tailor.config.chains.items()
            if _need_no_pods(step.when for step in chain.steps)
        }
        select = [] if tailor.forced else [rule.when for rule in tailor.config.select]
        self._decides = _need_no_pods(select)

    def is_closed_to(self, head: JsonMap) -> bool:
        """Whether no step of its chain can apply to a task.

        Args:
            head: id, type and metadata of the task template.
        """
        if not self._decides:
            return False
        tailor = self._tailor
        task = tailor.task("serialize", **known_of_template(head))
        workload = Workload(head, TASK_TEMPLATE)
        try:
            chain = tailor.chain_of(task, workload)
        except DeferError:
            return False
        if chain is None:
            return True
        conditions = self._chains.get(chain.name)
        if conditions is None:
            return False
        return all(when.of_workload(task, workload) is False for when in conditions)


def _need_no_pods(conditions: Iterable[Selector]) -> bool:
    return all(when.fields.isdisjoint(_READ_PODS) for when in conditions)


_READ_PODS = frozenset({*POD_FIELDS, "labels", "annotations"})
"""A task's labels may be those of its pod."""
