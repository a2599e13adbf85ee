"""One object under change: its own metadata, its pods, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from kubetailor.workloads.diff import apply_ops, diff
from kubetailor.workloads.draft import (
    Draft,
    Json,
    JsonMap,
    Key,
    Path,
    deep_copy,
    dotted,
    same,
    value_at,
)
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.kinds import Kind
from kubetailor.workloads.merge import merge
from kubetailor.workloads.metadata import Metadata
from kubetailor.workloads.pod import Pod
from kubetailor.workloads.task_template import GPU_ALIAS, TaskTemplateKind

__all__ = ["Note", "Workload"]


class Note(NamedTuple):
    """Something that the user should know; `field` is a path in the object, or empty."""

    text: str
    field: str


class Converted(Protocol):
    """A pod that the object holds in another form, edited in a draft of its own."""

    draft: Draft

    def write_back(self, draft: Draft) -> None:
        """Put what changed into the object."""
        ...


class Workload:
    """A Kubernetes object or a Flyte TaskTemplate. Reads give copies; verbs change it.

    Attributes:
        kind: its row in the kinds table.
        draft: the object under change.
        committed: the object as it was when the last step was done.
        notes: what verbs noticed since the host last took them.
        writer: who is writing now: (layer, step name, which of the steps of that name).
        is_child: whether its controller is a workload too.
        is_task_template: whether this is a Flyte TaskTemplate, not a Kubernetes object.
        resource_aliases: resource name -> another name that means the same here.
    """

    __slots__ = (
        "_metadata",
        "_pods",
        "_writers",
        "committed",
        "converted",
        "draft",
        "is_child",
        "is_task_template",
        "kind",
        "notes",
        "resource_aliases",
        "writer",
    )

    def __init__(self, obj: JsonMap, kind: Kind, *, is_child: bool = False) -> None:
        """A workload over an object, which is never changed itself.

        Args:
            obj: the object, JSON data.
            kind: its row.
            is_child: whether its controller is a workload of the table.
        """
        self.kind: Kind = kind
        self.draft: Draft = Draft(obj)
        self.committed: JsonMap = obj
        self.notes: list[Note] = []
        self.converted: list[Converted] = []
        self.writer: tuple[str, str, int] = ("", "", 0)
        self.is_child: bool = is_child
        self.is_task_template: bool = isinstance(kind, TaskTemplateKind)
        self.resource_aliases: Mapping[str, str] = GPU_ALIAS if self.is_task_template else {}
        self._pods: tuple[Pod, ...] | None = None
        self._metadata: Metadata | None = None
        self._writers: dict[Path, tuple[tuple[str, str, int], Json]] = {}

    def __repr__(self) -> str:
        return f"Workload({self.kind_name} {self.name})"

    # what it is --------------------------------------------------------------------------------

    @property
    def kind_name(self) -> str:
        """The Kubernetes kind; of a task template, the kind that Flyte makes of it."""
        return self.kind.object_kind(self.draft.root)

    @property
    def api_group(self) -> str:
        """The API group of that kind, ``""`` for the core."""
        return self.kind.object_group(self.draft.root)

    @property
    def name(self) -> str:
        """Its name, or its `generateName`, or ``""``."""
        if self.is_task_template:
            return str(self.draft.get(("id", "name")) or "")
        metadata = self.draft.get(("metadata",))
        if not isinstance(metadata, dict):
            return ""
        return str(metadata.get("name") or metadata.get("generateName") or "")

    @property
    def title(self) -> str:
        """What messages call it: ``PyTorchJob train``, or ``task pipelines.train.fit``."""
        return f"{'task' if self.is_task_template else self.kind_name} {self.name}".strip()

    @property
    def namespace(self) -> str | None:
        """Its namespace, if it says one."""
        found = self.draft.get(("metadata", "namespace"))
        return found if isinstance(found, str) and not self.is_task_template else None

    @property
    def primary_container_name(self) -> str | None:
        """The name that a task template's `config` gives to its primary container."""
        if not self.is_task_template:
            return None
        config = self.draft.root.get("config")
        return config.get("primary_container_name") if isinstance(config, dict) else None

    @property
    def queue_owner(self) -> Metadata | None:
        """The labels and annotations among which Kueue looks for the queue.

        They are this object's own, or those of what it makes (a CronJob's Jobs, the pods of an
        Argo Workflow). None where Kueue does not manage the kind, or where a parent of this object
        carries the queue.
        """
        return None if self.is_child else self.kind.queue_metadata(self)

    # pods --------------------------------------------------------------------------------------

    def pods(self, role: str | None = None) -> tuple[Pod, ...]:
        """Its pods, or those of a role (``worker`` is also every ``worker:<group>``)."""
        if self._pods is None:
            self._forget_converted()
            self._pods = tuple(self.kind.find_pods(self))
        if role is None:
            return self._pods
        return tuple(pod for pod in self._pods if any(has_role(r, role) for r in pod.roles))

    def forget_pods(self) -> None:
        """Find its pods anew: they are elsewhere now, and where they were in earlier versions."""
        self._pods = None

    # labels and annotations --------------------------------------------------------------------

    def metadata_at(
        self, draft: Draft, path: Path | None, *, below: tuple[Path, ...] = ()
    ) -> Metadata | None:
        """A view of labels and annotations at a path of the object."""
        if path is None:
            return None
        return Metadata(draft, path, self.note_write, below=below, flyte=True)

    @property
    def metadata(self) -> Metadata:
        """The object's own labels and annotations."""
        if self._metadata is None:
            self._metadata = self.kind.object_metadata(self)
        return self._metadata

    @property
    def labels(self) -> dict[str, str]:
        """The object's own labels, as a copy."""
        return dict(self.metadata.get("labels"))

    @property
    def annotations(self) -> dict[str, str]:
        """The object's own annotations, as a copy."""
        return dict(self.metadata.get("annotations"))

    def label(self, key: str, value: str) -> None:
        """Label the object itself, not its pods."""
        self.metadata.set("labels", key, value)

    def unlabel(self, key: str) -> None:
        """Remove a label of the object, if it is there."""
        self.metadata.remove("labels", key)

    def annotate(self, key: str, value: str) -> None:
        """Annotate the object itself, not its pods."""
        self.metadata.set("annotations", key, value)

    def unannotate(self, key: str) -> None:
        """Remove an annotation of the object, if it is there."""
        self.metadata.remove("annotations", key)

    # all else ----------------------------------------------------------------------------------

    def get(self, *path: Key) -> Json:
        """What the object holds at `path`, as a copy; None if nothing."""
        return deep_copy(self.draft.get(path))

    def edit(self, *path: Key, empty: type[dict[Any, Any]] | type[list[Any]] = dict) -> Any:
        """The dict or list at `path`, to be changed in place, for what no verb does.

        Missing parents are made.
        """
        self.commit()
        self._pods = None
        return self.draft.edit_deep(path, empty)

    def merge(self, patch: JsonMap, *, replace: bool = False) -> None:
        """Lay a patch over the whole object, lists by identity; null deletes."""
        self.commit()
        merge(self.draft, (), patch, replace=replace)
        self._pods = None

    def replace(self, obj: JsonMap) -> None:
        """Put another version of the whole object in its place; what is equal stays shared."""
        root = self.commit()
        self.draft.reset(apply_ops(root, diff(root, obj)))
        self._pods = None
        self._metadata = None

    def warn(self, text: str, field: str = "") -> None:
        """Say something to the user: it is printed by hosts and returned by admission."""
        self.notes.append(Note(text, field))

    def note_write(self, place: Path, key: Path, new: Json, old: Json) -> None:
        """Remember who wrote a scalar; two steps of one layer that differ are told to the user."""
        path = place + key
        layer, step, _ = self.writer
        writer, written = self._writers.get(path, (self.writer, None))
        # What is there now may be another's, where the earlier step was taken back.
        if writer[0] == layer and writer != self.writer and old == written and old != new:
            self.warn(
                f"{key[-1]}: step {step!r} sets {_shown(new)}, where {writer[1]!r} set "
                f"{_shown(old)}; the later one wins",
                dotted(path),
            )
        self._writers[path] = (self.writer, new)

    def commit(self) -> JsonMap:
        """Close this version of the object, converted pods included, and return it."""
        for pod in tuple(self.converted):  # one that becomes a pod target leaves the list
            pod.write_back(self.draft)
        if self.draft.root is not self.committed:
            self.kind.settle(self)
        root = self.draft.checkpoint()
        if root is not self.committed:
            self._check_identity(self.committed, root)
            self.kind.check_change(self.committed, root)
            self.committed = root
        return root

    def _check_identity(self, before: JsonMap, after: JsonMap) -> None:
        for root, paths in _by_root(self.kind.identity):
            was, found = before.get(root), after.get(root)
            if was is found:
                continue
            for path in paths:
                old, new = value_at(was, path[1:]), value_at(found, path[1:])
                if old is not new and not same(old, new):
                    raise InvalidObjectError(
                        f"a step may not change what the object is: {dotted(path)} was "
                        f"{_shown(old)} and would be {_shown(new)}",
                        field=dotted(path),
                    )

    def reset(self, root: JsonMap, views: tuple[Pod, ...] | None = None) -> None:
        """Go to another version of the object.

        Args:
            root: the version.
            views: its pods, if they were asked for when it was the current one. They are places,
                and still right if nothing was done since to the object as a whole.
        """
        self.draft.reset(root)
        self.committed = root
        if views is None or self._pods is not views or self.converted:
            self.release()

    def release(self) -> None:
        """Let go of its views, which refer to it: nothing waits for the garbage collector."""
        self._forget_converted()
        self._pods = None
        self._metadata = None

    def _forget_converted(self) -> None:
        for pod in self.converted:
            pod.draft.close()
        self.converted = []


@lru_cache(maxsize=64)
def _by_root(paths: tuple[Path, ...]) -> tuple[tuple[str, tuple[Path, ...]], ...]:
    """Paths by their first key."""
    roots = dict.fromkeys(str(path[0]) for path in paths)
    return tuple((root, tuple(path for path in paths if path[0] == root)) for root in roots)


def has_role(role: str, wanted: str) -> bool:
    """Whether a pod's role is the wanted one: ``worker:gpu`` is a ``worker`` too."""
    return role == wanted or role.startswith(wanted + ":")


def _shown(value: Json) -> str:
    return repr(value.get("value", value) if isinstance(value, dict) else value)
