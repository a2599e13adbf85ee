"""Views of a workload's parts as `kubernetes.client` models, without loss.

The client's models drop what they do not know, and rename every field. So a model is only what a
function sees: what it changed there is written back, and nothing else.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubetailor.workloads.diff import apply_ops, diff
from kubetailor.workloads.draft import Json, JsonMap
from kubetailor.workloads.errors import KubetailorError

if TYPE_CHECKING:
    from kubernetes.client import V1PodSpec

__all__ = ["from_model", "pod_spec_model", "through_model"]


def _client() -> Any:
    try:
        import kubernetes.client
    except ImportError as error:
        raise KubetailorError(
            "models of kubernetes.client need the package kubernetes: "
            "pip install 'kubetailor[kubernetes]'"
        ) from error
    return kubernetes.client


@functools.cache
def _api_client() -> Any:
    return _client().ApiClient()


def from_model(model: Any) -> Json:
    """A model of `kubernetes.client`, or lists and dicts of them, as JSON data in camelCase."""
    return _api_client().sanitize_for_serialization(model)


def pod_spec_model(spec: JsonMap) -> V1PodSpec:
    """A pod spec as a `V1PodSpec` of its own; numbers of quantities become text."""
    # The client refuses a spec without containers, as one that is laid over another may be.
    readable = {"containers": [], **_quantities_as_text(spec)}
    model = _client().V1PodSpec
    if hasattr(model, "from_dict"):  # kubernetes 37 and later: pydantic models
        found: V1PodSpec = model.from_dict(readable)
        return found

    class Response:
        data = json.dumps(readable)

    found = _api_client().deserialize(Response(), model.__name__)
    return found


def _quantities_as_text(spec: JsonMap) -> JsonMap:
    def container(entry: Json) -> Json:
        resources = entry.get("resources") if isinstance(entry, dict) else None
        if not isinstance(resources, dict):
            return entry
        texts = {
            part: {
                name: value if isinstance(value, str) else str(value)
                for name, value in values.items()
            }
            if isinstance(values, dict) and part in ("limits", "requests")
            else values
            for part, values in resources.items()
        }
        return {**entry, "resources": texts}

    lists = ("containers", "initContainers")
    return {
        field: [container(entry) for entry in value]
        if field in lists and isinstance(value, list)
        else value
        for field, value in spec.items()
    }


def through_model(spec: JsonMap, change: Callable[[V1PodSpec], V1PodSpec | None]) -> JsonMap:
    """What `change` made of a pod spec: only its differences, applied to `spec`.

    Args:
        spec: the pod spec; it is not changed itself.
        change: changes the model in place and returns None, or returns a model.
    """
    model = pod_spec_model(spec)
    before = from_model(model)
    returned = change(model)
    after = from_model(model if returned is None else returned)
    return apply_ops(spec, diff(before, after))
