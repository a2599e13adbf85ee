"""The fields of a Flyte task's `custom` that are no pod's, by the type of the task.

flyteidl/plugins/*.proto. What reaches pods (images, resources, pod specs, commands) is not among
them: other transformers change it, and what one execution may override of it is decided apart.
Flyte's plugins leave out unknown fields without a word, so that a wrong name is found here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from kubetailor.registry import CannotChangeError, InvalidObjectError, Workload
from kubetailor.transformers._task_fields import put
from kubetailor.workloads import Path, dotted, nearest

__all__ = ["FIELDS", "STRINGS", "remove_field", "set_fields"]

Field: TypeAlias = "type | tuple[str, ...] | Mapping[str, Field]"
"""A type, the names of an enum, or what is below."""

STRINGS: Final = dict
"""A map of strings."""

_RUN_POLICY: Final[Mapping[str, Field]] = {
    "cleanPodPolicy": (
        "CLEANPOD_POLICY_NONE",
        "CLEANPOD_POLICY_RUNNING",
        "CLEANPOD_POLICY_ALL",
    ),
    "ttlSecondsAfterFinished": int,
    "activeDeadlineSeconds": int,
    "backoffLimit": int,
}
FIELDS: Final[Mapping[str, Mapping[str, Field]]] = {
    "dask": {},
    "mpi": {"runPolicy": _RUN_POLICY, "slots": int},
    "pytorch": {
        "runPolicy": _RUN_POLICY,
        "elasticConfig": {"rdzvBackend": str, "nprocPerNode": int, "maxRestarts": int},
    },
    "ray": {
        "shutdownAfterJobFinishes": bool,
        "ttlSecondsAfterFinished": int,
        "rayCluster": {
            "enableAutoscaling": bool,
            "autoscalerOptions": {
                "upscalingMode": (
                    "UPSCALING_MODE_UNSPECIFIED",
                    "UPSCALING_MODE_DEFAULT",
                    "UPSCALING_MODE_AGGRESSIVE",
                    "UPSCALING_MODE_CONSERVATIVE",
                ),
                "idleTimeoutSeconds": int,
            },
            "headGroupSpec": {"rayStartParams": STRINGS},
        },
    },
    "spark": {"hadoopConf": STRINGS},
    "tensorflow": {"runPolicy": _RUN_POLICY},
}
_LARGEST: Final = 2**31 - 1
_ELASTIC: Final = ("custom", "elasticConfig")


def set_fields(workload: Workload, values: Mapping[str, Any]) -> None:
    """Set fields of `custom`; null takes one off.

    Args:
        workload: the task.
        values: fields, as protobuf writes them in JSON.

    Raises:
        CannotChangeError: a task of this type has no such field.
        InvalidObjectError: the field takes no such value.
    """
    _set(workload, ("custom",), _fields_of(workload), values)


def _set(
    workload: Workload, path: Path, fields: Mapping[str, Field], values: Mapping[str, Any]
) -> None:
    for name, value in values.items():
        field, place = _field(workload, path, fields, name), (*path, name)
        if value is None:
            put(workload, place, None)
        elif isinstance(field, Mapping):
            _set(workload, place, field, _map(place, value))
        elif field is STRINGS:
            for key, text in _map(place, value).items():
                if not isinstance(text, str | None):
                    raise InvalidObjectError(f"{text!r} is no string", field=dotted(place))
                put(workload, (*place, key), text)
        else:
            put(workload, place, _checked(place, field, value))


def remove_field(workload: Workload, name: str) -> None:
    """Take a field of `custom` off.

    Args:
        workload: the task.
        name: the field, with dots: ``runPolicy.backoffLimit``; below a map of strings the rest is
            one key.

    Raises:
        CannotChangeError: a task of this type has no such field.
    """
    path: Path = ("custom",)
    field: Field = _fields_of(workload)
    rest: str | None = name
    while rest is not None:
        if isinstance(field, Mapping):
            part, _, below = rest.partition(".")
            field = _field(workload, path, field, part)
            path, rest = (*path, part), below or None
        elif field is STRINGS:
            path, rest = (*path, rest), None
        else:
            raise CannotChangeError(f"nothing is below it: {name!r}", field=dotted(path))
    put(workload, path, None)


def _fields_of(workload: Workload) -> Mapping[str, Field]:
    kind = str(workload.get("type"))
    if kind not in FIELDS:
        raise CannotChangeError(
            f"a task of type {kind!r} has no task config that is known; there is one for "
            f"{', '.join(FIELDS)}",
            field="custom",
        )
    return FIELDS[kind]


def _field(workload: Workload, path: Path, fields: Mapping[str, Field], name: str) -> Field:
    if name not in fields:
        raise CannotChangeError(
            f"the task config of a {workload.get('type')} task has no {name!r} to set; "
            f"{nearest(name, fields, what='fields')}",
            field=dotted(path),
        )
    if path == _ELASTIC and workload.get(*_ELASTIC) is None:
        raise CannotChangeError(
            "the task is not Elastic, and gets no such config", field=dotted(path)
        )
    return fields[name]


def _map(path: Path, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidObjectError(f"it takes a map, not {value!r}", field=dotted(path))
    return value


def _checked(path: Path, field: Field, value: Any) -> Any:
    if isinstance(field, tuple):
        takes, fits = ", ".join(field), value in field
    elif field is int:
        takes, fits = f"a whole number up to {_LARGEST}", type(value) is int
        fits = fits and 0 <= value <= _LARGEST
    else:
        takes = "true or false" if field is bool else "a string"
        fits = type(value) is field
    if not fits:
        raise InvalidObjectError(f"it takes {takes}, not {value!r}", field=dotted(path))
    return value
