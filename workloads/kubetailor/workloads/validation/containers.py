"""What a container says of itself: variables, ports, probes, hooks, its security context.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetailor.workloads.draft import Json, JsonMap, Path, as_list, as_map
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.names import check_env_name
from kubetailor.workloads.validation.authored import is_port_name
from kubetailor.workloads.validation.parts import Check, Checks, differs, fault, given, new

__all__ = ["CHECKS"]

_VALUE_NEEDS = {
    "configMapKeyRef": "key",
    "fieldRef": "fieldPath",
    "fileKeyRef": "key",
    "resourceFieldRef": "resource",
    "secretKeyRef": "key",
}
"""Source of a variable's value -> the field that it must have."""

_ENV_FROM_NEEDS = {"configMapRef": "name", "secretRef": "name"}
_PROBES = ("exec", "grpc", "httpGet", "tcpSocket")
_HOOKS = ("exec", "httpGet", "sleep", "tcpSocket")
_IDS = ("fsGroup", "runAsGroup", "runAsUser")
_LARGEST_ID = 2**31 - 1


# env ---------------------------------------------------------------------------------------------


def _env(before: Json, entries: Json, path: Path) -> None:
    for index, entry in new(before, entries):
        name = entry.get("name", entry.get("key"))  # a Flyte task's container says `key`
        value, source = entry.get("value"), entry.get("valueFrom")
        try:
            check_env_name(name)
        except InvalidObjectError as error:
            raise fault(error, *path, index) from None
        if value is not None and not isinstance(value, str):
            raise fault(f"{name}: the value must be a string, found {value!r}", *path, index)
        if source is None:
            continue
        if value:
            raise fault(f"{name}: either value or valueFrom", *path, index)
        for text in _source_faults(as_map(source), _VALUE_NEEDS):
            raise fault(f"{name}: {text}", *path, index, "valueFrom")


def _env_from(before: Json, entries: Json, path: Path) -> None:
    for index, entry in new(before, entries):
        for text in _source_faults(entry, _ENV_FROM_NEEDS):
            raise fault(text, *path, index)
        prefix = entry.get("prefix")
        if prefix:
            try:
                check_env_name(prefix)
            except InvalidObjectError as error:
                raise fault(error, *path, index, "prefix") from None


def _source_faults(union: JsonMap, needs: dict[str, str]) -> Iterator[str]:
    sources = given(union, needs)
    if len(sources) != 1:
        yield f"it takes one of {', '.join(needs)}; found {' and '.join(sources) or 'none'}"
    for source in sources:
        if not as_map(union[source]).get(needs[source]):
            yield f"{source} needs {needs[source]}"


# ports, probes, hooks ----------------------------------------------------------------------------


def _ports(before: Json, entries: Json, path: Path) -> None:
    names = [as_map(entry).get("name") for entry in as_list(entries)]
    for index, entry in new(before, entries):
        name = names[index]
        if "containerPort" not in entry or not name:  # what else is called so is not ours
            continue
        if not is_port_name(name):
            raise fault(
                f"the port name {name!r} must be at most 15 lower-case alphanumeric characters or "
                "'-', with a letter among them",
                *path,
                index,
                "name",
            )
        if names.count(name) > 1:
            raise fault(f"port {name!r} is there twice", *path, index)


def _probe(field: str) -> Check:
    def check(before: Json, probe: Json, path: Path) -> None:
        if not isinstance(probe, dict):
            return
        if before is None or differs(before, probe, *_PROBES):
            _one_handler(probe, _PROBES, path)
        number = probe.get("successThreshold")
        if number in (None, 0, 1) or field == "readinessProbe":
            return
        if differs(before, probe, "successThreshold"):
            raise fault(f"successThreshold of a {field} must be 1, found {number}", *path)

    return check


def _lifecycle(before: Json, hooks: Json, path: Path) -> None:
    old = as_map(before)
    for name in given(as_map(hooks), ("postStart", "preStop")):
        hook = as_map(hooks[name])
        if name not in old or differs(old[name], hook, *_HOOKS):
            _one_handler(hook, _HOOKS, (*path, name))


def _one_handler(action: JsonMap, handlers: tuple[str, ...], path: Path) -> None:
    found = given(action, handlers)
    if len(found) != 1:
        told = f"it takes one of {', '.join(handlers)}; found {' and '.join(found) or 'none'}"
        raise fault(told, *path)


# security contexts -------------------------------------------------------------------------------


def _security_context(before: Json, context: Json, path: Path) -> None:
    """The one of a container, and that of a pod."""
    if not isinstance(context, dict):
        return
    for text in _escalation_faults(before, context):
        raise fault(text, *path)
    for field in given(context, _IDS):
        number = context[field]
        if isinstance(number, int | float) and 0 <= number <= _LARGEST_ID:
            continue
        if differs(before, context, field):
            raise fault(f"{field} {number}: must be from 0 to {_LARGEST_ID}", *path)
    for field in given(context, ("seccompProfile", "appArmorProfile")):
        profile = as_map(context[field])
        local = profile.get("type") == "Localhost"
        if local is not bool(profile.get("localhostProfile")) and differs(before, context, field):
            raise fault(
                "localhostProfile goes with the type Localhost, and that with it", *path, field
            )


def _escalation_faults(before: Json, context: JsonMap) -> Iterator[str]:
    keys = ("allowPrivilegeEscalation", "capabilities", "privileged")
    if context.get(keys[0]) is not False or not differs(before, context, *keys):
        return
    if context.get("privileged"):
        yield "privileged: true cannot go with allowPrivilegeEscalation: false"
    # pkg/apis/core/validation, `validateSecurityContext`: spelt so, and only so
    if "CAP_SYS_ADMIN" in as_list(as_map(context.get("capabilities")).get("add")):
        yield "CAP_SYS_ADMIN cannot go with allowPrivilegeEscalation: false"


CHECKS: Final[Checks] = {
    "env": _env,
    "envFrom": _env_from,
    "lifecycle": _lifecycle,
    "ports": _ports,
    "securityContext": _security_context,
    **{field: _probe(field) for field in ("livenessProbe", "readinessProbe", "startupProbe")},
}
