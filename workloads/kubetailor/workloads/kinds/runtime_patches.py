"""The parts of a TrainJob: its runtime's jobs, and what may be said of each."""

from __future__ import annotations

from collections.abc import Iterator

from kubetailor.workloads.draft import Json, JsonMap, Path, value_at

__all__ = [
    "JOBS",
    "KUEUE",
    "MANAGER",
    "NODE",
    "OLDER",
    "OWN",
    "PATCH",
    "POD",
    "TEMPLATE",
    "TRAINER",
    "patches",
    "says",
]

MANAGER = "kubetailor.dev/chain"
"""The `manager` of the patch that a chain adds."""

KUEUE = "kueue.x-k8s.io/manager"
"""That of Kueue's (kubernetes-sigs/kueue, pkg/controller/jobs/trainjob/trainjob_controller.go)."""

OLDER = ("podTemplateOverrides", "podSpecOverrides")
"""What was in the place of `runtimePatches` before v2.2."""

JOBS: Path = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs")
"""From a patch to those of the replicated jobs."""

TEMPLATE: Path = ("template", "spec", "template")
"""From there to the pod template."""

POD = frozenset(
    {
        "affinity",
        "imagePullSecrets",
        "nodeSelector",
        "schedulingGates",
        "securityContext",
        "serviceAccountName",
        "tolerations",
        "volumes",
    }
)
"""The fields of a PodSpecPatch of v2.2."""

PATCH = frozenset({"securityContext", "volumeMounts"})
"""The fields of a ContainerPatch; `env` is refused for the containers of `OWN`."""

NODE = "node"
"""The job that trains."""

TRAINER = {
    "args": "args",
    "command": "command",
    "env": "env",
    "image": "image",
    "resources": "resourcesPerNode",
}
"""Field of its container -> that of the TrainJob's `trainer`."""

_INITIALIZER = {"env": "env"}
OWN: dict[str, tuple[Path, dict[str, str]]] = {
    NODE: (("spec", "trainer"), TRAINER),
    "dataset-initializer": (("spec", "initializer", "dataset"), _INITIALIZER),
    "model-initializer": (("spec", "initializer", "model"), _INITIALIZER),
}
"""Job, and its container -> where the TrainJob has fields of its own for it, and which."""


def patches(root: JsonMap, at: Path, job: str) -> Iterator[tuple[Path, JsonMap]]:
    """The (path, pod template) of each patch of a replicated job."""
    place = (*at, "spec", "runtimePatches")
    entries = value_at(root, place)
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        jobs = value_at(entry, JOBS)
        if not isinstance(jobs, list) or value_at(entry, ("manager",)) == KUEUE:
            continue
        for number, patch in enumerate(jobs):
            if value_at(patch, ("name",)) == job:
                found = value_at(patch, TEMPLATE)
                yield (*place, index, *JOBS, number, *TEMPLATE), found or {}


def says(value: Json, field: str = "") -> bool:
    """Whether there is more in a patch than empty parts, and containers without a field."""
    if isinstance(value, dict):
        silent = "name" if field == "containers" else None
        return any(says(item, key) for key, item in value.items() if key != silent)
    if isinstance(value, list):
        return any(says(item, field) for item in value)
    return value is not None
