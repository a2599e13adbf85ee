"""A workload whose controller is one too: a pod of a PyTorchJob, a RayCluster of a RayJob.

What belongs on the root alone must not be written on it. So the chain sees a copy of its metadata
as the object's own, which is thrown away, and only what it does to the pods is kept; and it runs
without the steps that choose a queue, or an accelerator that the queue has chosen already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kubetailor.plugins.execution.object_marks import places
from kubetailor.registry import Chain, Change, Result
from kubetailor.workloads import Draft, JsonMap, Kind, Workload

__all__ = ["ChildView"]

_BESIDE: Final = "objectMetadata"
_KUEUE: Final = "kueue.x-k8s.io/"
QUEUE_LABELS: Final = frozenset({f"{_KUEUE}queue-name", f"{_KUEUE}priority-class"})


class ChildView:
    """How a chain sees a child.

    Attributes:
        obj: the object, with its own metadata beside it.
        kind: the row that looks for the object's metadata there.
        chain: the chain without the steps that are the root's.
    """

    def __init__(self, obj: JsonMap, kind: Kind, chain: Chain) -> None:
        self._obj = obj
        self._kind = kind
        self.obj: JsonMap = {**obj, _BESIDE: _copied(obj.get("metadata"))}
        self.kind: Kind = replace(kind, metadata=(_BESIDE,))
        queued = any(step.transformer.options.queue for step in chain.steps)
        queued = queued or _is_queued(Workload(obj, kind))
        steps = tuple(
            step
            for step in chain.steps
            if not step.transformer.options.queue
            and not (queued and step.transformer.options.accelerator)
        )
        self.chain: Chain = replace(chain, steps=steps)

    def kept(self, result: Result) -> list[Change]:
        """The changes of a run that are not of the copy, which is thrown away."""
        return [change for change in result.changes() if not change.field.startswith(_BESIDE)]

    def steps(self, result: Result) -> Iterator[str]:
        """The steps of a run that changed something other than the copy."""
        for before, step, after in result.versions():
            if any(
                before.get(key) is not after.get(key)
                for key in {**before, **after}
                if key != _BESIDE
            ):
                yield step.name

    def written(self, after: JsonMap) -> JsonMap:
        """What is kept of a run's result."""
        kept = {key: value for key, value in after.items() if key != _BESIDE}
        workload = Workload(kept, self._kind)
        for now, was in zip(workload.pods(), Workload(self._obj, self._kind).pods(), strict=True):
            for key in QUEUE_LABELS & (now.labels.keys() | was.labels.keys()):
                if key in was.labels:
                    now.label(key, was.labels[key])
                else:
                    now.unlabel(key)
        draft = Draft(workload.commit())
        if (suspend := self._kind.suspend) is not None:
            was_suspended = Draft(self._obj).get(suspend)
            if was_suspended is None:
                draft.drop(suspend)
            elif draft.get(suspend) is not was_suspended:
                draft.put(suspend, was_suspended)
        return draft.checkpoint()


def _copied(metadata: Any) -> Any:
    """A copy whose labels and annotations are all texts: the API server is to judge of others."""
    if not isinstance(metadata, dict):
        return metadata
    names = ("labels", "annotations")
    maps = {name: metadata[name] for name in names if isinstance(metadata.get(name), dict)}
    texts = {
        name: {key: value for key, value in entries.items() if isinstance(value, str)}
        for name, entries in maps.items()
    }
    return {**metadata, **texts}


def _is_queued(workload: Workload) -> bool:
    """Whether Kueue has marked it: on what it starts it puts `kueue.x-k8s.io/podset` and the like.

    kubernetes-sigs/kueue, pkg/controller/jobframework/reconciler.go, getPodSetsInfoFromStatus.
    """
    return any(
        key.startswith(_KUEUE)
        for place in places(workload)
        for entries in (place.labels, place.annotations)
        for key in entries
    )
