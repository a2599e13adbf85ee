"""What a Flyte TaskTemplate runs, shown as the pod that it stands for, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubetailor.workloads.draft import Draft, JsonMap, Path, same
from kubetailor.workloads.errors import CannotChangeError

__all__ = [
    "PRIMARY",
    "ContainerTarget",
    "ReplicaTarget",
    "as_pod_task",
    "container_as_pod",
    "kubernetes_name",
]

PRIMARY = "primary"
"""flytekit's name for the container of a `pod_template` that names none."""

_POLICY = "terminationMessagePolicy"
_RESOURCE_NAMES = {
    "CPU": "cpu",
    "GPU": "gpu",
    "MEMORY": "memory",
    "EPHEMERAL_STORAGE": "ephemeral-storage",
}
_RESOURCE_ENUM = {**{v: k for k, v in _RESOURCE_NAMES.items()}, "nvidia.com/gpu": "GPU"}


def kubernetes_name(resource: Any) -> str:
    """The name that Kubernetes has for a resource of a task (flyteidl.core.Resources)."""
    return _RESOURCE_NAMES.get(resource, str(resource))


def _resources_as_maps(resources: Any) -> JsonMap:
    """``{"requests": [{"name": "CPU", "value": "1"}]}`` as Kubernetes writes it."""
    found: JsonMap = {}
    for part in ("limits", "requests"):
        entries = (resources or {}).get(part) or []
        found[part] = {kubernetes_name(entry.get("name")): entry.get("value") for entry in entries}
    return found


def _resources_as_entries(resources: Any, like: Any) -> JsonMap:
    """The way back, in the order of `like`, new ones last."""
    found: JsonMap = {}
    for part in ("requests", "limits"):
        values = {_RESOURCE_ENUM[name]: value for name, value in resources.get(part, {}).items()}
        order = [entry.get("name") for entry in (like or {}).get(part) or []]
        names = [name for name in order if name in values]
        names += [name for name in values if name not in order]
        # An empty list was the author's own; one that is empty now goes.
        if names or (like or {}).get(part) == []:
            found[part] = [{"name": name, "value": values[name]} for name in names]
    return found


def container_as_pod(template: JsonMap) -> JsonMap:
    """The K8sPod that flytekit makes of a task's container for an empty `pod_template`.

    With one field more, which FlytePropeller sets on containers of its own and not on a task's pod
    (flyteplugins, flytek8s/container_helper.go, `BuildRawContainer`): without it the error of a
    failed task would lose the end of its log. Spark's plugin does not read it.

    Args:
        template: flyteidl.core.TaskTemplate in JSON form, whose target is a container.

    Returns:
        flyteidl.core.K8sPod in JSON form.
    """
    container = template["container"]
    entry: JsonMap = {
        "env": [
            {"name": e.get("key", ""), "value": e.get("value", "")}
            for e in container.get("env") or []
        ],
        "name": PRIMARY,
        "image": container.get("image"),
        "command": list(container.get("command") or []),
    }
    if container.get("args") is not None:  # a ContainerTask without `arguments` has none
        entry["args"] = list(container["args"])
    resources = _resources_as_maps(container.get("resources"))
    if resources["limits"] or resources["requests"]:
        entry["resources"] = resources
    if template.get("type") != "spark":
        entry[_POLICY] = "FallbackToLogsOnError"
    pod: JsonMap = {"metadata": {}, "podSpec": {"containers": [entry]}}
    if "dataConfig" in container:
        pod["dataConfig"] = container["dataConfig"]
    return pod


def as_pod_task(template: JsonMap, later: JsonMap) -> JsonMap:
    """A version as a pod task, if a later version became one: so the two can be compared."""
    container = template.get("container")
    if not isinstance(container, dict) or "container" in later or "k8sPod" not in later:
        return template
    config = {**(template.get("config") or {}), "primary_container_name": PRIMARY}
    found = {**_with_pod(template, container_as_pod(template)), "config": config}
    order = [*(key for key in later if key in found), *found]
    return {key: found[key] for key in order}


def _with_pod(template: JsonMap, pod: JsonMap) -> JsonMap:
    """A template with a pod where its container was."""
    return {
        **{("k8sPod" if key == "container" else key): value for key, value in template.items()},
        "k8sPod": pod,
    }


