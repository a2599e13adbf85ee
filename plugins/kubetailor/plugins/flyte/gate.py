"""Whether a chain concerns a task at all, asked before anything of the task is read as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kubetailor.plugins.flyte.models import RESOURCE_NAMES
from kubetailor.registry import DeferError
from kubetailor.registry.selectors import POD_FIELDS, Selector, View
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads.metadata import MapName
from kubetailor.workloads.quantity import amount_in, is_positive, resource_names_in
from kubetailor.workloads.task_target import kubernetes_name
from kubetailor.workloads.task_template import GPU_ALIAS, TASK_TEMPLATE, object_is_pod

if TYPE_CHECKING:
    from flytekit.models import task

__all__ = ["Gate"]

_NAMES: Final = {number: kubernetes_name(name) for number, name in RESOURCE_NAMES.items()}


class Gate:
    """The conditions of a config, asked of flytekit's models as they are.

    Where no condition of a chain holds, no step changes what the next one would see: so all may be
    asked of the task that the author wrote.
    """

    def __init__(self, tailor: Tailor) -> None:
        self._tailor = tailor
        self._conditions: dict[str, tuple[Selector, ...]] = {
            name: tuple({id(step.when): step.when for step in chain.steps}.values())
            for name, chain in tailor.config.chains.items()
        }
        select = () if tailor.forced else tuple(rule.when for rule in tailor.config.select)
        self._reads = {name: _fields(found) for name, found in self._conditions.items()}
        self._select_reads = _fields(select)

    def is_closed_to(self, template: task.TaskTemplate) -> bool:
        """Whether no step of its chain can apply to a task.

        Args:
            template: the template, as flytekit made it.
        """
        subject = _Subject(template)
        if not subject.answers(self._select_reads):
            return False
        tailor, id_ = self._tailor, template.id
        known = {"task": id_.name, "task_type": template.type}
        if id_.project:
            known["project"] = id_.project
        if id_.domain:
            known["domain"] = id_.domain
        if id_.version:
            known["version"] = id_.version
        task = tailor.task("serialize", **known)
        try:
            chain = tailor.chain_of(task, subject)
        except DeferError:
            return False
        if chain is None:
            return True
        if not subject.answers(self._reads[chain.name]):
            return False
        view = View(task, subject, subject)
        return all(when.test(view) is False for when in self._conditions[chain.name])


class _Subject:
    """A task as conditions look at it, and the one pod that it runs."""

    __slots__ = ("_resources", "_template", "kind_name")

    roles = ("primary",)
    role = "primary"
    base = None
    namespace = None

    def __init__(self, template: task.TaskTemplate) -> None:
        self._template = template
        self._resources: list[Any] | None = None
        self.kind_name = TASK_TEMPLATE.object_kind({"type": template.type})

    def answers(self, fields: frozenset[str]) -> bool:
        """Whether it can be asked for these: only a plain pod has one role and one spec."""
        if fields.isdisjoint(POD_FIELDS):
            return True
        return "role" not in fields and self.kind_name == "Pod"

    @property
    def api_group(self) -> str:
        return TASK_TEMPLATE.object_group({"type": self._template.type})

    @property
    def metadata(self) -> _Subject:
        return self

    def get(self, name: MapName) -> Mapping[str, Any]:
        """Its labels or annotations; where the object is the pod, the pod's are among them."""
        template = self._template
        own = _entries(template.metadata.k8s_object_metadata, name)
        if template.k8s_pod is None or not object_is_pod(template.type):
            return own
        return {**_entries(template.k8s_pod.metadata, name), **own}

    def pods(self) -> tuple[_Subject, ...]:
        return (self,)

    def serving(self, role: str) -> _Subject:
        return self

    def requests(self, resource: str) -> bool:
        alias = GPU_ALIAS.get(resource)
        return any([is_positive(amount_in(found, resource, alias)) for found in self._containers()])

    @property
    def resource_names(self) -> set[str]:
        found: set[str] = set()
        return found.union(*[resource_names_in(r, GPU_ALIAS) for r in self._containers()])

    def _containers(self) -> list[Any]:
        """The `resources` of each container."""
        if self._resources is None:
            template = self._template
            if template.container is not None:
                resources = template.container.resources
                self._resources = [
                    {"limits": _amounts(resources.limits), "requests": _amounts(resources.requests)}
                ]
            else:
                spec = template.k8s_pod.pod_spec if template.k8s_pod is not None else None
                entries = (spec or {}).get("containers") or ()
                self._resources = [e.get("resources") for e in entries if isinstance(e, dict)]
        return self._resources


def _fields(conditions: Iterable[Selector]) -> frozenset[str]:
    """What conditions read."""
    return frozenset(name for when in conditions for name in when.fields)


def _entries(metadata: Any, name: MapName) -> Mapping[str, Any]:
    return (getattr(metadata, name) or {}) if metadata is not None else {}


def _amounts(entries: list[Any]) -> dict[str, Any]:
    return {_NAMES[entry.name]: entry.value for entry in entries}
