"""A view of one container of a pod, with the merge rules of its lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubetailor.workloads.draft import Draft, Json, JsonMap, Key, Path, deep_copy, dotted, same
from kubetailor.workloads.errors import CannotChangeError, ConflictError, InvalidObjectError
from kubetailor.workloads.identity import env_position, env_references, find, mount_path
from kubetailor.workloads.merge import merge
from kubetailor.workloads.named import says_the_same
from kubetailor.workloads.names import check_env_name
from kubetailor.workloads.quantity import (
    amount_in,
    is_extended_resource,
    is_positive,
    is_whole,
    parse_quantity,
    quantity_text,
    resource_names_in,
    same_quantity,
)

if TYPE_CHECKING:
    from kubetailor.workloads.pod import Pod

__all__ = ["Container"]


class Container:
    """One container. Reads give copies; verbs change the workload.

    Attributes:
        pod: the pod that it is in.
        name: its name.
    """

    __slots__ = ("_draft", "_path", "name", "pod")

    def __init__(self, pod: Pod, draft: Draft, path: Path, name: str) -> None:
        self.pod: Pod = pod
        self.name: str = name
        self._draft = draft
        self._path = path

    def __repr__(self) -> str:
        return f"Container({self.name!r} of {self.pod!r})"

    def _get(self, *path: Key) -> Json:
        return self._draft.get(self._path + path)

    def _where(self, *path: Key) -> str:
        return dotted(self.pod.placed(self._path + path))

    def get(self, *path: Key) -> Json:
        """What the container holds at `path`, as a copy; None if nothing."""
        return deep_copy(self._get(*path))

    @property
    def image(self) -> str | None:
        """The image, or None."""
        image = self._get("image")
        return image if isinstance(image, str) else None

    @property
    def env(self) -> list[JsonMap]:
        """The entries of `env`, as copies."""
        return deep_copy(self._get("env")) or []

    @property
    def resources(self) -> JsonMap:
        """`resources`, as a copy: ``{"requests": {...}, "limits": {...}}``."""
        return deep_copy(self._get("resources")) or {}

    def edit(self, *path: Key, empty: type[dict[Any, Any]] | type[list[Any]] = dict) -> Any:
        """The dict or list at `path` within this container, to be changed in place.

        Missing parents are made. For what no verb does.
        """
        return self._draft.edit_deep(self._path + path, empty)

    def merge(self, patch: JsonMap, *, replace: bool = False) -> None:
        """Lay a patch over the container, lists by identity; null deletes.

        Raises:
            ConflictError: a mount of the same path has other content, and not `replace`.
        """
        merge(self._draft, self._path, patch, replace=replace)

    def set_image(self, image: str) -> None:
        """Use another image."""
        self.set_field("image", image)

    def set_field(self, field: str, value: Json) -> None:
        """Set a scalar of the container, such as ``imagePullPolicy``; None removes it."""
        there = self._get(field)
        if value is None:
            self._draft.drop((*self._path, field))
        elif not same(there, value):
            self.pod.note_write(self._path, (field,), value, there)
            self._draft.edit(self._path)[field] = value

    def quantity(self, resource: str) -> Json:
        """How much of a resource it asks for: its limit, else its request, else None."""
        alias = self.pod.workload.resource_aliases.get(resource)
        return amount_in(self._get("resources"), resource, alias)

    @property
    def resource_names(self) -> set[str]:
        """The full names of the resources that it has a request or a limit of."""
        return resource_names_in(self._get("resources"), self.pod.workload.resource_aliases)

    def requests(self, resource: str) -> bool:
        """Whether it asks for more than 0 of a resource."""
        return is_positive(self.quantity(resource))

    # env ---------------------------------------------------------------------------------------

    def set_env(
        self, name: str, value: str | None = None, *, value_from: JsonMap | None = None
    ) -> None:
        """Set an environment variable, in its place if it is there.

        A new one goes before the first that refers to it as ``$(NAME)``, else to the end. `value`
        and `valueFrom` are a union: the entry is replaced whole.

        Args:
            name: the variable.
            value: its text; may refer to other variables.
            value_from: an EnvVarSource as Kubernetes writes it, instead of `value`.

        Raises:
            ConflictError: it is there twice and an entry between refers to it, so that which of
                them is meant cannot be told.
        """
        check_env_name(name)
        entry: JsonMap = {"name": name}
        if value_from is not None:
            entry["valueFrom"] = deep_copy(value_from)
        else:
            entry["value"] = "" if value is None else value
        env = self._get("env") or []
        places = [
            i for i, item in enumerate(env) if type(item) is dict and item.get("name") == name
        ]
        if len(places) == 1 and says_the_same(env[places[0]], entry):
            return
        if len(places) > 1:
            self._check_duplicates(env, places)
            self.pod.workload.warn(f"duplicate env {name}: one entry is kept", self._where("env"))
        new = self._draft.edit((*self._path, "env"), list)
        if places:
            self.pod.note_write(self._path, ("env", name), entry, env[places[0]])
            new[places[0]] = entry
            for index in reversed(places[1:]):
                del new[index]
            return
        first_user = env_position(env, entry)
        new.insert(first_user, entry)
        self.pod.note_write(self._path, ("env", name), entry, None)
        self._check_order(new, first_user, entry)

    def _check_duplicates(self, env: list[Any], places: list[int]) -> None:
        name = env[places[0]]["name"]
        for item in env[places[0] + 1 : places[-1]]:
            if isinstance(item, dict) and name in env_references(item.get("value")):
                raise ConflictError(
                    f"env {name} is there {len(places)} times and {item['name']} between them "
                    f"refers to it; keep one entry",
                    field=self._where("env"),
                )

    def _check_order(self, env: list[Any], index: int, entry: JsonMap) -> None:
        """Kubernetes resolves only references to entries that stand before."""
        wanted = env_references(entry.get("value"))
        for item in env[index + 1 :]:
            if isinstance(item, dict) and item.get("name") in wanted:
                self.pod.workload.warn(
                    f"env {entry['name']} and {item['name']} refer to each other: "
                    "the reference cannot be resolved",
                    self._where("env"),
                )

    def remove_env(self, name: str) -> None:
        """Remove an environment variable, if it is there; an emptied list goes."""
        env = self._get("env") or []
        kept = [item for item in env if not (isinstance(item, dict) and item.get("name") == name)]
        if len(kept) != len(env):
            self._draft.keep((*self._path, "env"), kept)

    # mounts ------------------------------------------------------------------------------------

    def mount(
        self,
        volume: str,
        path: str,
        *,
        read_only: bool | None = None,
        sub_path: str | None = None,
        replace: bool = False,
    ) -> None:
        """Mount a volume of the pod; a mount is known by its path in normal form.

        Args:
            volume: the volume's name.
            path: where; ``/data/`` is ``/data``.
            read_only: `readOnly`, if given.
            sub_path: `subPath`, if given.
            replace: put it in place of another mount at this path.

        Raises:
            ConflictError: something else is mounted there, and not `replace`.
        """
        entry: JsonMap = {"name": volume, "mountPath": path}
        if read_only is not None:
            entry["readOnly"] = read_only
        if sub_path is not None:
            entry["subPath"] = sub_path
        self.add_mount(entry, replace=replace)

    def add_mount(self, mount: Mapping[str, Any], *, replace: bool = False) -> None:
        """As `mount`, with the mount as Kubernetes writes it."""
        mounts = self._get("volumeMounts") or []
        index = find("volumeMounts", mounts, mount)
        if index is None:
            self._draft.edit((*self._path, "volumeMounts"), list).append(dict(mount))
        elif not _is_mount(mounts[index], mount):
            if not replace:
                raise ConflictError(
                    f"{mount_path(mount['mountPath'])} is the mount of volume "
                    f"{mounts[index].get('name')!r} already; ask for `replace`",
                    field=self._where("volumeMounts", index),
                )
            self._draft.edit((*self._path, "volumeMounts"), list)[index] = dict(mount)

    def unmount(self, path: str) -> None:
        """Remove what is mounted at a path, if anything; the volume stays, an emptied list goes."""
        mounts = self._get("volumeMounts") or []
        kept = [
            mount for mount in mounts if find("volumeMounts", [mount], {"mountPath": path}) is None
        ]
        if len(kept) != len(mounts):
            self._draft.keep((*self._path, "volumeMounts"), kept)

    def mounted(self, path: str) -> str | None:
        """The name of the volume that is mounted at a path, or None."""
        mounts = self._get("volumeMounts") or []
        index = find("volumeMounts", mounts, {"mountPath": path})
        return None if index is None else mounts[index].get("name")

    # resources ---------------------------------------------------------------------------------

    def set_resources(
        self,
        requests: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        *,
        raise_limits: bool = False,
    ) -> None:
        """Set requests and limits; others stay. Equal in value is no change; None removes.

        An extended resource's request is its limit
        (https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources),
        so one that is given for either is set in both where both are there.

        Args:
            requests: resource -> quantity, or None to remove it.
            limits: the same for limits.
            raise_limits: where a request is more than the limit that is there, set the limit to
                the request; otherwise that is an error when the chain has run.

        Raises:
            InvalidObjectError: not a quantity, or not a whole number of an extended resource.
        """
        wanted = {"requests": dict(requests or {}), "limits": dict(limits or {})}
        self._pair_extended(wanted)
        if raise_limits:
            self._raise_limits(wanted)
        for part, values in wanted.items():
            for name, value in values.items():
                self._set_quantity(part, name, value)

    def _pair_extended(self, wanted: dict[str, dict[str, Any]]) -> None:
        for part, other in (("requests", "limits"), ("limits", "requests")):
            there = self._get("resources", other) or {}
            for name, value in list(wanted[part].items()):
                if not is_extended_resource(name) or name in wanted[other]:
                    continue
                known = {name, self.pod.workload.resource_aliases.get(name)}
                if known & there.keys() or (part == "requests" and value is not None):
                    wanted[other][name] = value

    def _raise_limits(self, wanted: dict[str, dict[str, Any]]) -> None:
        there = self._get("resources", "limits") or {}
        for name, request in wanted["requests"].items():
            limit = wanted["limits"].get(name, there.get(name))
            if None in (request, limit):
                continue
            if parse_quantity(request) > parse_quantity(
                limit, self._where("resources", "limits", name)
            ):
                wanted["limits"][name] = request

    def _set_quantity(self, part: str, name: str, value: Any) -> None:
        there = self._get("resources", part) or {}
        alias = self.pod.workload.resource_aliases.get(name)
        old = there.get(name, there.get(alias) if alias else None)
        path = (*self._path, "resources", part)
        if value is None:
            known = {name, alias} & there.keys()
            for key in known:
                del self._draft.edit(path)[key]
            if known and not self._get("resources", part):
                self._draft.drop(path)
                if not self._get("resources"):
                    self._draft.drop(path[:-1])
            return
        if old is not None and same_quantity(old, value):
            return
        try:
            text = quantity_text(value)
            if is_extended_resource(name) and not is_whole(text):
                raise InvalidObjectError(f"{name} must be a whole number, found {text}")
        except InvalidObjectError as error:
            where = self._where("resources", part, name)
            raise InvalidObjectError(str(error), field=where) from None
        if name in ("memory", "ephemeral-storage") and text.endswith("m"):
            where = self._where("resources", part, name)
            self.pod.workload.warn(f"{name} {text} is in milli-bytes", where)
        self.pod.note_write(path, (name,), text, old)
        values = self._draft.edit(path)
        if alias in values:
            del values[alias]
        values[name] = text


def _is_mount(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a mount at the same path is the one that is wanted; false is as good as absent."""
    fields = {"name", "subPath", "subPathExpr", *wanted} - {"mountPath"}
    return all((there.get(field) or None) == (wanted.get(field) or None) for field in fields)


def missing_container(pod: Pod, name: str, names: list[str]) -> CannotChangeError:
    """The error for a container that a pod does not have."""
    return CannotChangeError(
        f"no container {name!r}; the containers are {', '.join(names) or 'none'}",
        field=pod.where("containers"),
    )


def several_containers(pod: Pod, name: str, number: int) -> CannotChangeError:
    """The error for a name that several containers of a pod have, of which one would be changed."""
    return CannotChangeError(
        f"{number} containers are called {name!r}: which of them is meant cannot be told, and "
        "Kubernetes refuses such a pod",
        field=pod.where("containers"),
    )
