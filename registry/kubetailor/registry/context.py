"""What is known of the task behind a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, overload

from kubetailor.registry.errors import DeferError
from kubetailor.workloads import nearest

if TYPE_CHECKING:
    from kubetailor.workloads import Workload

__all__ = [
    "FIELDS",
    "PHASES",
    "UNKNOWN",
    "Phase",
    "TaskContext",
    "Unknown",
    "known_of_template",
    "parse_task_fields",
]

Phase: TypeAlias = Literal["serialize", "launch", "admit"]
PHASES: tuple[Phase, ...] = ("serialize", "launch", "admit")
"""The moments at which a chain may run, in order."""

T = TypeVar("T")


class Unknown:
    """The value of a field that this phase cannot know."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


class _Field(Generic[T]):
    """A field that raises DeferError where it is unknown."""

    def __set_name__(self, owner: type[TaskContext], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, obj: None, owner: type[TaskContext]) -> _Field[T]: ...
    @overload
    def __get__(self, obj: TaskContext, owner: type[TaskContext]) -> T | None: ...
    def __get__(self, obj: TaskContext | None, owner: type[TaskContext]) -> _Field[T] | T | None:
        if obj is None:
            return self
        value: T | Unknown | None = obj.peek(self.name)
        if isinstance(value, Unknown):
            raise DeferError(self.name)
        return value


class TaskContext:
    """What is known of the task.

    None is known to be absent. Reading what cannot be known yet defers the step, and all after
    it, to the next phase.

    Attributes:
        phase: ``serialize``, ``launch`` or ``admit``.
        project: the Flyte project.
        domain: the Flyte domain.
        workflow: the name of the top-level workflow.
        launch_plan: the name of the launch plan.
        task: the name of the task, such as ``pipelines.train.fit``.
        task_type: Flyte's task type, such as ``pytorch``.
        version: the registered version.
        node: the id of the node; in a subworkflow the path of ids, such as ``n1.n0``.
        execution: the id of the execution.
        attempt: the attempt, from 0.
        inputs: the inputs, by name: the workflow's, and over them what is bound to the task itself;
            a `dict`, a dataclass or a model is a map again. Lists, files, data sets, times and
            durations are not seen, as if they were not given.
        namespace: the Kubernetes namespace.
    """

    __slots__ = ("_values", "_workload", "phase")

    project: _Field[str] = _Field()
    domain: _Field[str] = _Field()
    workflow: _Field[str] = _Field()
    launch_plan: _Field[str] = _Field()
    task: _Field[str] = _Field()
    task_type: _Field[str] = _Field()
    version: _Field[str] = _Field()
    node: _Field[str] = _Field()
    execution: _Field[str] = _Field()
    attempt: _Field[int] = _Field()
    inputs: _Field[Mapping[str, Any]] = _Field()
    namespace: _Field[str] = _Field()

    def __init__(self, phase: Phase = "admit", **values: Any) -> None:
        """A context; fields that are not given are unknown.

        Raises:
            TypeError: a field that there is not.
        """
        self.phase: Phase = phase
        if not _FIELDS.issuperset(values):
            unknown = sorted(values.keys() - _FIELDS)
            raise TypeError(f"TaskContext has no field {', '.join(unknown)}")
        self._values = values
        self._workload: Workload | None = None

    def __repr__(self) -> str:
        known = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return f"TaskContext({self.phase!r}, {known})"

    def peek(self, field: str) -> Any:
        """A field, or UNKNOWN."""
        return self._values.get(field, UNKNOWN)

    def about(self, workload: Workload) -> TaskContext:
        """This context for a workload, whose labels and annotations it shows."""
        found = TaskContext(self.phase)
        found._values = self._values
        found._workload = workload
        return found

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that the object has so far."""
        return self._workload.labels if self._workload else {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations that the object has so far."""
        return self._workload.annotations if self._workload else {}


FIELDS: tuple[str, ...] = tuple(
    name for name, value in vars(TaskContext).items() if isinstance(value, _Field)
)
"""The fields that a phase may know or not."""

_FIELDS = frozenset(FIELDS)

GIVEN_FIELDS: tuple[str, ...] = tuple(name for name in FIELDS if name not in ("inputs", "attempt"))
"""Those that `--task` and `KUBETAILOR_TASK` may give."""


def known_of_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """What a task template says of its task, as fields of a context.

    What is empty in its id is not known yet, but its name: that is all the name it has.

    Args:
        template: flyteidl.core.TaskTemplate in JSON form.
    """
    found = template.get("id")
    given = found if isinstance(found, dict) else {}
    known = {key: given[key] for key in ("project", "domain", "version") if given.get(key)}
    return {**known, "task": given.get("name"), "task_type": template.get("type")}


def parse_task_fields(pairs: tuple[str, ...] | list[str]) -> dict[str, str]:
    """``key=value`` pairs (of `--task` or `KUBETAILOR_TASK`) as fields of a context.

    Raises:
        ValueError: no ``=``, or a field that there is not.
    """
    fields = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"expected key=value, found {pair!r}")
        if key not in GIVEN_FIELDS:
            raise ValueError(f"unknown field {key!r}; {nearest(key, GIVEN_FIELDS)}")
        fields[key] = value
    return fields
