"""The phase `launch`: one execution on its way in, its task templates and nodes.

The chain runs once for each pair of task template and node. Where the nodes of one task come out
different, the template is copied under a key of its own, its inner `id` unchanged, and the node's
`task` names the copy. What is tailored here is what an author wrote: what an older chain made of it
is undone first.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Final

from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.undo import TASK_PLACE
from kubetailor.plugins.webhook.decision import Decision, explained
from kubetailor.plugins.webhook.engine import Node, follow, task_nodes
from kubetailor.plugins.webhook.identity import FLYTE_GROUP, bound_inputs, known_of_execution
from kubetailor.plugins.webhook.marks import EXECUTION_KEYS, keys_text
from kubetailor.plugins.webhook.override import JUDGED, judged, launch_alone, override_of
from kubetailor.plugins.webhook.pairs import Pair, tailor_pair
from kubetailor.plugins.webhook.reviews import AdmissionRequest, allowed, denied
from kubetailor.registry import DeferError, OverrideError, Result, TaskContext
from kubetailor.registry.context import known_of_template
from kubetailor.registry.outcome import OverrideOutcome
from kubetailor.registry.overridden import CompiledOverride
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft, InvalidObjectError, JsonMap, json_patch, same
from kubetailor.workloads.metadata import FLYTE_LABELS, MapName

__all__ = ["Launch", "is_execution"]

_OURS: Final = "kubetailor.dev/"
_TEMPLATE: Final = ("flyte", "TaskTemplate")


def is_execution(obj: JsonMap) -> bool:
    """Whether an object is a FlyteWorkflow."""
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    return obj.get("kind") == "FlyteWorkflow" and group == FLYTE_GROUP


class Launch:
    """One execution on its way in, and what is decided of it."""

    def __init__(self, request: AdmissionRequest, obj: JsonMap, tailor: Tailor) -> None:
        self._request = request
        self._obj = obj
        self._tailor = tailor
        self._kind = tailor.config.plugins.kinds[_TEMPLATE]
        self._read = Draft(obj).get
        self._known = known_of_execution(obj, request.get("namespace"))
        self._warnings: list[str] = []
        self._chains: dict[str, str] = {}  # name -> digest
        self._steps: dict[str, None] = {}  # in order
        self._undecided = 0
        self._override: CompiledOverride | None = None
        self._outcome: OverrideOutcome | None = None

    def decision(self) -> Decision:
        """Tailor every task of the execution, and say what came out."""
        try:
            self._override = override_of(self._obj, self._tailor)
            if self._override is not None:
                self._outcome = OverrideOutcome(self._override)
            after = self._tailored()
            self._judge()
            after = self._marked(after)
        except (InvalidObjectError, OverrideError) as error:
            return self._denied(422, f"kubetailor: {error}")
        except _Denied as error:
            return self._denied(error.code, f"kubetailor: {error}")
        patch = json_patch(self._obj, after)
        audit = {"chain": ",".join(self._chains), "digest": ",".join(self._chains.values())}
        response = allowed(
            self._request["uid"],
            patch=patch,
            warnings=self._warnings,
            audit={**audit, "steps": ",".join(self._steps)},
        )
        offloaded = self._is_offloaded
        reason = "the workflow closure is offloaded: what it makes is tailored then"
        return self._said(
            Decision(
                response,
                "patched" if patch else "unchanged",
                reason if offloaded else "",
                operations=len(patch),
                offloaded=offloaded,
            )
        )

    def _denied(self, code: int, message: str) -> Decision:
        response = denied(self._request["uid"], code, message, warnings=self._warnings)
        return self._said(Decision(response, "denied", message))

    def _said(self, decision: Decision) -> Decision:
        return replace(
            decision,
            chain=",".join(self._chains),
            digest=",".join(self._chains.values()),
            steps=tuple(self._steps),
            warnings=tuple(self._warnings),
            undecided=self._undecided,
            known=self._known,
        )

    @property
    def _is_offloaded(self) -> bool:
        return bool(self._obj.get("workflowClosureReference"))

    def _task(self, template: JsonMap, node: Node) -> TaskContext:
        # The execution's project and domain, not those that the template is registered in.
        known = {"version": None, **known_of_template(template), **self._known}
        inputs = {**self._known["inputs"], **bound_inputs(node.spec)}
        return self._tailor.task("launch", **{**known, "node": node.id, "inputs": inputs})

    # tasks and nodes ---------------------------------------------------------------------------

    def _tailored(self) -> JsonMap:
        tasks = self._obj.get("tasks")
        by_task: dict[str, list[Node]] = {}
        for node in task_nodes(self._obj):
            by_task.setdefault(node.task, []).append(node)
        draft = Draft(self._obj)
        for key, nodes in by_task.items():
            template = tasks.get(key) if isinstance(tasks, dict) else None
            if not (isinstance(template, dict) and isinstance(template.get("type"), str)):
                self._warnings.append(f"node {nodes[0].id}: the execution holds no task {key!r}")
                continue
            self._write(draft, key, template, nodes)
        return draft.checkpoint()

    def _write(self, draft: Draft, key: str, template: JsonMap, nodes: list[Node]) -> None:
        """One template for the nodes of a task, or as many as come out different."""
        versions: dict[str, str] = {}  # what one says -> its key; every node may have its own
        for node in nodes:
            pair = self._pair(template, node)
            after = template if _alike(template, pair.template) else pair.template
            said = _said(after)
            own = versions.get(said)
            if own is None:
                own = versions[said] = self._free_key(key, len(versions))
                if after is not template or own != key:
                    draft.put(("tasks", own), after)
            if own != key:
                draft.edit(node.path)["task"] = own
            for name, value in pair.spec.items():
                if value is None:
                    draft.drop((*node.path, name))
                else:
                    draft.put((*node.path, name), value)
            follow(draft, node, template, after)

    def _free_key(self, key: str, number: int) -> str:
        """A key of `tasks` for another version of a template; the engine takes any text."""
        if not number:
            return key
        tasks: JsonMap = self._obj["tasks"]
        names = (f"{key} copy:{count}" for count in itertools.count(number))
        return next(name for name in names if name not in tasks)

    def _pair(self, template: JsonMap, node: Node) -> Pair:
        """What the chain makes of a template at a node."""
        task = self._task(template, node)
        what = f"task {task.task} at node {node.id}: "
        try:
            pair = tailor_pair(self._tailor, template, node.spec, self._kind, task, self._override)
        except DeferError as unknown:
            self._warnings.append(f"{what}`select` needs {unknown.field}, which is not known yet")
            self._note(task, Result(template, template, until="admit", unknown=unknown.field))
            return Pair(template, {})
        except Exception as error:
            denial = explained(error, template, self._kind)
            if denial is None:
                raise
            raise _Denied(denial[0], what + denial[1]) from error
        self._warnings += [what + warning for warning in pair.warnings]
        if pair.chain is not None and pair.result is not None:
            self._chains[pair.chain.name] = pair.chain.digest
            self._warnings += [f"{what}{warning}" for warning in pair.result.warnings]
            self._undecided += pair.result.undecided
            self._steps.update(dict.fromkeys(step.name for _, step, _ in pair.result.versions()))
            self._note(task, pair.result)
        return pair

    # the override ------------------------------------------------------------------------------

    def _note(self, task: TaskContext, result: Result) -> None:
        if self._outcome is not None:
            self._outcome.add(task, result, self._kind)

    def _judge(self) -> None:
        """Refuse an override that does nothing, or say what cannot be where no task is seen.

        One that was judged before has done what it does, or did it in the parent's execution.

        Raises:
            OverrideError: a step of it is for no task, or changes none.
        """
        if self._override is None or self._outcome is None:
            return
        if self._is_offloaded:
            self._warnings += launch_alone(self._override)
        elif self._read(("metadata", "annotations", JUDGED)) != judged(self._obj):
            self._outcome.check()

    # the execution's own metadata --------------------------------------------------------------

    def _marked(self, obj: JsonMap) -> JsonMap:
        """Say which labels and annotations are the execution's, and which override was judged.

        No stamp goes with it.

        What is written here reaches every object, and every child execution.
        """
        draft = Draft(obj)
        keys: dict[MapName, list[str]] = {}
        for name in ("labels", "annotations"):
            found = draft.get(("metadata", name))
            own = [
                key
                for key in (found if isinstance(found, dict) else ())
                if key not in FLYTE_LABELS and not key.startswith(_OURS)
            ]
            if own:
                keys[name] = own
        draft.drop(("metadata", "annotations", STAMP))
        if self._override is None:
            draft.drop(("metadata", "annotations", JUDGED))
        else:
            draft.put(("metadata", "annotations", JUDGED), judged(self._obj))
        if not keys:
            draft.drop(("metadata", "annotations", EXECUTION_KEYS))
        elif draft.get(("metadata", "annotations", EXECUTION_KEYS)) != keys_text(keys):
            draft.edit(("metadata", "annotations"))[EXECUTION_KEYS] = keys_text(keys)
        return draft.checkpoint()


def _alike(one: JsonMap, other: JsonMap) -> bool:
    """Whether two versions of a template are the same but for the way back, which none needs now.

    Where a chain goes on it is still there; where one began anew it is not.
    """
    return same(one, other) or same(_without_way_back(one), _without_way_back(other))


def _said(template: JsonMap) -> str:
    """What a version of a template says but for the way back, as a text."""
    return json.dumps(_without_way_back(template), sort_keys=True, separators=(",", ":"))


def _without_way_back(template: JsonMap) -> JsonMap:
    draft = Draft(template)
    draft.drop(TASK_PLACE)
    if draft.get(TASK_PLACE[:1]) == {}:
        draft.drop(TASK_PLACE[:1])
    return draft.root


class _Denied(Exception):
    """The execution may not come in."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
