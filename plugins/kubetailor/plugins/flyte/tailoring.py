"""One task template, or one node's pod template, through its chain: undo, run, stamp, way back."""

from __future__ import annotations

from dataclasses import dataclass

from kubetailor.plugins.flyte.node_pod import POD_PLACE, with_pod
from kubetailor.plugins.flyte.stamp import STAMP, stamp_of, stamped
from kubetailor.plugins.flyte.undo import TASK_PLACE, undo, with_undo
from kubetailor.registry import Chain, Result
from kubetailor.registry.context import known_of_template
from kubetailor.registry.tailor import Tailor, Tailored
from kubetailor.workloads import Draft, Json, JsonMap, Path, diff, same
from kubetailor.workloads.diff import pointer

__all__ = [
    "Outcome",
    "serializes",
    "tailor_pod_template",
    "tailor_template",
]


@dataclass(frozen=True)
class Outcome:
    """What became of a task template, or of a node's pod template.

    Attributes:
        author: what the author wrote.
        after: what is registered, stamp and way back included; `author` itself if the chain did
            nothing and deferred nothing.
        result: the run.
        chain: the chain, or None.
        warnings: what its step did not say.
    """

    author: JsonMap
    after: JsonMap
    result: Result
    chain: Chain | None
    warnings: tuple[str, ...] = ()

    @property
    def stamped(self) -> bool:
        """Whether the chain changed or deferred something."""
        return self.after is not self.author


def serializes(tailor: Tailor) -> bool:
    """Whether the config's `phases` list this one."""
    return "serialize" in tailor.config.phases


def tailor_template(tailor: Tailor, template: JsonMap) -> Outcome:
    """Run the chain of a task template, phase `serialize`.

    Args:
        tailor: the config.
        template: the template; what a chain made of it before is undone first.

    Raises:
        KubetailorError: as `Tailor.tailor` and `check_result`, and if the way back cannot be read.
    """
    author, warnings = undo(template)
    tailored = _run(tailor, author)
    result, after = tailored.result, author
    if _did_something(result):
        stamp = _stamp(result, tailored.chain, author)
        after = with_undo(stamped(result.after, stamp), author, TASK_PLACE)
    return Outcome(author, after, result, tailored.chain, tuple(warnings))


def tailor_pod_template(tailor: Tailor, pod: JsonMap, task: Outcome) -> Outcome:
    """Run the chain of a task over the pod template that a node gives it.

    The node's pod spec takes the place of the task's own (flyteplugins, flytek8s/pod_helper.go,
    `ToK8sPodSpec`), and its labels and annotations are laid over the task's. What the chain
    changes outside of them is the task's, and is not written to the node.

    Args:
        tailor: the config.
        pod: flyteidl.core.K8sPod in JSON form.
        task: what became of the node's task.

    Raises:
        KubetailorError: as `tailor_template`.
    """
    author, warnings = undo(pod, POD_PLACE)
    template = with_pod(task.author, author)
    tailored = _run(tailor, template)
    result, after = tailored.result, author
    if _did_something(result):
        warnings += _left_out(result, task.result.after)
        draft = Draft(author)
        given, made = template["k8sPod"], result.after["k8sPod"]
        if made.get("podSpec") is not given.get("podSpec"):
            draft.put(("podSpec",), made["podSpec"])
        for name in ("labels", "annotations"):
            path = ("metadata", name)
            _write_changes(draft, path, Draft(given).get(path) or {}, Draft(made).get(path) or {})
        stamp = _stamp(result, tailored.chain, template)
        draft.edit(("metadata", "annotations"))[STAMP] = stamp
        after = with_undo(draft.checkpoint(), author, POD_PLACE)
    return Outcome(author, after, result, tailored.chain, tuple(warnings))


def _run(tailor: Tailor, template: JsonMap) -> Tailored:
    """The chain over a task template, where its phase is installed."""
    if not serializes(tailor):
        return Tailored(Result(template, template), None)
    # Late: the webhook reads this module too, where there is no flytekit.
    from kubetailor.plugins.flyte.limits import check_result

    tailored = tailor.tailor(template, "serialize", **known_of_template(template))
    check_result(tailored.result)
    return tailored


def _did_something(result: Result) -> bool:
    if result.until is not None:
        return True
    return result.after is not result.before and not same(result.before, result.after)


def _stamp(result: Result, chain: Chain | None, template: JsonMap) -> str:
    id_ = template.get("id") or {}
    return stamp_of(result, chain, id_.get("name", ""), id_.get("version") or None)


def _write_changes(draft: Draft, path: Path, before: JsonMap, after: JsonMap) -> None:
    for key in {**before, **after}:
        if key not in after:
            draft.drop((*path, key))
        elif before.get(key) != after[key]:
            draft.edit(path)[key] = after[key]


def _left_out(result: Result, task: JsonMap) -> list[str]:
    """What the chain would change for this node alone, outside of its pod template."""
    found = []
    for op in diff(result.before, result.after, whole_lists=True):
        if op.path[0] == "k8sPod" and op.path[1:2] != ("dataConfig",):
            continue
        value: Json = Draft(task).get(op.path)
        if not same(value, op.new):
            found.append(
                f"{pointer(op.path)} cannot be changed for one node; it stays as the task has it"
            )
    return found
