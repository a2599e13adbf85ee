"""The forms that Kubernetes demands of names, labels and annotations.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kubetailor.workloads.errors import InvalidObjectError

__all__ = [
    "ANNOTATIONS_LIMIT",
    "check_env_name",
    "check_key",
    "check_label_value",
    "check_name",
    "check_object_name",
]

ANNOTATIONS_LIMIT = 256 * 1024  # bytes of all keys and values of one object

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FORM = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and start and end with an alphanumeric"
)


@lru_cache(maxsize=4096)
def check_key(key: str) -> str:
    """A label or annotation key (``[prefix/]name``), returned as it is, or InvalidObjectError."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        raise InvalidObjectError(
            f"key {key!r}: the prefix must be a DNS subdomain of at most 253 characters"
        )
    if len(name) > 63:
        raise InvalidObjectError(f"key {key!r}: the name has {len(name)} characters, at most 63")
    if not _NAME.fullmatch(name):
        raise InvalidObjectError(f"key {key!r}: the name {_FORM}")
    return key


@lru_cache(maxsize=4096)
def _check_label_text(key: str, value: str) -> str:
    if len(value) > 63:
        raise InvalidObjectError(
            f"label {key}: the value {value!r} has {len(value)} characters, at most 63"
        )
    if value and not _NAME.fullmatch(value):
        raise InvalidObjectError(f"label {key}: the value {value!r} {_FORM}")
    return value


def check_label_value(key: str, value: Any) -> str:
    """A label's value, returned as it is, or InvalidObjectError."""
    if not isinstance(value, str):
        raise InvalidObjectError(f"label {key}: the value must be a string, found {value!r}")
    return _check_label_text(key, value)


@lru_cache(maxsize=4096)
def _is_dns_label(name: str) -> bool:
    return len(name) <= 63 and "." not in name and _SUBDOMAIN.fullmatch(name) is not None


def check_name(name: Any, what: str) -> str:
    """A DNS label, as the names of containers and volumes are, or InvalidObjectError."""
    if not isinstance(name, str) or not _is_dns_label(name):
        raise InvalidObjectError(
            f"{what} {name!r}: must be at most 63 lower-case alphanumeric characters or '-', "
            "and start and end with an alphanumeric"
        )
    return name


def check_object_name(name: str) -> str:
    """A DNS subdomain, as the names of most objects are, or InvalidObjectError.

    https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
    """
    if len(name) > 253 or _SUBDOMAIN.fullmatch(name) is None:
        raise InvalidObjectError(
            f"name {name!r}: must be at most 253 lower-case alphanumeric characters, '-' or '.', "
            "and start and end with an alphanumeric"
        )
    return name


def _is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable()


def check_env_name(name: Any) -> str:
    """The name of an environment variable, or InvalidObjectError.

    https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/
    """
    if not isinstance(name, str) or not name or "=" in name or not _is_printable(name):
        raise InvalidObjectError(
            f"env name {name!r}: must be printable ASCII characters other than '=', and not empty"
        )
    return name
