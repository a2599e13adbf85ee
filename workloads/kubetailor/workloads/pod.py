"""A view of one pod template inside a workload. Its verbs carry the merge rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kubetailor.workloads.affinity import add_requirement, put_terms, remove_requirement, terms_of
from kubetailor.workloads.container import Container, missing_container, several_containers
from kubetailor.workloads.draft import Draft, Json, JsonMap, Key, Path, deep_copy, dotted, same
from kubetailor.workloads.errors import CannotChangeError, InvalidObjectError
from kubetailor.workloads.filled import is_filled_toleration
from kubetailor.workloads.merge import merge
from kubetailor.workloads.metadata import Metadata
from kubetailor.workloads.named import (
    CONTAINERS,
    add_container,
    add_volume,
    has_container,
    remove_container,
    remove_volume,
)
from kubetailor.workloads.names import check_key, check_label_value, check_name
from kubetailor.workloads.primary import PRIMARY_ANNOTATIONS, primary_of
from kubetailor.workloads.quantity import amount_in, is_positive, resource_names_in
from kubetailor.workloads.spread import add_constraint, remove_constraints
from kubetailor.workloads.tolerations import (
    find_toleration,
    put_toleration,
    remove_tolerations,
    set_tolerations,
    toleration_of,
)

if TYPE_CHECKING:
    from kubetailor.workloads.workload import Workload

__all__ = ["Pod"]


class Pod:
    """One pod template of a workload. Reads give copies; verbs change the workload.

    Attributes:
        workload: the workload that it is in.
        roles: what its pods do there, such as ``("worker",)``; one pod spec may serve several.
        base: the pod over which the engine lays this one, or None.
        is_replica: only image and resources are known of it (a replica in a Flyte task's `custom`).
    """

    __slots__ = (
        "_draft",
        "_metadata",
        "_path",
        "_place",
        "_primary_names",
        "base",
        "is_replica",
        "roles",
        "workload",
    )

    def __init__(
        self,
        workload: Workload,
        draft: Draft,
        path: Path,
        *,
        roles: tuple[str, ...],
        metadata: Metadata | None,
        primary_names: tuple[str, ...] = (),
        base: Pod | None = None,
        is_replica: bool = False,
        place: Path | None = None,
    ) -> None:
        """A pod.

        Args:
            workload: the workload.
            draft: where the pod spec is edited: the workload's, or its own for a converted one.
            path: where the pod spec is in the draft.
            roles: the roles that it serves.
            metadata: its labels and annotations; None where the kind has none.
            primary_names: names by which its kind knows the primary container.
            base: the pod over which the engine lays this one: what is there holds here too.
            is_replica: only image and resources are known of it.
            place: which part of the object is about it, where the draft is the pod's own.
        """
        self.workload: Workload = workload
        self.roles: tuple[str, ...] = roles
        self.base: Pod | None = base
        self.is_replica: bool = is_replica
        self._draft = draft
        self._path = path
        self._place = place
        self._metadata = metadata
        self._primary_names = primary_names

    def __repr__(self) -> str:
        return f"Pod({'/'.join(self.roles)} of {self.workload!r})"

    def move(self, draft: Draft, path: Path, metadata: Metadata | None) -> None:
        """Follow the pod spec to another place in the object."""
        self._draft, self._path, self._metadata, self._place = draft, path, metadata, None

    def serving(self, role: str) -> Pod:
        """This pod as one of its roles alone sees it."""
        return Pod(
            self.workload,
            self._draft,
            self._path,
            roles=(role,),
            metadata=self._metadata,
            primary_names=self._primary_names,
            base=self.base,
            is_replica=self.is_replica,
            place=self._place,
        )

    @property
    def role(self) -> str:
        """The role, or the roles joined by "/"."""
        return "/".join(self.roles)

    def get(self, *path: Key) -> Json:
        """What the pod spec holds at `path`, as a copy; None if nothing."""
        return deep_copy(self._draft.get(self._path + path))

    def peek(self, *path: Key) -> Json:
        """As `get`, but shared, not to be changed: for reads on the hot path."""
        return self._draft.get(self._path + path)

    def where(self, *path: Key) -> str:
        """The path of a field of the pod spec, for messages."""
        return dotted(self.placed(self._path + path))

    def placed(self, path: Path) -> Path:
        """A path of the draft as one of the object, by which pods of one object are told apart."""
        return path if self._place is None else (*self._place, *path[len(self._path) :])

    def note_write(self, place: Path, key: Path, new: Json, old: Json) -> None:
        """As `Workload.note_write`, with a place in the draft."""
        self.workload.note_write(self.placed(place), key, new, old)

    def edit(self, *path: Key, empty: type[dict[Any, Any]] | type[list[Any]] = dict) -> Any:
        """The dict or list at `path` within the pod spec, to be changed in place.

        Missing parents are made. For what no verb does.
        """
        return self._draft.edit_deep(self._path + path, empty)

    def merge(self, patch: JsonMap, *, replace: bool = False) -> None:
        """Lay a patch over the pod spec, lists by identity; null deletes.

        Raises:
            ConflictError: an entry of the same name has other content, and not `replace`.
            CannotChangeError: it names a container that is not there.
        """
        merge(self._draft, self._path, patch, replace=replace)

    def replace(self, spec: JsonMap) -> None:
        """Put another pod spec in the place of this one."""
        if spec is not self.peek():
            self._draft.put(self._path, spec)

    def _entries(self, field: str) -> list[Any]:
        found = self._draft.get((*self._path, field))
        return found if isinstance(found, list) else []

    # containers --------------------------------------------------------------------------------

    @property
    def containers(self) -> tuple[Container, ...]:
        """The containers, without init containers."""
        return tuple([self._container(*found) for found in self._named_containers()])

    def _named_containers(self) -> list[tuple[str, int]]:
        return [
            (str(entry.get("name", "")), index)
            for index, entry in enumerate(self._entries("containers"))
            if type(entry) is dict
        ]

    def _container(self, name: str, index: int) -> Container:
        return Container(self, self._draft, (*self._path, "containers", index), name)

    def container(self, name: str) -> Container:
        """The container, or init container, of a name.

        Raises:
            CannotChangeError: there is none, or there are several.
        """
        names = []
        found: list[Path] = []
        for field in ("containers", "initContainers"):
            for index, entry in enumerate(self._entries(field)):
                if isinstance(entry, dict):
                    if entry.get("name") == name:
                        found.append((*self._path, field, index))
                    names.append(str(entry.get("name")))
        if not found:
            raise missing_container(self, name, names)
        if len(found) > 1:
            raise several_containers(self, name, len(found))
        return Container(self, self._draft, found[0], name)

    @property
    def every_container(self) -> tuple[Container, ...]:
        """The containers, the init containers and the ephemeral ones."""
        return tuple(
            Container(self, self._draft, (*self._path, field, index), str(entry.get("name", "")))
            for field in CONTAINERS
            for index, entry in enumerate(self._entries(field))
            if isinstance(entry, dict)
        )

    def add_container(
        self, container: Mapping[str, Any], *, init: bool = False, replace: bool = False
    ) -> None:
        """Add a container, or an init container, after those that are there.

        One that is there with all that is given is left alone: an engine may have added to it.

        Args:
            container: as Kubernetes writes it.
            init: add an init container; with ``restartPolicy: Always`` that is a native sidecar
                (https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/).
            replace: put it in place of another container of the name.

        Raises:
            ConflictError: one of the name has other content, and not `replace`.
        """
        entry = deep_copy(dict(container))
        check_name(entry.get("name"), "container")
        field = "initContainers" if init else "containers"
        if self.base is None or not has_container(self.base._draft, self.base._path, field, entry):
            there = self._has_container(entry["name"])
            add_container(self._draft, self._path, field, entry, replace=replace)
            if not there:
                self._note_container(entry["name"], entry["name"], None)

    def remove_container(self, name: str) -> None:
        """Remove every container and init container of a name; an emptied list goes.

        Raises:
            CannotChangeError: there is no other container.
        """
        there = self._has_container(name)
        remove_container(self._draft, self._path, name)
        if there:
            self._note_container(name, None, name)

    def _has_container(self, name: str) -> bool:
        return any(container.name == name for container in self.every_container)

    def _note_container(self, name: str, new: str | None, old: str | None) -> None:
        """One that a step takes off and another adds is written anew each time, over what came.

        It would lose what an engine, or the API server, has added to it since.
        """
        self.note_write((*self._path, "containers"), (name,), new, old)

    @property
    def primary(self) -> Container:
        """The container that runs the task.

        It is the one that the task or the kind names (Flyte's `primary_container_name`,
        Kubeflow's ``pytorch``, Ray's ``ray-head`` …), else the only one that is no known sidecar.

        Raises:
            CannotChangeError: there is none, or it cannot be told.
        """
        containers = self._named_containers()
        found = primary_of(containers, self._primary_candidates)
        if found is None:
            names = ", ".join(name for name, _ in containers)
            text = f"which is the primary container of {names}? Name it with the step's "
            text += "`container`, or set primary_container_name on the task"
            raise CannotChangeError(
                text if containers else f"the {self.role} has no container of its own",
                field=self.where("containers"),
            )
        alike = [name for name, _ in containers].count(found[0])
        if alike > 1:
            raise several_containers(self, found[0], alike)
        return self._container(*found)

    def _primary_candidates(self) -> list[Any]:
        annotations = self._metadata.get("annotations") if self._metadata else {}
        named = [annotations.get(key) for key in PRIMARY_ANNOTATIONS]
        return [self.workload.primary_container_name, *named, *self._primary_names]

    def set_env(
        self, name: str, value: str | None = None, *, value_from: JsonMap | None = None
    ) -> None:
        """Set an environment variable of the primary container; see `Container.set_env`."""
        self.primary.set_env(name, value, value_from=value_from)

    def remove_env(self, name: str) -> None:
        """Remove an environment variable of the primary container, if it is there."""
        self.primary.remove_env(name)

    def mount(
        self,
        volume: str,
        path: str,
        *,
        read_only: bool | None = None,
        sub_path: str | None = None,
        replace: bool = False,
    ) -> None:
        """Mount a volume in the primary container; see `Container.mount`."""
        self.primary.mount(volume, path, read_only=read_only, sub_path=sub_path, replace=replace)

    def unmount(self, path: str) -> None:
        """Remove what is mounted at a path of the primary container, if anything."""
        self.primary.unmount(path)

    def set_resources(
        self,
        requests: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        *,
        raise_limits: bool = False,
    ) -> None:
        """Set requests and limits of the primary container; see `Container.set_resources`."""
        self.primary.set_resources(requests, limits, raise_limits=raise_limits)

    def requests(self, resource: str) -> bool:
        """Whether any container asks for more than 0 of a resource."""
        alias = self.workload.resource_aliases.get(resource)
        for entry in self._entries("containers"):
            if type(entry) is dict:
                amount = amount_in(entry.get("resources"), resource, alias)
                if amount is not None and is_positive(amount):
                    return True
        return False

    @property
    def resource_names(self) -> set[str]:
        """The full names of the resources that its containers have a request or a limit of."""
        aliases = self.workload.resource_aliases
        found: set[str] = set()
        for entry in self._entries("containers"):
            if type(entry) is dict:
                found |= resource_names_in(entry.get("resources"), aliases)
        return found

    # tolerations -------------------------------------------------------------------------------

    @property
    def tolerations(self) -> list[JsonMap]:
        """The tolerations, as copies."""
        return [deep_copy(entry) for entry in self._entries("tolerations")]

    def tolerate(
        self,
        key: str | None = None,
        *,
        operator: str | None = None,
        value: str | None = None,
        effect: str | None = None,
        toleration_seconds: int | None = None,
    ) -> None:
        """Add a toleration, unless one with the same key, operator, value and effect is there.

        Without `operator` it is `Equal` where a value is given, else `Exists`.
        https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
        """
        self.add_toleration(toleration_of(key, operator, value, effect, toleration_seconds))

    def add_toleration(self, toleration: Mapping[str, Any]) -> None:
        """As `tolerate`, with the toleration as Kubernetes writes it."""
        there = self._find_toleration(toleration)
        if there is not None:
            if there.get("tolerationSeconds") == toleration.get("tolerationSeconds"):
                return
            if self.workload.is_task_template or not is_filled_toleration(there):
                self.workload.warn(
                    f"the toleration of {toleration.get('key')!r} is there with tolerationSeconds "
                    f"{there.get('tolerationSeconds')}; it is kept",
                    self.where("tolerations"),
                )
                return
        put_toleration(self._draft, self._path, toleration)

    def _find_toleration(self, wanted: Mapping[str, Any]) -> Mapping[str, Any] | None:
        found = find_toleration(self._draft, self._path, wanted)
        return self.base._find_toleration(wanted) if found is None and self.base else found

    def untolerate(
        self,
        key: str | None = None,
        *,
        operator: str | None = None,
        value: str | None = None,
        effect: str | None = None,
    ) -> None:
        """Remove the tolerations that agree in all that is given; an emptied list goes."""
        given = {"key": key, "operator": operator, "value": value, "effect": effect}
        remove_tolerations(self._draft, self._path, given)

    def set_tolerations(self, tolerations: Iterable[Mapping[str, Any]]) -> None:
        """Let these be the tolerations, in this order; none at all takes the list off."""
        set_tolerations(self._draft, self._path, tolerations)

    # node selector and affinity ----------------------------------------------------------------

    @property
    def node_selector(self) -> dict[str, str]:
        """The node selector, as a copy."""
        return dict(self.peek("nodeSelector") or {})

    def select_node(self, key: str, value: str) -> None:
        """Require a node label; another value for the key is replaced."""
        there = self._effective_selector(key)
        if there == value:
            return
        try:
            check_key(key)
            check_label_value(key, value)
        except InvalidObjectError as error:
            raise InvalidObjectError(str(error), field=self.where("nodeSelector")) from None
        self.note_write((*self._path, "nodeSelector"), (key,), value, there)
        self._draft.edit((*self._path, "nodeSelector"))[key] = value

    def _effective_selector(self, key: str) -> Any:
        selector = self.peek("nodeSelector")
        if isinstance(selector, dict) and key in selector:
            return selector[key]
        return self.base._effective_selector(key) if self.base else None

    def deselect_node(self, key: str) -> None:
        """Remove a node label from the selector, if it is there; an emptied selector goes."""
        path = (*self._path, "nodeSelector")
        if key in (self._draft.get(path) or {}):
            selector = self._draft.edit(path)
            del selector[key]
            if not selector:
                self._draft.drop(path)

    def require_node(self, key: str, operator: str, values: Iterable[str] = ()) -> None:
        """Require nodes by an expression, in every term of the required node affinity.

        Terms are ORed, so an expression that stands in one of them alone requires nothing
        (https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity).
        Of the same key and operator, the values are replaced.

        Args:
            key: the node label.
            operator: In, NotIn, Exists, DoesNotExist, Gt or Lt.
            values: for all but Exists and DoesNotExist.
        """
        entry: JsonMap = {"key": key, "operator": operator}
        if values := list(values):
            entry["values"] = values
        add_requirement(self._draft, self._path, entry)

    def unrequire_node(self, key: str, operator: str | None = None) -> None:
        """Remove the requirements on a node label from every term."""
        remove_requirement(self._draft, self._path, key, operator)

    def set_node_terms(self, terms: Iterable[JsonMap]) -> None:
        """Let these be the terms; none at all takes the required node affinity off."""
        wanted = list(terms)
        if not same(wanted, terms_of(self._draft, self._path)):
            put_terms(self._draft, self._path, wanted)

    # topology spread ---------------------------------------------------------------------------

    def spread(self, constraint: Mapping[str, Any]) -> None:
        """Spread the pods over a topology, by a constraint as Kubernetes writes it.

        It takes the place of the one with the same `topologyKey` and `whenUnsatisfiable`.
        https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
        """
        add_constraint(self._draft, self._path, constraint)

    def unspread(
        self, topology_key: str | None = None, *, when_unsatisfiable: str | None = None
    ) -> None:
        """Remove the constraints that agree in all that is given; an emptied list goes."""
        given = {"topologyKey": topology_key, "whenUnsatisfiable": when_unsatisfiable}
        wanted = {name: value for name, value in given.items() if value is not None}
        remove_constraints(self._draft, self._path, wanted)

    # labels and annotations --------------------------------------------------------------------

    @property
    def labels(self) -> dict[str, str]:
        """The pods' labels, as a copy."""
        return dict(self._metadata.get("labels")) if self._metadata else {}

    @property
    def annotations(self) -> dict[str, str]:
        """The pods' annotations, as a copy."""
        return dict(self._metadata.get("annotations")) if self._metadata else {}

    @property
    def has_metadata(self) -> bool:
        """Whether the pods have labels and annotations of their own."""
        return self._metadata is not None

    @property
    def is_object(self) -> bool:
        """Whether the pod is the object itself, so that the object's labels are its own."""
        return self._metadata is not None and self._metadata.same_place(self.workload.metadata)

    def _own_metadata(self, field: str) -> Metadata:
        if self._metadata is None:
            raise CannotChangeError(
                f"the {self.role} of a {self.workload.kind_name} has no {field} of its own; its "
                f"operator copies the object's: set them with `on: [object]`",
                field=self.where(),
            )
        return self._metadata

    def label(self, key: str, value: str) -> None:
        """Label the pods."""
        self._own_metadata("labels").set("labels", key, value)

    def unlabel(self, key: str) -> None:
        """Remove a label of the pods, if it is there."""
        if self._metadata:
            self._metadata.remove("labels", key)

    def annotate(self, key: str, value: str) -> None:
        """Annotate the pods."""
        self._own_metadata("annotations").set("annotations", key, value)

    def unannotate(self, key: str) -> None:
        """Remove an annotation of the pods, if it is there."""
        if self._metadata:
            self._metadata.remove("annotations", key)

    # volumes -----------------------------------------------------------------------------------

    @property
    def volumes(self) -> list[JsonMap]:
        """The volumes, as copies."""
        return [deep_copy(entry) for entry in self._entries("volumes")]

    def add_volume(self, name: str, source: Mapping[str, Any], *, replace: bool = False) -> None:
        """Add a volume; its source is a union, so it is replaced whole or not at all.

        Args:
            name: the volume's name.
            source: as Kubernetes writes it, such as ``{"emptyDir": {"medium": "Memory"}}``.
            replace: put it in place of another volume of the name.

        Raises:
            ConflictError: a volume of the name has another source, and not `replace`.
        """
        entry = {"name": check_name(name, "volume"), **deep_copy(dict(source))}
        add_volume(self._draft, self._path, entry, replace=replace)

    def remove_volume(self, name: str) -> None:
        """Remove a volume and every mount of it, if it is there; emptied lists go."""
        remove_volume(self._draft, self._path, name)

    # scalars -----------------------------------------------------------------------------------

    def set_field(self, field: str, value: Json) -> None:
        """Set a scalar of the pod spec, such as ``priorityClassName``; None removes it."""
        there = self.peek(field)
        if value is None:
            self._draft.drop((*self._path, field))
        elif not same(there, value):
            self.note_write(self._path, (field,), value, there)
            self._draft.edit(self._path)[field] = value
