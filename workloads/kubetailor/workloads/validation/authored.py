"""What the API server or an operator always refuses, whoever wrote it.

Checked on the whole of each pod spec that a chain changed: what comes out of it would never run,
and a task is better refused while it is registered than when its pod is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kubetailor.workloads.draft import Json, JsonMap, Path, as_list, as_map
from kubetailor.workloads.errors import InvalidObjectError
from kubetailor.workloads.validation.parts import TEMPLATE_GROUPS, fault

if TYPE_CHECKING:
    from kubetailor.workloads.kinds import Kind

__all__ = [
    "check_container_names",
    "check_pod_spec",
    "check_texts",
    "is_port_name",
    "unread_fields",
]

_CONTAINERS = ("initContainers", "containers")

_PLACEMENT = (
    "affinity",
    "nodeSelector",
    "runtimeClassName",
    "tolerations",
    "topologySpreadConstraints",
)
# k8s.io/apimachinery/pkg/util/validation, `IsValidPortName`
_PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])(?!.*--)[a-z0-9]([a-z0-9-]*[a-z0-9])?")

_NAMED: Mapping[str, tuple[str, str]] = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", "paddle"),
    "JAXJob": ("jaxReplicaSpecs", "jax"),
}
"""Kind -> its replica specs, and the container that the training operator's webhook asks for.

https://github.com/kubeflow/trainer/tree/release-1.9/pkg/webhooks
"""


def check_texts(values: JsonMap, path: Path, what: str = "") -> None:
    """Every value of a map of strings is one, or null.

    Raises:
        InvalidObjectError: one is a boolean or a number, as YAML makes of ``true`` and ``1``.
    """
    for key, value in values.items():
        if not isinstance(value, str) and value is not None:
            raise _no_text(f"{what}{key}", value, path)


def check_pod_spec(spec: JsonMap, path: Path) -> None:
    """What is a string, a port or a name of one in a pod spec.

    Raises:
        InvalidObjectError: the first fault, with its path.
    """
    for field in _CONTAINERS:
        for index, container in enumerate(as_list(spec.get(field))):
            if isinstance(container, dict):
                _check_container(container, (*path, field, index))
    selector = spec.get("nodeSelector")
    if isinstance(selector, dict):
        check_texts(selector, (*path, "nodeSelector"), "label ")


def check_container_names(before: JsonMap, after: JsonMap) -> None:
    """The container that the training operator asks for is in each template that changed.

    Raises:
        InvalidObjectError: it is not.
    """
    kind, version = str(after.get("kind")), str(after.get("apiVersion"))
    if kind not in _NAMED or not version.startswith("kubeflow.org/"):
        return
    field, name = _NAMED[kind]
    for replica, template in as_map(as_map(after.get("spec")).get(field)).items():
        was = as_map(as_map(as_map(before.get("spec")).get(field)).get(replica))
        path = ("template", "spec", "containers")
        containers = _at(template, path)
        if _at(template, path[:-1]) is _at(was, path[:-1]) or not isinstance(containers, list):
            continue
        names = [as_map(entry).get("name") for entry in containers]
        if name not in names:
            found = ", ".join(map(str, names))
            text = f"a container of a {kind} must be called {name}, found {found}"
            raise fault(text, "spec", field, replica, *path)


def unread_fields(root: JsonMap, kind: Kind) -> Iterator[tuple[str, str]]:
    """The (warning, field) of each field of a pod spec that is written where nothing reads it.

    The API server takes a field that a custom resource's schema does not have off without a word:
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
    """
    spec = root.get("spec")
    if kind.group not in TEMPLATE_GROUPS or not isinstance(spec, dict):
        return
    for field in _PLACEMENT:
        if spec.get(field) is not None:
            text = f"spec.{field} is not read by {kind.name}; write it in the pod templates"
            yield text, f"spec.{field}"


def _check_container(container: JsonMap, path: Path) -> None:
    for field, check in _CHECKS.items():
        value = container.get(field)
        if value is not None:
            check(value, (*path, field))


def _check_words(words: Json, path: Path) -> None:
    for index, word in enumerate(as_list(words)):
        if not isinstance(word, str):
            raise _no_text(path[-1], word, (*path, index))


def _check_env(env: Json, path: Path) -> None:
    for index, entry in enumerate(as_list(env)):
        value = entry.get("value") if isinstance(entry, dict) else None
        if not isinstance(value, str) and value is not None:
            raise _no_text(entry.get("name"), value, (*path, index))


def _check_ports(ports: Json, path: Path) -> None:
    for index, entry in enumerate(as_list(ports)):
        for field in ("containerPort", "hostPort"):
            port = as_map(entry).get(field)
            if port is not None and not _is_number(port, least=0):
                raise _no_port(port, "must be a number of at most 65535", (*path, index, field))


def _check_action(action: Json, path: Path) -> None:
    """A probe, or what a hook does."""
    for field in ("httpGet", "tcpSocket"):
        port = as_map(as_map(action).get(field)).get("port")
        if port is None or _is_number(port, least=1):
            continue
        if isinstance(port, str) and "{{" in port:
            continue  # Argo fills it in
        if not is_port_name(port):
            raise _no_port(port, "must be a number or a port name", (*path, field, "port"))


def is_port_name(name: Json) -> bool:
    """Whether a port can be called so."""
    return isinstance(name, str) and _PORT_NAME.fullmatch(name) is not None


def _check_hooks(hooks: Json, path: Path) -> None:
    for field, action in as_map(hooks).items():
        _check_action(action, (*path, field))


_CHECKS: Mapping[str, Callable[[Json, Path], None]] = {
    "args": _check_words,
    "command": _check_words,
    "env": _check_env,
    "lifecycle": _check_hooks,
    "livenessProbe": _check_action,
    "ports": _check_ports,
    "readinessProbe": _check_action,
    "startupProbe": _check_action,
}


def _is_number(value: Json, *, least: int) -> bool:
    # A number that came through protobuf is a float.
    return type(value) in (int, float) and value % 1 == 0 and least <= value <= 65535


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = as_map(value).get(key)
    return value


def _no_text(name: Any, value: Json, path: Path) -> InvalidObjectError:
    return fault(f"{name}: the value must be a string, found {value!r}; quote it", *path)


def _no_port(port: Json, rule: str, path: Path) -> InvalidObjectError:
    shown = f'"{port}"' if isinstance(port, str) else repr(port)
    return fault(f"the port {shown} {rule}", *path)
