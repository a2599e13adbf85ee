"""`when`: compiled once to a closure that says yes, no, or that this phase cannot know.

There is one way to say a thing: a field and a glob, or a list of globs; `any`, `all` and `not`
combine. What cannot be known is None, and stays so through `not`.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from kubetailor.registry.context import FIELDS, PHASES, UNKNOWN, TaskContext
from kubetailor.registry.source import text
from kubetailor.workloads import nearest
from kubetailor.workloads.metadata import MapName

__all__ = [
    "ALWAYS",
    "LOOKED_AT",
    "WHEN_FIELDS",
    "Seen",
    "SeenPod",
    "Selector",
    "SelectorError",
    "View",
    "compile_selector",
]

TASK_FIELDS = (
    "project",
    "domain",
    "workflow",
    "launch_plan",
    "task",
    "task_type",
    "version",
    "node",
    "execution",
)
OBJECT_FIELDS = ("namespace", "kind", "api_group", "phase")
MAP_FIELDS = ("labels", "annotations", "inputs")
POD_FIELDS = ("role", "requests")
WHEN_FIELDS = (*TASK_FIELDS, *OBJECT_FIELDS, *MAP_FIELDS, *POD_FIELDS, "any", "all", "not")
"""Every word that a `when` may use."""

UNKNOWN_AT_ADMIT = frozenset({"inputs", "launch_plan", "node", "task_type"})
"""What not even the last phase can know (of a Kubernetes object)."""


class SelectorError(ValueError):
    """A `when` that cannot be compiled.

    Attributes:
        path: where in the `when`.
    """

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.path: tuple[str | int, ...] = path


class SeenMetadata(Protocol):
    """Labels and annotations, as conditions look at them."""

    def get(self, name: MapName) -> Mapping[str, Any]:
        """One of the two."""
        ...


class SeenPod(Protocol):
    """A pod, as conditions look at it: a `Pod`, or what a host can say of one sooner."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that it serves."""
        ...

    @property
    def role(self) -> str:
        """The roles in one text."""
        ...

    @property
    def base(self) -> object | None:
        """The pod that it is laid over."""
        ...

    @property
    def resource_names(self) -> set[str]:
        """The resources that its containers name."""
        ...

    def requests(self, resource: str) -> bool:
        """Whether a container asks for more than 0 of a resource."""
        ...

    def serving(self, role: str) -> SeenPod:
        """It as one of its roles alone sees it."""
        ...


class Seen(Protocol):
    """A workload, as conditions look at it: a `Workload`, or what a host can say of one sooner."""

    @property
    def kind_name(self) -> str:
        """The Kubernetes kind."""
        ...

    @property
    def api_group(self) -> str:
        """The group of that kind."""
        ...

    @property
    def namespace(self) -> str | None:
        """The namespace, if it says one."""
        ...

    @property
    def metadata(self) -> SeenMetadata:
        """Its own labels and annotations."""
        ...

    def pods(self) -> Sequence[SeenPod]:
        """Its pods."""
        ...


class View(NamedTuple):
    """What a selector looks at.

    Attributes:
        task: what is known of the task.
        workload: the workload.
        pod: the pod, or None for the workload as a whole.
        any_role: take every role for the one that is asked for.
    """

    task: TaskContext
    workload: Seen
    pod: SeenPod | None = None
    any_role: bool = False


Predicate: TypeAlias = Callable[[View], bool | None]


def _yes(view: View) -> bool | None:
    return True


