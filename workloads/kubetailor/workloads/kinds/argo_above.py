"""What an Argo template has from above: from its caller, the workflow, and `templateDefaults`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubetailor.workloads.draft import Json, JsonMap, Path, same

__all__ = ["Above", "defaulted", "has_pod", "key_of"]

_FROM_CALLER = frozenset({"affinity", "nodeSelector", "tolerations"})
"""What a template has from the steps or DAG that calls it, before the workflow
(workflowpod.go, `addSchedulingConstraints`)."""

_WORKFLOWS: Mapping[str, str] = {
    **{
        name: name
        for name in (
            *("affinity", "automountServiceAccountToken", "hostAliases", "nodeSelector"),
            *("resourceClaims", "schedulerName", "securityContext", "serviceAccountName"),
            *("tolerations", "volumes"),
        )
    },
    "priorityClassName": "podPriorityClassName",
    "resources": "podResources",
}
"""Field of a pod spec -> the workflow's name for it."""

_TYPES = ("container", "script", "containerSet", "resource", "data")
"""What makes a pod of a template."""

_MERGED_BY = {
    "env": "name",
    "hostAliases": "ip",
    "initContainers": "name",
    "ports": "containerPort",
    "sidecars": "name",
    "tolerations": "key",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists that a strategic merge merges, by key (`patchMergeKey`)."""


class Above:
    """What is above the templates of a workflow.

    Attributes:
        spec: the WorkflowSpec.
        place: where it is.
        defaults: its `templateDefaults`.
    """

    def __init__(self, spec: JsonMap, place: Path) -> None:
        self.spec: JsonMap = spec
        self.place: Path = place
        found = spec.get("templateDefaults")
        self.defaults: JsonMap = found if isinstance(found, dict) else {}
        self._callers = self._find_callers()

    def values(self, name: str, template: str | int) -> list[Json]:
        """What a template without a value of its own may have: one, or one of each caller.

        Args:
            name: the field of the pod spec.
            template: the template, as by `key_of`.
        """
        field = _WORKFLOWS.get(name)
        workflow = (self.spec.get(field) or None) if field else None
        found: list[Json] = []
        nobody: list[JsonMap] = [{}]
        callers = self._callers.get(template, nobody) if name in _FROM_CALLER else nobody
        for caller in callers:
            value = caller.get(name) or workflow
            if not any(same(value, other) for other in found):
                found.append(value)
        return found

    def _find_callers(self) -> dict[str | int, list[JsonMap]]:
        """Template -> the templates that call it; only those that say something count."""
        templates = list(self.all_templates(self.spec))
        if not any(_FROM_CALLER & t.keys() and _calls(t) for _, _, t in templates):
            return {}
        found: dict[str | int, list[JsonMap]] = {}
        for _, _, template in templates:
            for call, _, _ in _calls(template):
                inline = call.get("inline")
                called = key_of(inline) if isinstance(inline, dict) else str(call.get("template"))
                found.setdefault(called, []).append(template)
        hooks = (self.spec.get("hooks") or {}).values()
        starts = [self.spec.get("entrypoint"), self.spec.get("onExit")]
        for start in (*starts, *(hook.get("template") for hook in hooks)):
            if start:
                found.setdefault(str(start), []).append({})
        return found

    @staticmethod
    def all_templates(spec: JsonMap) -> Iterator[tuple[Path, str, JsonMap]]:
        """The (path, name, template) of each, those in the place of a call after their caller."""
        entries = spec.get("templates")
        for index, template in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(template, dict):
                path: Path = ("templates", index)
                yield path, str(template.get("name", "")), template
                for call, where, name in _calls(template):
                    if isinstance(call.get("inline"), dict):
                        yield (*path, *where, "inline"), name, call["inline"]


def key_of(template: JsonMap) -> str | int:
    """By what its callers know a template."""
    return str(template["name"]) if template.get("name") else id(template)


def _calls(template: JsonMap) -> list[tuple[JsonMap, Path, str]]:
    """The (call, path, name) of each step or task of a template."""
    found: list[tuple[JsonMap, Path, str]] = []
    tasks = (template.get("dag") or {}).get("tasks")
    groups: list[tuple[Path, Json]] = [(("dag", "tasks"), tasks)]
    steps = template.get("steps")
    groups += [(("steps", n), group) for n, group in enumerate(steps or ())]
    for path, group in groups:
        for index, call in enumerate(group if isinstance(group, list) else ()):
            if isinstance(call, dict):
                found.append((call, (*path, index), str(call.get("name", ""))))
    return found


def has_pod(template: JsonMap) -> bool:
    """Whether a template makes a pod."""
    return any(isinstance(template.get(name), dict) for name in _TYPES)


def defaulted(defaults: JsonMap, template: JsonMap) -> JsonMap:
    """A template as Argo reads it: with what `templateDefaults` says of its type."""
    others = set(_TYPES) - template.keys()
    applicable = {name: value for name, value in defaults.items() if name not in others}
    found: JsonMap = _under(applicable, template, "") if applicable else template
    return found


def _under(default: Json, own: Json, field: str) -> Json:
    if own is None:
        return default
    if isinstance(default, dict) and isinstance(own, dict):
        return {name: _under(default.get(name), own.get(name), name) for name in {**default, **own}}
    key = _MERGED_BY.get(field)
    if key is not None and isinstance(default, list) and isinstance(own, list):
        there = {entry.get(key): entry for entry in own}
        merged = [
            _under(next((d for d in default if d.get(key) == name), None), entry, "")
            for name, entry in there.items()
        ]
        return [*merged, *(entry for entry in default if entry.get(key) not in there)]
    return own
