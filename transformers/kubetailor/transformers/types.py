"""Parameters that are Kubernetes objects, as Kubernetes writes them, and quantities."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    with_config,
)
from typing_extensions import NotRequired, TypedDict

from kubetailor.registry import Catalogue
from kubetailor.registry.accelerator import ACCELERATOR_FORMAT
from kubetailor.registry.entries import AcceleratorError
from kubetailor.workloads import InvalidObjectError
from kubetailor.workloads.affinity import check_values
from kubetailor.workloads.duration import duration_text, parse_duration
from kubetailor.workloads.quantity import quantity_text

__all__ = [
    "AcceleratorName",
    "Duration",
    "EnvValue",
    "NodeRequirement",
    "OnObject",
    "Quantity",
    "Requirement",
    "Toleration",
    "TolerationMatch",
    "strict",
]

_Type = TypeVar("_Type", bound=type)


def _scalar_text(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return value


def _string(value: Any) -> Any:
    """A string; from Python, the bool True is the text that YAML has for it."""
    return str(value).lower() if isinstance(value, bool) else _scalar_text(value)


def _quantity(value: str) -> str:
    try:
        return quantity_text(value)
    except InvalidObjectError as error:
        raise ValueError(str(error)) from None


Quantity = Annotated[str, BeforeValidator(_scalar_text), AfterValidator(_quantity)]
"""A Kubernetes quantity: ``500m``, ``16Gi``, or a plain number."""

String = Annotated[str, BeforeValidator(_string)]
"""A string of a map whose values Kubernetes has as strings."""


def _duration(value: str) -> str:
    seconds = parse_duration(f"{value}s" if value.replace(".", "", 1).isdecimal() else value)
    if seconds is None:
        raise ValueError(f"{value!r} is not a duration; write 90s, 1h30m, or a number of seconds")
    if seconds > _LONGEST:
        raise ValueError(f"{value} is more than FlytePropeller can count, {_LONGEST}s")
    return duration_text(seconds)


_LONGEST = (2**63 - 1) // 10**9 // 2
"""Twice a task's timeout is a deadline in Go, which counts nanoseconds in 64 bits."""

Duration = Annotated[str, BeforeValidator(_scalar_text), AfterValidator(_duration)]
"""A duration: ``90s``, ``1h30m``, or a plain number of seconds."""


def _accelerator(name: str, info: ValidationInfo) -> str:
    """A name that is in the catalogue of the config that is read."""
    if isinstance(info.context, Catalogue):
        try:
            info.context.require(name)
        except AcceleratorError as error:
            raise ValueError(str(error)) from None
    return name


AcceleratorName = Annotated[
    str, AfterValidator(_accelerator), Field(json_schema_extra={"format": ACCELERATOR_FORMAT})
]
"""The name of an accelerator in the catalogue."""

OnObject = Literal["object", "pods"]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


def names_to_remove(remove: Iterable[str] | None, set: Container[str] | None) -> Iterator[str]:
    """What to remove: not what is set anew, which a second run would move to the end."""
    return (name for name in remove or () if name not in (set or ()))


def strict(cls: _Type) -> _Type:
    """An object as Kubernetes writes it: what is not listed is an error."""
    return with_config(ConfigDict(extra="forbid"))(cls)


@strict
class Toleration(TypedDict):
    """A toleration, as Kubernetes writes it."""

    key: NotRequired[str]
    operator: NotRequired[Literal["Equal", "Exists"]]
    value: NotRequired[String]
    effect: NotRequired[Effect]
    tolerationSeconds: NotRequired[int]


@strict
class TolerationMatch(TypedDict):
    """What is given of it must agree."""

    key: NotRequired[str]
    operator: NotRequired[Literal["Equal", "Exists"]]
    value: NotRequired[String]
    effect: NotRequired[Effect]


@strict
class NodeRequirement(TypedDict):
    """A NodeSelectorRequirement, as Kubernetes writes it."""

    key: str
    operator: NodeOperator
    values: NotRequired[list[String]]


def _fitting(requirement: NodeRequirement) -> NodeRequirement:
    """https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#NodeSelectorRequirement."""
    try:
        check_values(requirement["operator"], requirement.get("values"))
    except InvalidObjectError as error:
        raise ValueError(str(error)) from None
    return requirement


Requirement = Annotated[NodeRequirement, AfterValidator(_fitting)]
"""A NodeSelectorRequirement with as many values as its operator takes."""


@strict
class EnvVarSource(TypedDict):
    """An EnvVarSource, as Kubernetes writes it: one of these."""

    configMapKeyRef: NotRequired[dict[str, Any]]
    fieldRef: NotRequired[dict[str, Any]]
    fileKeyRef: NotRequired[dict[str, Any]]
    resourceFieldRef: NotRequired[dict[str, Any]]
    secretKeyRef: NotRequired[dict[str, Any]]


@strict
class EnvValueFrom(TypedDict):
    """The value of a variable that comes from elsewhere."""

    valueFrom: EnvVarSource


EnvValue = String | EnvValueFrom
"""A text, or ``{valueFrom: …}`` with an EnvVarSource as Kubernetes writes it."""