@dataclass(frozen=True)
class Selector:
    """A compiled `when`.

    Attributes:
        test: says yes, no, or None where it cannot be known.
        fields: the fields that it reads.
        written: what was written, for the digest and for `explain`.
    """

    test: Predicate
    fields: frozenset[str]
    written: Any

    @functools.cached_property
    def per_pod(self) -> bool:
        """Whether it can differ between the pods of a workload."""
        return not self.fields.isdisjoint(POD_FIELDS)

    def unknown_to(self, task: TaskContext) -> str:
        """The fields that it reads and that are not known of the task, for messages."""
        unknown = [name for name in self.fields & {*FIELDS} if task.peek(name) is UNKNOWN]
        return ", ".join(sorted(unknown or self.fields))

    def of_workload(self, task: TaskContext, workload: Seen) -> bool | None:
        """Whether it holds for the workload: where it reads pods, for any of any role.

        A role that has a pod of its own laid over the task's is that pod's alone.
        """
        if not self.per_pod:
            return self.test(View(task, workload))
        pods = workload.pods()
        laid = {pod.role for pod in pods if pod.base is not None}
        return _any(
            self.test(View(task, workload, pod.serving(role) if len(pod.roles) > 1 else pod))
            for pod in pods
            for role in pod.roles
            if pod.base is not None or role not in laid
        )


ALWAYS = Selector(_yes, frozenset(), None)
"""The selector of a step without `when`."""


def _any(results: Iterable[bool | None]) -> bool | None:
    """Whether any holds; None where that hangs on one that cannot be known."""
    unknown = False
    for result in results:
        if result:
            return True
        unknown = unknown or result is None
    return None if unknown else False


def _either(tests: list[Predicate]) -> Predicate:
    """A test of whether any holds."""
    return lambda view: _any([test(view) for test in tests])


def _every(tests: list[Predicate]) -> Predicate:
    """A test of whether all hold; None where that hangs on one that cannot be known."""
    if len(tests) == 1:
        return tests[0]

    def test(view: View) -> bool | None:
        holds: bool | None = True
        for each in tests:
            result = each(view)
            if result is False:
                return False
            if result is None:
                holds = None
        return holds

    return test


def compile_selector(when: Any) -> Selector:
    """Compile a `when`; None is always.

    Raises:
        SelectorError: a field that there is not, or a value of the wrong form.
    """
    if when is None:
        return ALWAYS
    fields: set[str] = set()
    return Selector(_compile(when, (), fields), frozenset(fields), text(when))


def _compile(when: Any, path: tuple[str | int, ...], fields: set[str]) -> Predicate:
    if not isinstance(when, Mapping) or not when:
        raise SelectorError("expected a map of fields and values", path)
    return _every([_condition(key, value, (*path, key), fields) for key, value in when.items()])


def _condition(key: str, value: Any, path: tuple[str | int, ...], fields: set[str]) -> Predicate:
    if key not in WHEN_FIELDS:
        near = nearest(key, WHEN_FIELDS, what="fields", listing="kubetailor schema")
        raise SelectorError(f"no field {key!r}; {near}", path)
    if key == "not":
        inner = _compile(value, path, fields)
        return lambda view: None if (result := inner(view)) is None else not result
    if key in ("any", "all"):
        if not isinstance(value, list) or not value:
            raise SelectorError(f"`{key}` takes a list of conditions", path)
        parts = [_compile(part, (*path, index), fields) for index, part in enumerate(value)]
        return _either(parts) if key == "any" else _every(parts)
    fields.add(key)
    if key in MAP_FIELDS:
        return _map_condition(key, value, path)
    if key == "phase":
        for phase in value if isinstance(value, list) else [value]:
            if phase not in PHASES:
                raise SelectorError(f"no phase {phase!r}; phases: {', '.join(PHASES)}", path)
    matches = _matcher(value, path)
    if key == "role":
        return _role_condition(matches)
    if key == "requests":
        return _requests_condition(value, matches)
    read = _READERS.get(key)
    if read is None:
        return _task_condition(key, matches)
    return lambda view: None if (found := read(view)) is UNKNOWN else matches(found)


def _task_condition(key: str, matches: Callable[[Any], bool]) -> Predicate:
    def test(view: View) -> bool | None:
        found = view.task.peek(key)
        return None if found is UNKNOWN else matches(found)

    return test


def _read_namespace(view: View) -> Any:
    found = view.workload.namespace
    return view.task.peek("namespace") if found is None else found