class ContainerTarget:
    """The pod that stands for a `container` target, and the way back into the template."""

    _FIELDS = frozenset({"env", "name", "image", "command", "args", "resources", _POLICY})

    def __init__(self, template: JsonMap, moved: Callable[[Draft], None]) -> None:
        """The pod of a container.

        Args:
            template: flyteidl.core.TaskTemplate in JSON form, whose target is a container.
            moved: called when the container has become a pod of the template.
        """
        self.moved: Callable[[Draft], None] = moved
        self.before: JsonMap = container_as_pod(template)
        self.draft: Draft = Draft(self.before)

    def write_back(self, draft: Draft) -> None:
        """Put what changed into the template; the container becomes a pod if it must."""
        after = self.draft.checkpoint()
        if after is self.before or same(after, self.before):
            return
        container = draft.root["container"]
        if self._fits(after):
            self._put(draft, container, after["podSpec"]["containers"][0])
            self.before = after
            return
        lost = [key for key in ("config", "ports", "architecture") if container.get(key)]
        if lost:
            raise CannotChangeError(
                f"the task's container cannot become a pod: its {', '.join(lost)} would be lost",
                field="container",
            )
        template = draft.edit(())
        moved = _with_pod(template, after)
        template.clear()
        template.update(moved)
        draft.edit(("config",))["primary_container_name"] = PRIMARY
        self.moved(draft)
        self.draft.close()

    def _fits(self, pod: JsonMap) -> bool:
        """Whether a container can say it."""
        spec = pod["podSpec"]
        containers = spec.get("containers")
        if pod.get("metadata") or spec.keys() != {"containers"} or len(containers) != 1:
            return False
        entry = containers[0]
        env = entry.get("env") or []
        resources = entry.get("resources") or {}
        return (
            entry.keys() <= self._FIELDS
            and entry.get(_POLICY) == self.before["podSpec"]["containers"][0].get(_POLICY)
            and all(e.keys() == {"name", "value"} for e in env)
            and len({e["name"] for e in env}) == len(env)
            and resources.keys() <= {"limits", "requests"}
            and all(values.keys() <= _RESOURCE_ENUM.keys() for values in resources.values())
        )

    def _put(self, draft: Draft, container: JsonMap, entry: JsonMap) -> None:
        before = self.before["podSpec"]["containers"][0]
        new = draft.edit(("container",))
        for field in ("image", "command", "args"):
            if entry.get(field) is not before.get(field):
                new[field] = entry.get(field)
        if entry.get("env") is not before.get("env"):
            there = {e.get("key"): e for e in container.get("env") or []}
            env = [_env_entry(e, there.get(e["name"], {})) for e in entry.get("env") or []]
            if env:
                new["env"] = env
            elif there:
                del new["env"]
        if entry.get("resources") is not before.get("resources"):
            like = container.get("resources")
            resources = _resources_as_entries(entry.get("resources") or {}, like)
            if resources:
                new["resources"] = resources
            elif like:
                del new["resources"]


def _env_entry(entry: JsonMap, there: JsonMap) -> JsonMap:
    """A pod's env entry as a task has it; as it was written, if it says the same."""
    if there and there.get("value", "") == entry["value"]:
        return there
    return {"key": entry["name"], "value": entry["value"]}


class ReplicaTarget:
    """Image and resources that `custom` holds for one role, shown as a pod.

    A role without resources of its own has the task's (flyteplugins,
    plugins/k8s/kfoperators/common/common_operator.go, `OverrideContainerSpec`).
    """

    def __init__(self, path: Path, replica: JsonMap, inherited: Callable[[], JsonMap]) -> None:
        """The pod of a role.

        Args:
            path: where the replica is in the template.
            replica: what is there.
            inherited: gives the resources that the task has now.
        """
        self.path: Path = path
        self._inherited = None if replica.get("resources") else inherited
        entry: JsonMap = {"name": PRIMARY}
        if replica.get("image"):
            entry["image"] = replica["image"]
        if self._inherited is None:
            resources = _resources_as_maps(replica["resources"])
            entry["resources"] = {part: values for part, values in resources.items() if values}
        else:
            entry["resources"] = inherited()
        self.before: JsonMap = {"podSpec": {"containers": [entry]}}
        self.draft: Draft = Draft(self.before)

    def write_back(self, draft: Draft) -> None:
        """Put image and resources back; anything else has no place here."""
        after = self.draft.checkpoint()
        if after is self.before:
            return
        spec = after["podSpec"]
        entry, old = spec["containers"][0], self.before["podSpec"]["containers"][0]
        if spec.keys() != {"containers"} or not entry.keys() <= {"name", "image", "resources"}:
            raise CannotChangeError(
                "a replica of a task template has an image and resources alone", field="custom"
            )
        if entry.get("image") != old.get("image"):
            draft.edit(self.path)["image"] = entry.get("image")
        if self._inherited is not None and same(entry.get("resources"), self._inherited()):
            self.before = after  # it still has the task's
            return
        if not same(entry.get("resources"), old.get("resources")):
            self._inherited = None
            like = draft.get((*self.path, "resources"))
            unknown = [
                name
                for values in entry.get("resources", {}).values()
                for name in values
                if name not in _RESOURCE_ENUM
            ]
            if unknown:
                raise CannotChangeError(
                    f"a replica of a task template cannot ask for {', '.join(unknown)}; it knows "
                    f"{', '.join(_RESOURCE_ENUM)}",
                    field="custom",
                )
            draft.edit(self.path)["resources"] = _resources_as_entries(
                entry.get("resources", {}), like
            )
        self.before = after
