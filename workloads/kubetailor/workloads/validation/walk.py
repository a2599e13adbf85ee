"""The way over an object, from what changed to what changed in it.

Each rule is one that the API server applies and that the chain may have broken; of the author's own
mistakes those in a map or a pod spec that the chain changed, if they never run (`authored`). The
others are left for the API server to report.
"""

from __future__ import annotations

from typing import Final

from kubetailor.workloads.draft import Json, JsonMap, Path, as_list, as_map, unshared
from kubetailor.workloads.validation import containers, resources, scheduling, texts, volumes
from kubetailor.workloads.validation.authored import check_container_names, check_pod_spec
from kubetailor.workloads.validation.parts import Checks
from kubetailor.workloads.validation.pods import check_containers, volumes_elsewhere

__all__ = ["validate"]

_NESTED = (dict, list)
_LIMIT = 100  # deeper than any kind nests its pods

_CHECKS: Final[Checks] = {
    **containers.CHECKS,
    **resources.CHECKS,
    **scheduling.CHECKS,
    **texts.CHECKS,
    **volumes.CHECKS,
}
_LEAVES: Final = frozenset(
    {
        *("annotations", "env", "envFrom", "labels", "matchLabels", "nodeAffinity"),
        *("nodeSelector", "ports", "resources", "schedulingGates", "tolerations"),
        *("securityContext", "volumeMounts"),
    }
)
"""Keys below which there is nothing more to check."""


def validate(before: JsonMap, after: JsonMap) -> None:
    """Check every part of `after` that is not shared with `before`.

    Raises:
        InvalidObjectError: the first fault, with its path.
    """
    _walk(before, after, (), volumes_elsewhere(after))
    check_container_names(before, after)


def _walk(before: Json, after: Json, path: Path, elsewhere: list[Json] | None) -> None:
    if before is after or len(path) > _LIMIT:
        return
    if isinstance(after, dict):
        old = as_map(before)
        if "containers" in after:
            check_pod_spec(after, path)
            check_containers(old, after, path, elsewhere)
            scheduling.check_gated(old, after, path)
        if old.get("labels") is not after.get("labels"):
            place = (*path, "labels")
            texts.check_flyte_labels(as_map(old.get("labels")), as_map(after.get("labels")), place)
        for key, value in after.items():
            was = old.get(key)
            if value is was:
                continue
            check = _CHECKS.get(key)
            if check is not None:
                check(was, value, (*path, key))
                if key in _LEAVES:
                    continue
            if isinstance(value, _NESTED):
                _walk(was, value, (*path, key), elsewhere)
    elif isinstance(after, list):
        was_list = as_list(before)
        for index, value in unshared(was_list, after):
            if isinstance(value, _NESTED):
                was = was_list[index] if index < len(was_list) else None
                _walk(was, value, (*path, index), elsewhere)
