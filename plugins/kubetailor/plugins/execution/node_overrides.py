"""What a node says otherwise than its task: Flyte's `with_overrides`, compiled into the node.

FlytePropeller lays it over the task when it makes the pod: the pod template first, then resources
and image of the primary container, and each extended resource (flyteplugins,
flytek8s/pod_helper.go, `BuildRawPod` and `ApplyFlytePodConfiguration`). A chain is to see the task
as it will be, so it is laid over the template here too. Afterwards whatever no step has changed
stays where it was, on the node; what one has changed is in the template, and goes from the node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubetailor.plugins.execution.node_fields import compiled_fields, own_metadata
from kubetailor.plugins.execution.node_resources import (
    PARTS,
    by_full_name,
    primary_of,
    resources_back,
)
from kubetailor.plugins.flyte.node_pod import POD_PLACE, with_pod
from kubetailor.plugins.flyte.undo import undo
from kubetailor.workloads import CannotChangeError, Draft, JsonMap, Workload, same
from kubetailor.workloads.container import Container
from kubetailor.workloads.draft import as_map
from kubetailor.workloads.form import check_form
from kubetailor.workloads.quantity import is_extended_resource
from kubetailor.workloads.task_template import GPU_ALIAS, TASK_TEMPLATE

__all__ = ["NodeOverrides", "at_node"]

_EXTENDED: Final = "extendedResources"
_ACCELERATOR: Final = "gpuAccelerator"
_EXTENDED_KINDS: Final = (_ACCELERATOR, "sharedMemory")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_POD_FIELDS: Final[Mapping[str, str]] = {
    "metadata": "metadata",
    "pod_spec": "podSpec",
    "primary_container_name": "primaryContainerName",
}
"""A node's `podTemplate` is written by encoding/json, all else by protobuf."""

Spec = dict[str, Any]
"""Fields of a node -> their new values; None takes a field off."""


