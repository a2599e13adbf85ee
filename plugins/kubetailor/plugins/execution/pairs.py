"""A task template at a node: what the chain makes of the pair.

`steps` run over what the task will be at the node, then what the node states holds again; the
execution's override comes after that, and `enforce` last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kubetailor.plugins.execution.marks import Stamp, read_stamp
from kubetailor.plugins.execution.node_overrides import NodeOverrides, Spec
from kubetailor.plugins.flyte.stamp import STAMP, stamp_of
from kubetailor.plugins.flyte.stamp import stamped as stamped_template
from kubetailor.plugins.flyte.undo import undo
from kubetailor.registry import Chain, Result, TaskContext
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.step import Step
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft, JsonMap, Workload, same
from kubetailor.workloads.form import check_form
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["Pair", "tailor_pair"]

_STAMP_PLACE: Final = ("metadata", "metadata", "annotations", STAMP)


@dataclass(frozen=True)
class Pair:
    """What became of a task template at a node.

    Attributes:
        template: the template for this node.
        spec: the fields of the node that change.
        chain: the chain, or None if none is selected.
        result: what it did, or None.
        warnings: what its steps did not say.
    """

    template: JsonMap
    spec: Spec
    chain: Chain | None = None
    result: Result | None = None
    warnings: tuple[str, ...] = ()


def tailor_pair(
    tailor: Tailor,
    template: JsonMap,
    spec: JsonMap,
    task: TaskContext,
    override: CompiledOverride | None = None,
) -> Pair:
    """Select the chain of a task at a node, and run it over what its authors wrote.

    Args:
        tailor: the config.
        template: the template.
        spec: the node.
        task: what is known of the task.
        override: the execution's override.

    Raises:
        DeferError: `select` needs what is not known yet.
        KubetailorError: a step failed, or a way back cannot be read.
    """
    author, warnings = undo(template)
    if author is not template:
        check_form(author, TASK_TEMPLATE)  # the way back may lead to anything
    overrides = NodeOverrides.of(spec, template)
    base = author if overrides is None else overrides.base(author)
    over = base if overrides is None else overrides.laid_over(base)
    chain = tailor.chain_of(task, Workload(over, TASK_TEMPLATE), override)
    stamp = read_stamp(Draft(template).get(_STAMP_PLACE))
    if overrides is None:
        if chain is not None and stamp is not None and _goes_on(stamp, chain, task):
            result = chain.run(template, TASK_TEMPLATE, task, start=stamp.done)
            return Pair(_stamped(result, chain, task), {}, chain, result)
        if chain is None:
            return Pair(author, {}, warnings=tuple(warnings))
        result = chain.run(author, TASK_TEMPLATE, task)
        return Pair(_stamped(result, chain, task), {}, chain, result, tuple(warnings))
    warnings += overrides.warnings
    if chain is None:
        return Pair(author, overrides.pod_back(spec), warnings=tuple(warnings))
    result, overruled = _run(chain, overrides, over, task)
    after = _stamped(result, chain, task, overruled=overruled)
    if after is over:
        return Pair(author, overrides.pod_back(spec), chain, result, tuple(warnings))
    after, changes = overrides.taken_off(base, over, after)
    return Pair(after, changes, chain, result, tuple(warnings))


def _goes_on(stamp: Stamp, chain: Chain, task: TaskContext) -> bool:
    """Whether this chain ran on the task before, so that it goes on where it stopped."""
    known = {"task": task.peek("task"), "version": task.peek("version")}
    override = chain.override.digest if chain.override else None
    return (stamp.digest, stamp.override) == (chain.digest, override) and stamp.is_for(known)


def _run(
    chain: Chain, overrides: NodeOverrides, over: JsonMap, task: TaskContext
) -> tuple[Result, bool]:
    """`defaults` and `steps`, what the node states, then the override and `enforce`.

    Returns:
        What came out, and whether the node kept a step from having its way.
    """
    below = [step for step in chain.steps if step.layer in ("defaults", "steps")]
    kept = [index for index, step in enumerate(below) if _applies(step, overrides)]
    steps = tuple(_with_count(below[index], overrides) for index in kept)
    first = replace(chain, steps=steps).run(over, TASK_TEMPLATE, task)
    after = overrides.once_more(over, first.after)
    overruled = steps != tuple(below) or not same(after, first.after)
    first.after = after
    if first.until is not None:
        first.done = kept[first.done]
        first.deferred = tuple(step.name for step in chain.steps[first.done :])
        return first, overruled
    upper = replace(chain, steps=chain.steps[len(below) :])
    last = upper.run(first.after, TASK_TEMPLATE, task)
    result = replace(
        last,
        before=over,
        warnings=first.warnings + last.warnings,
        done=len(below) + last.done,
        undecided=first.undecided + last.undecided,
        roots=first.roots + last.roots,
    )
    return result, overruled


def _applies(step: Step, overrides: NodeOverrides) -> bool:
    """A node's own accelerator beats one that a step chooses, with all that belongs to it."""
    return not (step.transformer.options.accelerator and overrides.accelerator)


def _with_count(step: Step, overrides: NodeOverrides) -> Step:
    """A node's own number of GPUs beats a step's."""
    count = overrides.devices
    given = step.transformer.options.accelerator and step.arguments.get("count") is not None
    if count is None or not given:
        return step
    return replace(step, arguments={**step.arguments, "count": count})


def _stamped(
    result: Result, chain: Chain, task: TaskContext, *, overruled: bool = False
) -> JsonMap:
    """What came out, with the stamp if anything did, or waits.

    Also where a node overruled a step: at `admit` its words are the pod's, and the step would run.
    """
    if result.until is None and not overruled and same(result.before, result.after):
        return result.before
    text = stamp_of(result, chain, task.task, task.version)
    return stamped_template(result.after, text)
