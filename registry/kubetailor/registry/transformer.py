"""Transformers: functions that change a workload or a pod, and what their signatures say."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import (
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    get_origin,
    overload,
)

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.context import TaskContext
from kubetailor.registry.selection import Selection
from kubetailor.registry.signature import body_of, members_of, source_of
from kubetailor.workloads import KubetailorError, Pod, Workload

__all__ = ["Options", "Transformer", "TransformerError", "options_of", "transformer"]

F = TypeVar("F", bound=Callable[..., Any])
Receiver: TypeAlias = Literal["pod", "workload", "pod_spec", "dict"]

_MARKER = "__kubetailor__"
_INJECTED: tuple[type, ...] = (TaskContext, Catalogue, Selection)


class TransformerError(KubetailorError):
    """A function that cannot be a transformer; the message names it and its file."""


@dataclass(frozen=True)
class Options:
    """What `@transformer` was given.

    Attributes:
        name: the name, without the plugin's; None for the function's own.
        atomic: as a default it is kept whole or not at all.
        replicas: it understands pods of which only image and resources are known, as the
            replicas in a Flyte task's `custom`.
        task_templates: it is about Flyte's task templates alone.
        queue: it chooses a queue, and so is for roots and never for their children.
        accelerator: it chooses an accelerator, which a node's own beats, and Kueue's flavour.
    """

    name: str | None = None
    atomic: bool = False
    replicas: bool = False
    task_templates: bool = False
    queue: bool = False
    accelerator: bool = False


@overload
def transformer(function: F, /) -> F: ...
@overload
def transformer(
    *,
    name: str | None = None,
    atomic: bool = False,
    replicas: bool = False,
    task_templates: bool = False,
    queue: bool = False,
    accelerator: bool = False,
) -> Callable[[F], F]: ...
def transformer(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    atomic: bool = False,
    replicas: bool = False,
    task_templates: bool = False,
    queue: bool = False,
    accelerator: bool = False,
) -> F | Callable[[F], F]:
    """Mark a function of a plugin module as a transformer.

    The annotation of its first parameter says what it receives: `Pod` or `V1PodSpec` once per
    pod, `Workload` or `dict` once per workload. A parameter annotated `TaskContext` is injected.
    The rest are the step's `with`, checked against the annotations when a config is loaded. It
    changes its argument in place and returns None, or returns the changed one.

    Args:
        function: the function, when used without parentheses.
        name: the name, without the plugin's; by default the function's own.
        atomic: as a default it is kept whole or not at all.
        replicas: it also wants pods of which only image and resources are known.
        task_templates: it is about Flyte's task templates alone; for all else its step is not
            applicable, which is counted and not warned of.
        queue: it chooses a queue: the webhook leaves it out for an object whose controller is a
            workload too, such as a pod of a Job.
        accelerator: it chooses an accelerator: an accelerator that a Flyte node states itself beats
            it, and the webhook leaves it out for what belongs to a workload that is queued.
    """

    def mark(target: F) -> F:
        options = Options(name, atomic, replicas, task_templates, queue, accelerator)
        setattr(target, _MARKER, options)
        return target

    return mark if function is None else mark(function)


def options_of(function: Any) -> Options | None:
    """What `@transformer` was given for a function, or None if it is not marked."""
    found = getattr(function, _MARKER, None)
    return found if isinstance(found, Options) else None


@dataclass(frozen=True)
class Transformer:
    """A registered transformer.

    Attributes:
        name: as a config names it: ``plugin.function``, or bare for a built-in.
        plugin: the plugin that registered it.
        function: the function.
        receiver: what it receives.
        injected: parameter -> type of what is injected.
        annotations: parameter -> annotation of what the step's `with` gives.
        required: the parameters without a default.
        options: what `@transformer` was given.
    """

    name: str
    plugin: str
    function: Callable[..., Any]
    receiver: Receiver
    injected: Mapping[str, type]
    annotations: Mapping[str, Any]
    required: frozenset[str]
    options: Options

    @classmethod
    @functools.lru_cache(maxsize=1024)  # a config that is loaded again finds its adapters made
    def of(
        cls, function: Callable[..., Any], *, name: str, plugin: str, options: Options
    ) -> Transformer:
        """Read the signature of a function.

        Raises:
            TransformerError: the first parameter has no annotation that says what the function
                receives, or a parameter cannot be given by a config.
        """
        where = f"transformer {name!r} ({source_of(function)})"
        try:
            hints = typing.get_type_hints(body_of(function), include_extras=True)
        except Exception as error:
            raise TransformerError(
                f"{where}: an annotation cannot be resolved: {error}; what annotations name must "
                "be imported when the module runs, not under TYPE_CHECKING"
            ) from error
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError) as error:
            raise TransformerError(f"{where}: it has no signature: {error}") from None
        if not parameters:
            raise TransformerError(f"{where}: it takes no parameter; the first is what it changes")
        if parameters[0].kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise TransformerError(
                f"{where}: the first parameter {str(parameters[0])!r} is not given by position"
            )
        if any(is_one(body_of(function)) for is_one in _NOT_PLAIN):
            raise TransformerError(
                f"{where}: it must be a plain function, not async or a generator"
            )
        receiver = _receiver(hints.get(parameters[0].name), parameters[0].name, where)
        injected: dict[str, type] = {}
        annotations: dict[str, Any] = {}
        required = set()
        for parameter in parameters[1:]:
            annotation = hints.get(parameter.name, Any)
            if parameter.kind not in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
                raise TransformerError(
                    f"{where}: parameter {parameter.name!r} cannot be given by name"
                )
            members = members_of(annotation)
            if kinds := [kind for kind in members if kind in _INJECTED]:
                if len(members) > 1:
                    raise TransformerError(
                        f"{where}: parameter {parameter.name!r} has the annotation {annotation!r}; "
                        f"a {kinds[0].__name__} is injected, and never read from a config"
                    )
                injected[parameter.name] = kinds[0]
                continue
            annotations[parameter.name] = annotation
            if parameter.default is parameter.empty:
                required.add(parameter.name)
        return cls(
            name, plugin, function, receiver, injected, annotations, frozenset(required), options
        )

    @property
    def doc(self) -> str:
        """The docstring, without indentation."""
        return inspect.getdoc(body_of(self.function)) or ""

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.doc.partition("\n")[0]

    @property
    def source(self) -> str:
        """``file:line`` of the function."""
        return source_of(self.function)

    @property
    def signature(self) -> inspect.Signature:
        """The function's signature."""
        return inspect.signature(self.function)

    @functools.cached_property
    def adapter(self) -> Any:
        """The pydantic TypeAdapter of the step's `with`."""
        from kubetailor.registry.parameters import adapter_of

        return adapter_of(self)


_NOT_PLAIN = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)


def _receiver(annotation: Any, parameter: str, where: str) -> Receiver:
    if annotation is Pod:
        return "pod"
    if annotation is Workload:
        return "workload"
    if annotation is dict or get_origin(annotation) is dict:
        return "dict"
    module = getattr(annotation, "__module__", "")
    if getattr(annotation, "__name__", "") == "V1PodSpec" and module.startswith("kubernetes."):
        return "pod_spec"
    given = "no annotation" if annotation is None else f"the annotation {annotation!r}"
    raise TransformerError(
        f"{where}: the first parameter {parameter!r} has {given}; it must be Pod, Workload, "
        "V1PodSpec or dict"
    )