@dataclass(frozen=True)
class NodeOverrides:
    """What one node says otherwise than its task.

    Attributes:
        resources: requests and limits of the primary container, by their full names.
        extended: `gpuAccelerator` and `sharedMemory`, those that it states.
        image: the image of the primary container, or None.
        pod: flyteidl.core.K8sPod in JSON form, as its author wrote it, or None.
        metadata: retries, timeout and interruptible, those that it states, as a task says them.
        warnings: what was found when the pod was put back to what the author wrote.
    """

    resources: Mapping[str, JsonMap]
    extended: JsonMap
    image: str | None
    pod: JsonMap | None
    metadata: JsonMap = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, spec: JsonMap, template: JsonMap) -> NodeOverrides | None:
        """What a node states, or None.

        Args:
            spec: the node of the FlyteWorkflow.
            template: the task template that it was compiled with.

        Raises:
            InvalidObjectError: the way back in its pod template cannot be read.
        """
        stated = as_map(spec.get("resources"))
        resources = {part: as_map(stated[part]) for part in PARTS if as_map(stated.get(part))}
        extended = {
            name: value
            for name, value in as_map(spec.get(_EXTENDED)).items()
            if name in _EXTENDED_KINDS and isinstance(value, dict)
        }
        image = spec.get("containerImage")
        image = image if isinstance(image, str) and image else None
        pod, warnings = _pod(as_map(spec.get("podTemplate")))
        metadata = own_metadata(spec, template)
        if not (resources or extended or image or pod or metadata):
            return None
        return cls(resources, extended, image, pod, metadata, warnings)

    @property
    def accelerator(self) -> bool:
        """Whether it names an accelerator."""
        return _ACCELERATOR in self.extended

    @property
    def devices(self) -> int | None:
        """How many GPUs it asks for, or None."""
        for part in reversed(PARTS):
            for name, number in self.resources.get(part, {}).items():
                if is_extended_resource(name) and _NUMBER.fullmatch(str(number)):
                    return int(number)
        return None

    def base(self, template: JsonMap) -> JsonMap:
        """A task template with the node's pod in the place of its own.

        Raises:
            InvalidObjectError: the pod is of another form than pods are.
        """
        if self.pod is None:
            return template
        found = with_pod(template, self.pod)
        check_form(found, TASK_TEMPLATE)
        return found

    def pod_back(self, spec: JsonMap) -> Spec:
        """The node's own pod template as its author wrote it, if it is not that already."""
        if self.pod is None:
            return {}
        written = as_map(spec.get("podTemplate"))
        own = {name: self.pod[ours] for name, ours in _POD_FIELDS.items() if ours in self.pod}
        return {} if same({**written, **own}, written) else {"podTemplate": {**written, **own}}

    def laid_over(self, base: JsonMap, *, moved: frozenset[str] = frozenset()) -> JsonMap:
        """A task template as FlytePropeller will run it at this node.

        Args:
            base: the template, with the node's pod.
            moved: resources that the chain has put others in place of.
        """
        workload = Workload(base, TASK_TEMPLATE)
        for lay in (self._lay_resources, self._lay_image):
            before = workload.commit()
            try:
                if primary := primary_of(workload):
                    lay(primary, moved)
                workload.commit()
            except CannotChangeError:  # the plugin of its type does not read it
                workload.reset(before)
        draft = Draft(workload.commit())
        for name, value in self.extended.items():
            if not same(draft.get((_EXTENDED, name)), value):
                draft.put((_EXTENDED, name), value)
        for name, value in self.metadata.items():
            if not same(draft.get(("metadata", name)), value):
                draft.put(("metadata", name), value)
        return draft.checkpoint()

    def _lay_resources(self, primary: Container, moved: frozenset[str]) -> None:
        for part, values in self.resources.items():
            for name, value in values.items():
                if name in moved or same(by_full_name(primary, part).get(name), value):
                    continue
                entries = primary.edit("resources", part)
                entries.pop(GPU_ALIAS.get(name), None)
                entries[name] = value

    def _lay_image(self, primary: Container, _: frozenset[str]) -> None:
        if self.image is not None:
            primary.set_image(self.image)

    def once_more(self, over: JsonMap, after: JsonMap) -> JsonMap:
        """A task template on which what the node states holds again, whatever `steps` wrote there.

        Args:
            over: what the steps were given.
            after: what they made of it.
        """
        was, now = (primary_of(Workload(template, TASK_TEMPLATE)) for template in (over, after))
        gone: frozenset[str] = frozenset()
        if was and now and any(map(is_extended_resource, now.resource_names - was.resource_names)):
            gone = frozenset(was.resource_names - now.resource_names)
        return self.laid_over(after, moved=gone)

    def taken_off(self, base: JsonMap, over: JsonMap, after: JsonMap) -> tuple[JsonMap, Spec]:
        """The template for this node, and the fields of the node that change.

        Args:
            base: the template as its author wrote it, with the node's pod.
            over: the same with the rest of the node laid over it.
            after: what the chain made of that.
        """
        spec: Spec = {}
        workload = Workload(after, TASK_TEMPLATE)
        own, was, now = (primary_of(Workload(t, TASK_TEMPLATE)) for t in (base, over, after))
        mine = primary_of(workload)
        if own and was and now and mine:
            kept = resources_back(self.resources, own, was, now, mine)
            if kept != self.resources:
                spec["resources"] = {part: values for part, values in kept.items() if values}
            if self.image is not None and was.image != now.image:
                spec["containerImage"] = None
            elif self.image is not None:
                mine.set_field("image", own.image)
        draft = Draft(workload.commit())
        extended = dict(self.extended)
        for name in self.extended:
            path = (_EXTENDED, name)
            if not same(Draft(over).get(path), draft.get(path)):
                del extended[name]
            elif (value := Draft(base).get(path)) is not None:
                draft.put(path, value)
            else:
                draft.drop(path)
        if draft.get((_EXTENDED,)) == {} and _EXTENDED not in base:
            draft.drop((_EXTENDED,))
        if extended != self.extended:
            spec[_EXTENDED] = extended or None
        for name in self.metadata:
            path = ("metadata", name)
            if not same(Draft(over).get(path), draft.get(path)):
                spec.update(compiled_fields(name, after))
            elif (value := Draft(base).get(path)) is not None:
                draft.put(path, value)
            else:
                draft.drop(path)
        if self.pod is not None:
            spec["podTemplate"] = None
        return draft.checkpoint(), spec


def at_node(template: JsonMap, spec: JsonMap) -> JsonMap:
    """A task template as FlytePropeller will run it at a node.

    Args:
        template: the template.
        spec: the node of the FlyteWorkflow.
    """
    overrides = NodeOverrides.of(spec, template)
    if overrides is None:
        return template
    return overrides.laid_over(overrides.base(template))


def _pod(written: JsonMap) -> tuple[JsonMap | None, list[str]]:
    """A node's pod template as its author wrote it; one without a pod spec is not read."""
    if not isinstance(written.get("pod_spec"), dict):
        return None, []
    pod = {ours: written[name] for name, ours in _POD_FIELDS.items() if name in written}
    metadata = as_map(pod.get("metadata"))
    pod["metadata"] = {n: as_map(metadata[n]) for n in ("labels", "annotations") if n in metadata}
    return undo(pod, POD_PLACE)