_READERS: Mapping[str, Callable[[View], Any]] = {
    "kind": lambda view: view.workload.kind_name,
    "api_group": lambda view: view.workload.api_group,
    "namespace": _read_namespace,
    "phase": lambda view: view.task.phase,
}


LOOKED_AT = 4096
"""As many characters of a text are looked at by globs: an input may have a million."""


def _matcher(value: Any, path: tuple[str | int, ...]) -> Callable[[Any], bool]:
    """A test for a glob, a list of globs, or null, which matches what is absent."""
    patterns = value if isinstance(value, list) else [value]
    if not patterns:
        raise SelectorError("expected a glob or a list of globs, found an empty list", path)
    plain: set[str | None] = set()
    globs: list[str] = []
    for pattern in patterns:
        if pattern is None:
            plain.add(None)
        elif isinstance(pattern, bool | int | float):
            plain.add(str(pattern).lower() if isinstance(pattern, bool) else str(pattern))
        elif not isinstance(pattern, str):
            raise SelectorError(f"expected a glob or a list of globs, found {pattern!r}", path)
        elif any(char in pattern for char in "*?["):
            globs.append(fnmatch.translate(pattern))
        else:
            plain.add("".join(pattern))

    glob = re.compile("|".join(globs)) if globs else None

    def matches(found: Any) -> bool:
        if found is None:
            return None in plain
        if not isinstance(found, str):
            found = str(found).lower() if isinstance(found, bool) else str(found)
        return found in plain or (glob is not None and glob.match(found[:LOOKED_AT]) is not None)

    return matches


def _map_condition(key: str, value: Any, path: tuple[str | int, ...]) -> Predicate:
    matches = _map_matcher(key, value, path, nested=key == "inputs")
    read = _MAP_READERS[key]
    return lambda view: None if (found := read(view)) is UNKNOWN else matches(found)


def _map_matcher(
    key: str, value: Any, path: tuple[str | int, ...], *, nested: bool
) -> Callable[[Any], bool]:
    """A test for some entries of a map; those of a map in it, too, where it may be nested."""
    if not isinstance(value, Mapping) or not value:
        raise SelectorError(f"`{key}` takes a map of names and globs", path)
    tests = [
        (
            name,
            _map_matcher(key, item, (*path, name), nested=True)
            if nested and isinstance(item, Mapping)
            else _matcher(item, (*path, name)),
        )
        for name, item in value.items()
    ]

    def matches(found: Any) -> bool:
        entries = found if isinstance(found, Mapping) else {}
        return all([test(entries.get(name)) for name, test in tests])

    return matches


_MAP_READERS: Mapping[str, Callable[[View], Any]] = {
    "annotations": lambda view: view.workload.metadata.get("annotations"),
    "inputs": lambda view: view.task.peek("inputs"),
    "labels": lambda view: view.workload.metadata.get("labels"),
}


def _role_condition(matches: Callable[[Any], bool]) -> Predicate:
    def test(view: View) -> bool | None:
        if view.any_role:
            return True
        if view.pod is None:
            return _any(test(View(view.task, view.workload, pod)) for pod in view.workload.pods())
        results = {matches(role) or matches(role.partition(":")[0]) for role in view.pod.roles}
        # One pod spec may serve several roles, and be told apart at `admit` only.
        return None if len(results) > 1 else results == {True}

    return test


def _requests_condition(value: Any, matches: Callable[[Any], bool]) -> Predicate:
    names = [str(name) for name in (value if isinstance(value, list) else [value])]
    plain = names if not any(char in name for name in names for char in "*?[") else None

    def asks(pod: SeenPod) -> bool:
        if plain is not None:
            return any([pod.requests(name) for name in plain])
        return any(matches(name) and pod.requests(name) for name in pod.resource_names)

    def test(view: View) -> bool | None:
        if view.pod is not None:
            return asks(view.pod)
        return any(map(asks, view.workload.pods()))

    return test
