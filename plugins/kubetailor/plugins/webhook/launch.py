"""The phase `launch`: one execution on its way in, its task templates and nodes.

The chain runs once for each pair of task template and node. Where the nodes of one task come out
different, the template is copied under a key of its own, its inner `id` unchanged, and the node's
`task` names the copy. What is tailored here is what an author wrote: what an older chain made of it
is undone first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubetailor.plugins.flyte.stamp import STAMP, stamp_of
from kubetailor.plugins.flyte.stamp import stamped as stamped_template
from kubetailor.plugins.flyte.undo import undo
from kubetailor.plugins.webhook.decision import Decision, explained
from kubetailor.plugins.webhook.engine import Node, follow, task_nodes
from kubetailor.plugins.webhook.identity import FLYTE_GROUP, known_of_execution
from kubetailor.plugins.webhook.marks import EXECUTION_KEYS, keys_text, read_stamp
from kubetailor.plugins.webhook.reviews import AdmissionRequest, allowed, denied
from kubetailor.registry import Chain, DeferError, Result, TaskContext
from kubetailor.registry.context import known_of_template
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft, JsonMap, Workload, json_patch, same
from kubetailor.workloads.metadata import FLYTE_LABELS, MapName

__all__ = ["Launch", "is_execution"]

_OURS: Final = "kubetailor.dev/"
_OVERRIDE: Final = f"{_OURS}override"
_TEMPLATE: Final = ("flyte", "TaskTemplate")
_STAMP_PLACE: Final = ("metadata", "metadata", "annotations", STAMP)


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

    def decision(self) -> Decision:
        """Tailor every task of the execution, and say what came out."""
        try:
            self._refuse_override()
            after = self._marked(self._tailored())
        except _Denied as error:
            message = f"kubetailor: {error}"
            response = denied(self._request["uid"], error.code, message)
            return self._said(Decision(response, "denied", message))
        patch = json_patch(self._obj, after)
        audit = {"chain": ",".join(self._chains), "digest": ",".join(self._chains.values())}
        response = allowed(
            self._request["uid"],
            patch=patch,
            warnings=self._warnings,
            audit={**audit, "steps": ",".join(self._steps)},
        )
        offloaded = bool(self._obj.get("workflowClosureReference"))
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

    def _refuse_override(self) -> None:
        """An override that is not applied must not be taken for one that is."""
        if self._read(("metadata", "annotations", _OVERRIDE)) is not None:
            raise _Denied(
                422,
                f"metadata.annotations: {_OVERRIDE} asks for an override, and this version of the "
                "webhook applies none",
            )

    def _task(self, template: JsonMap, node: Node) -> TaskContext:
        # The execution's project and domain, not those that the template is registered in.
        known = {"version": None, **known_of_template(template), **self._known}
        return self._tailor.task("launch", **{**known, "node": node.id})

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
        versions: list[tuple[str, JsonMap]] = []
        for node in nodes:
            after = self._pair(template, node)
            own = next((name for name, other in versions if same(other, after)), None)
            if own is None:
                own = f"{key} copy:{len(versions)}" if versions else key
                versions.append((own, after))
                if after is not template:
                    draft.put(("tasks", own), after)
                elif versions[1:]:
                    draft.put(("tasks", own), template)
            if own != key:
                draft.edit(node.path)["task"] = own
            follow(draft, node, template, after, self._kind)

    def _pair(self, template: JsonMap, node: Node) -> JsonMap:
        """The template as a node is to have it."""
        task = self._task(template, node)
        what = f"task {task.task} at node {node.id}: "
        try:
            return self._after(template, node, task, what)
        except DeferError as unknown:
            self._warnings.append(f"{what}`select` needs {unknown.field}, which is not known yet")
            return template
        except Exception as error:
            denial = explained(error, template, self._kind)
            if denial is None:
                raise
            raise _Denied(denial[0], what + denial[1]) from error

    def _after(self, template: JsonMap, node: Node, task: TaskContext, what: str) -> JsonMap:
        chain = self._tailor.chain_of(task, Workload(template, self._kind))
        stamp = read_stamp(Draft(template).get(_STAMP_PLACE))
        author, start = template, 0
        if stamp is not None and chain is not None and stamp.digest == chain.digest:
            start = stamp.done
        else:
            author, undone = undo(template)
            self._warnings += [what + warning for warning in undone]
        if chain is None or node.has_pod_template:
            # A node's own pod is written by its author, and tailored when it is made.
            return author
        self._chains[chain.name] = chain.digest
        result = chain.run(author, self._kind, task, start=start)
        return self._stamped(result, chain, task, author, what)

    def _stamped(
        self, result: Result, chain: Chain, task: TaskContext, author: JsonMap, what: str
    ) -> JsonMap:
        self._warnings += [f"{what}{warning}" for warning in result.warnings]
        self._undecided += result.undecided
        self._steps.update(dict.fromkeys(step.name for _, step, _ in result.versions()))
        if result.until is None and same(author, result.after):
            return author
        text = stamp_of(result, chain, task.task, task.version)
        return stamped_template(result.after, text)

    # the execution's own metadata --------------------------------------------------------------

    def _marked(self, obj: JsonMap) -> JsonMap:
        """Say which labels and annotations are the execution's, and let no stamp go with it.

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
        if not keys:
            draft.drop(("metadata", "annotations", EXECUTION_KEYS))
        elif draft.get(("metadata", "annotations", EXECUTION_KEYS)) != keys_text(keys):
            draft.edit(("metadata", "annotations"))[EXECUTION_KEYS] = keys_text(keys)
        return draft.checkpoint()


class _Denied(Exception):
    """The execution may not come in."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
