"""What a FlyteWorkflow says of the tasks in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from kubetailor.workloads import Draft, JsonMap

__all__ = ["FLYTE_GROUP", "bound_inputs", "is_execution", "known_of_execution", "plain_inputs"]

FLYTE_GROUP: Final = "flyte.lyft.com"


def is_execution(obj: JsonMap) -> bool:
    """Whether an object is a FlyteWorkflow."""
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    return obj.get("kind") == "FlyteWorkflow" and group == FLYTE_GROUP


def known_of_execution(obj: JsonMap, namespace: str | None) -> dict[str, Any]:
    """What a FlyteWorkflow says of every task in it; of its launch plan it says nothing.

    Args:
        obj: the FlyteWorkflow.
        namespace: the namespace of the request.
    """
    read = Draft(obj).get
    known: dict[str, Any] = {
        "namespace": namespace,
        "inputs": plain_inputs(read(("inputs", "literals"))),
    }
    for field, name in (("project", "project"), ("domain", "domain"), ("execution", "name")):
        if isinstance(value := read(("executionId", name)), str):
            known[field] = value
    identifier = read(("spec", "id"))  # project:domain:name
    if isinstance(identifier, str) and identifier.count(":") >= 2:
        known["workflow"] = identifier.split(":", 2)[2]
    return known


def bound_inputs(spec: JsonMap) -> dict[str, Any]:
    """The inputs of a node that are plain values, written in the workflow itself.

    Args:
        spec: the node of a FlyteWorkflow.
    """
    found = spec.get("inputBindings")
    bindings = [binding for binding in (found if isinstance(found, list) else ()) if binding]
    literals = {
        binding["var"]: binding.get("binding")
        for binding in bindings
        if isinstance(binding, dict) and isinstance(binding.get("var"), str)
    }
    return plain_inputs(literals)


_PRIMITIVES: Final[Mapping[str, type]] = {
    "integer": int,
    "floatValue": float,
    "stringValue": str,
    "boolean": bool,
}


def plain_inputs(literals: Any) -> dict[str, Any]:
    """The inputs that are plain values.

    Args:
        literals: flyteidl.core.Literal in JSON form, by name.
    """
    return dict(_plain(literals))


def _plain(literals: Any) -> Iterator[tuple[str, Any]]:
    for name, literal in literals.items() if isinstance(literals, dict) else ():
        primitive = Draft({"literal": literal}).get(("literal", "scalar", "primitive"))
        for kind, value in primitive.items() if isinstance(primitive, dict) else ():
            if kind in _PRIMITIVES:
                with suppress(TypeError, ValueError):
                    yield name, _PRIMITIVES[kind](value)
