"""Parameters that are names or labels, in the form that Kubernetes demands of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from kubetailor.transformers.types import String
from kubetailor.workloads import InvalidObjectError
from kubetailor.workloads.metadata import FLYTE_LABELS
from kubetailor.workloads.names import check_key, check_label_value, check_object_name

__all__ = ["Key", "LabelKey", "LabelValue", "Name", "ObjectLabel", "ObjectName"]


def _label_key(key: str) -> str:
    try:
        return check_key(key)
    except InvalidObjectError as error:
        raise ValueError(str(error)) from None


def _own_label_key(key: str) -> str:
    if key in FLYTE_LABELS:
        raise ValueError(f"label {key!r} is Flyte's own and never written")
    return _label_key(key)


def _label_value(value: str) -> str:
    try:
        return check_label_value("", value)
    except InvalidObjectError as error:
        raise ValueError(str(error).removeprefix("label : ")) from None


Key = Annotated[str, AfterValidator(_label_key)]
"""A key of a label or annotation."""

LabelKey = Annotated[str, AfterValidator(_own_label_key)]
"""A key of a label, other than those that Flyte finds its objects by."""

LabelValue = Annotated[String, AfterValidator(_label_value)]
"""The value of a label, and so of a node selector."""


def _name(name: str) -> str:
    if not name:
        raise ValueError("a name must not be empty")
    return _label_value(name)


Name = Annotated[str, AfterValidator(_name)]
"""The name of an object of Kubernetes that a label may hold."""


def _object_name(name: str) -> str:
    try:
        return check_object_name(name)
    except InvalidObjectError as error:
        raise ValueError(str(error)) from None


ObjectName = Annotated[str, AfterValidator(_object_name)]
"""The name of an object of Kubernetes: a DNS subdomain."""

ObjectLabel = Annotated[Name, AfterValidator(_object_name)]
"""The same, where it is the value of a label."""
