"""The table that says where each kind of workload keeps its pods, its queue label, its quirks.

A plugin adds rows with the hook `register_kinds`; only kinds whose operators read something else
than pod templates need a `Kind` with code (`spark`, `task_template`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubetailor.workloads.draft import Json, JsonMap, Key, Path
from kubetailor.workloads.errors import ConflictError, InvalidObjectError
from kubetailor.workloads.metadata import Metadata
from kubetailor.workloads.pod import Pod

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["KINDS", "Kind", "KindTable", "PodPath"]


@dataclass(frozen=True)
class PodPath:
    """Where a kind keeps one pod template, or several.

    Attributes:
        role: what the pods do. ``{key}`` is the lower-cased key of the last ``*`` in `path`, and
            ``{name}`` (or another field) a field of the entry of the last ``[]``.
        path: from the object to the template, such as ``spec.template``; ``*`` is every key of a
            map, ``[]`` after a name every entry of a list. Empty: the object is the pod.
        spec: from the template to the pod spec; empty where the template is one.
        metadata: from the template to the pods' labels; None where the kind has no place for them.
        primary: the names by which the operator knows the container that runs the task.
    """

    role: str
    path: str = ""
    spec: str = "spec"
    metadata: str | None = "metadata"
    primary: tuple[str, ...] = ()

    def templates(self, root: JsonMap) -> Iterator[tuple[Path, str]]:
        """The (path, role) of each template that is there."""
        yield from self._walk(root, (), _keys(self.path), self.role)

    def _walk(
        self, node: Json, path: Path, rest: tuple[str, ...], role: str
    ) -> Iterator[tuple[Path, str]]:
        if not rest:
            if isinstance(node, dict):
                yield path, role
            return
        head, tail = rest[0], rest[1:]
        if head == "*":
            for key, child in node.items() if isinstance(node, dict) else ():
                yield from self._walk(child, (*path, key), tail, role.replace("{key}", key.lower()))
        elif head.endswith("[]"):
            field = head[:-2]
            entries: Json = node.get(field) if isinstance(node, dict) else None
            for index, child in enumerate(entries) if isinstance(entries, list) else ():
                if isinstance(child, dict):
                    named = role
                    for name, value in child.items() if "{" in role else ():
                        if (mark := f"{{{name}}}") in named:
                            named = named.replace(mark, str(value))
                    yield from self._walk(child, (*path, field, index), tail, named)
        elif isinstance(node, dict):
            yield from self._walk(node.get(head), (*path, head), tail, role)


def _keys(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")) if path else ()


_IDENTITY: tuple[Path, ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "generateName"),
    ("metadata", "namespace"),
)


@dataclass(frozen=True)
class Kind:
    """One row: a kind of workload.

    Attributes:
        name: the kind, such as ``PyTorchJob``.
        group: its API group, ``""`` for the core.
        pods: where its pod templates are.
        metadata: the path of the object's own labels and annotations.
        queue: whether Kueue manages such objects, so that its queue label belongs on them
            (https://kueue.sigs.k8s.io/docs/tasks/run/).
        suspend: the path of the field that Kueue suspends it by, if it has one.
    """

    name: str
    group: str
    pods: tuple[PodPath, ...] = ()
    metadata: Path = ("metadata",)
    queue: bool = False
    suspend: Path | None = None

    @property
    def identity(self) -> tuple[Path, ...]:
        """The paths of what makes an object this one and no other; no step may change it."""
        return _IDENTITY

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that its pods may have, for listings; ``{name}`` stands for a name."""
        return tuple(dict.fromkeys(row.role for row in self.pods))

    def find_pods(self, workload: Workload) -> list[Pod]:
        """The pods of a workload of this kind, in the order of the table."""
        found = []
        for row in self.pods:
            for path, role in row.templates(workload.draft.root):
                place: Path | None = None
                if row.metadata is not None:
                    place = (*path, *_keys(row.metadata))
                found.append(
                    Pod(
                        workload,
                        workload.draft,
                        (*path, *_keys(row.spec)),
                        roles=(role,),
                        metadata=workload.metadata_at(workload.draft, place),
                        primary_names=row.primary,
                    )
                )
        return found

    def object_metadata(self, workload: Workload) -> Metadata:
        """The object's own labels and annotations."""
        found = workload.metadata_at(workload.draft, self.metadata)
        assert found is not None
        return found

    def object_kind(self, root: JsonMap) -> str:
        """The Kubernetes kind that `when.kind` sees; a task template becomes one."""
        return self.name

    def object_group(self, root: JsonMap) -> str:
        """The API group that `when.api_group` sees."""
        return self.group

    def settle(self, workload: Workload) -> None:
        """Put in order what a step wrote, before it counts.

        Raises:
            CannotChangeError: the object would not mean what was written.
        """

    def check_change(self, before: JsonMap, after: JsonMap) -> None:
        """Refuse a change that the kind's operator would not read.

        Raises:
            CannotChangeError: it names the field and what is read instead.
        """

    def controls_kueue(self, root: JsonMap) -> bool:
        """Whether Kueue reads a queue label on this object."""
        return self.queue


_TEMPLATE = "spec.template"
_RAY_HEAD, _RAY_WORKER = ("ray-head",), ("ray-worker",)


def _ray(prefix: str) -> tuple[PodPath, ...]:
    return (
        PodPath("head", f"{prefix}.headGroupSpec.template", primary=_RAY_HEAD),
        PodPath("worker:{groupName}", f"{prefix}.workerGroupSpecs[].template", primary=_RAY_WORKER),
    )


def _dask(prefix: str) -> tuple[PodPath, ...]:
    return (
        PodPath("scheduler", f"{prefix}.scheduler", metadata=None, primary=("scheduler",)),
        PodPath("worker", f"{prefix}.worker", metadata=None, primary=("worker",)),
    )


def _kubeflow(name: str, field: str, *containers: str) -> Kind:
    return Kind(
        name,
        "kubeflow.org",
        (PodPath("{key}", f"spec.{field}.*.template", primary=containers),),
        queue=True,
        suspend=("spec", "runPolicy", "suspend"),
    )


def _apps(name: str, *, queue: bool = False) -> Kind:
    return Kind(name, "apps", (PodPath("primary", _TEMPLATE),), queue=queue)


KINDS: tuple[Kind, ...] = (
    Kind("Pod", "", (PodPath("primary"),), queue=True),
    Kind("PodTemplate", "", (PodPath("primary", "template"),)),
    _apps("Deployment", queue=True),
    _apps("StatefulSet", queue=True),
    _apps("DaemonSet"),
    _apps("ReplicaSet"),
    Kind("CronJob", "batch", (PodPath("primary", "spec.jobTemplate.spec.template"),)),
    Kind("Job", "batch", (PodPath("primary", _TEMPLATE),), queue=True, suspend=("spec", "suspend")),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
    _kubeflow("TFJob", "tfReplicaSpecs", "tensorflow"),
    _kubeflow("MPIJob", "mpiReplicaSpecs", "mpi"),
    Kind(
        "RayJob",
        "ray.io",
        (
            *_ray("spec.rayClusterSpec"),
            PodPath("submitter", "spec.submitterPodTemplate", primary=("ray-job-submitter",)),
        ),
        queue=True,
        suspend=("spec", "suspend"),
    ),
    Kind("RayCluster", "ray.io", _ray("spec"), queue=True, suspend=("spec", "suspend")),
    Kind("RayService", "ray.io", _ray("spec.rayClusterConfig"), queue=True),
    Kind(
        "DaskJob",
        "kubernetes.dask.org",
        (
            PodPath("job-runner", "spec.job", metadata=None, primary=("job",)),
            *_dask("spec.cluster.spec"),
        ),
    ),
    Kind("DaskCluster", "kubernetes.dask.org", _dask("spec")),
    Kind(
        "JobSet",
        "jobset.x-k8s.io",
        (PodPath("{name}", "spec.replicatedJobs[].template.spec.template"),),
        queue=True,
        suspend=("spec", "suspend"),
    ),
)
"""The rows that need no code."""


class KindTable(Mapping[tuple[str, str], Kind]):
    """The kinds that are known, by (API group, kind)."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._rows: dict[tuple[str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def __getitem__(self, key: tuple[str, str]) -> Kind:
        return self._rows[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, kind: Kind) -> None:
        """Add a row.

        Raises:
            ConflictError: another row has the same group and kind.
        """
        key = (kind.group, kind.name)
        if self._rows.get(key, kind) != kind:
            raise ConflictError(f"the kind {kind.name} of group {kind.group!r} is there already")
        self._rows[key] = kind

    def of(self, obj: JsonMap) -> Kind | None:
        """The row of an object, or None.

        Raises:
            InvalidObjectError: it is neither a Kubernetes object nor a Flyte TaskTemplate.
        """
        kind, version = obj.get("kind"), obj.get("apiVersion")
        if kind is None and version is None and is_task_template(obj):
            return self._rows.get(("flyte", "TaskTemplate"))
        if not isinstance(kind, str) or not isinstance(version, str) or not kind:
            raise InvalidObjectError("an object needs `apiVersion` and `kind`, both strings")
        group = version.rpartition("/")[0]
        return self._rows.get((group, kind))

    def is_child(self, metadata: Any) -> bool:
        """Whether an object's controller is itself a workload of this table.

        https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
        """
        owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
        for owner in owners if isinstance(owners, list) else ():
            if isinstance(owner, dict) and owner.get("controller"):
                group = str(owner.get("apiVersion", "")).rpartition("/")[0]
                return (group, str(owner.get("kind"))) in self._rows
        return False


def is_task_template(obj: JsonMap) -> bool:
    """Whether an object is a flyteidl.core.TaskTemplate in protobuf's JSON form."""
    targets: tuple[Key, ...] = ("container", "k8sPod", "custom", "interface", "metadata")
    return isinstance(obj.get("type"), str) and any(target in obj for target in targets)
