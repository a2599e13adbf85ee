"""What a FlyteWorkflow says of the tasks in it."""

from __future__ import annotations

from typing import Any, Final

from kubetailor.plugins.execution.literals import plain_inputs
from kubetailor.workloads import Draft, JsonMap

__all__ = ["FLYTE_GROUP", "bound_inputs", "is_execution", "known_of_execution"]

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
