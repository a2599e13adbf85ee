"""What an override would make of tasks that are not registered yet, in the phase `launch`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from kubetailor.plugins.cli.overriding import GivenOverride
from kubetailor.plugins.execution.pairs import tailor_pair
from kubetailor.plugins.flyte.entities import Tailored
from kubetailor.plugins.flyte.notices import Notices
from kubetailor.plugins.flyte.tailoring import Outcome
from kubetailor.registry import DeferError, OverrideError, Result
from kubetailor.registry.context import known_of_template
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.overrides.outcome import OverrideOutcome
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, same
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["overridden"]

_OF_EXECUTIONS: Final = frozenset({"node", "inputs", "workflow", "launch_plan", "execution"})
"""What only an execution says of a task."""


def overridden(
    items: Iterable[Tailored], given: GivenOverride, tailor: Tailor
) -> Iterator[Tailored]:
    """Each task as it would be registered, and as an execution with the override would run it.

    Args:
        items: the tasks after the phase `serialize`.
        given: the override.
        tailor: the config.

    Raises:
        OverrideError: a step may not be, does nothing, or reads what only an execution says.
    """
    override = tailor.config.overrides.compile(given.read(tailor.config.plugins))
    for step in override.steps:
        if fields := sorted(step.when.fields & _OF_EXECUTIONS):
            raise OverrideError(
                f"step {step.name!r}: `when` reads {', '.join(fields)}, which only an execution "
                "says: register the module, and show PROJECT/DOMAIN/NAME",
                step.mark,
            )
    outcome, notices = OverrideOutcome(override), Notices()
    found = [_launched(item, override, outcome, tailor) for item in items if item.node is None]
    outcome.check()
    for item in found:
        notices.say(item.outcome, item.where)
        yield item


def _launched(
    item: Tailored, override: CompiledOverride, outcome: OverrideOutcome, tailor: Tailor
) -> Tailored:
    registered: JsonMap = item.after
    task = tailor.task("launch", **{"version": None, **known_of_template(registered)})
    try:
        pair = tailor_pair(tailor, registered, {}, task, override)
    except DeferError as unknown:
        raise OverrideError(
            f"{item.where}: `select` needs {unknown.field}, which a module does not say: give it "
            f"with --task {unknown.field}=…"
        ) from None
    result = pair.result or Result(registered, registered)
    outcome.add(task, result, TASK_TEMPLATE)
    after = registered if same(registered, pair.template) else pair.template
    became = Outcome(registered, after, result, pair.chain, pair.warnings)
    return replace(item, before=registered, after=after, outcome=became)
