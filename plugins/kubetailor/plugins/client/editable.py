"""A task at a node in the words of the transformers, so that it can be read, and edited.

The document of a whole preview is::

    nodes:
      n1.n0:                     # the nested id; of a child execution `n3/n0`, its path before it
        task: train.fit          # these four say which task it is, and cannot be changed
        task_type: pytorch
        version: v1
        launches: ...            # only in a child execution: what that is an execution of
        cache: {cache: true, version: "1"}
        retries: 2
        timeout: 3600s           # null: no limit
        interruptible: null      # null: as the workflow and the execution have it
        labels: {team: speech}
        annotations: {}
        replicas: {worker: 3}    # only of tasks that have replicas
        spark_conf: {...}        # only of Spark tasks
        task_config: {...}       # `custom`, without what other words say
        pods:
          primary:               # the roles that share a pod spec, separated by commas
            gpu: {type: nvidia-a100-80gb, count: 2}  # only of pods that ask for one
            resources: {requests: {cpu: "4"}, limits: {}}
            image: registry/train:1
            env: {A: "1"}
            node_selector: {}
            tolerations: []
            priority_class: null
            rest: {...}          # all else of the pod spec, as Kubernetes writes it

Each word is a transformer's, and what stands there is what the transformer sets: maps are its `set`
(a key that goes is its `remove`), and `resources` and `cache` are its parameters. What is not there
is not said by the task. `rest` is for reading. So are a GPU's `device`, which is Flyte's word, and
`one_of`: where more than one entry of the catalogue may be meant, `type` is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubetailor.plugins.client.editable_pod import editable_pod
from kubetailor.plugins.client.preview import Preview
from kubetailor.registry import Catalogue
from kubetailor.workloads import Draft, Json, JsonMap, Workload
from kubetailor.workloads.task_pods import REPLICAS, overlay_places, ray_groups
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["TASK_WORDS", "document", "editable"]

_OURS: Final = "kubetailor.dev/"


def document(preview: Preview, catalogue: Catalogue, *, final: bool = True) -> JsonMap:
    """Every node of a preview, in the words of the transformers.

    Args:
        preview: the preview.
        catalogue: the accelerators.
        final: whether it is what will run, or else what is registered.
    """
    found: JsonMap = {}
    for execution in preview.executions:
        for node in execution.nodes:
            said = editable(node.final if final else node.registered, catalogue)
            if execution.path:
                head = ("task", "task_type", "version")
                own = {name: said.pop(name) for name in head}
                said = {**own, "launches": str(execution.registered.name), **said}
            found[node.title] = said
    return {"nodes": found}


def editable(template: JsonMap, catalogue: Catalogue) -> JsonMap:
    """A task template in the words of the transformers.

    Args:
        template: flyteidl.core.TaskTemplate in JSON form, as it is at a node.
        catalogue: the accelerators.
    """
    read = Draft(template).get
    found: JsonMap = {
        "task": read(("id", "name")),
        "task_type": template.get("type"),
        "version": read(("id", "version")),
    }
    for word, say in TASK_WORDS.items():
        said = say(template)
        if said is not None or word in _ALWAYS:
            found[word] = said
    workload = Workload(template, TASK_TEMPLATE)
    found["labels"] = dict(workload.labels)
    found["annotations"] = _without_ours(workload.annotations)
    found["pods"] = {", ".join(pod.roles): editable_pod(pod, catalogue) for pod in workload.pods()}
    return found


# a task ------------------------------------------------------------------------------------------


def _cache(template: JsonMap) -> JsonMap:
    read = Draft(template).get
    said = {
        "cache": read(("metadata", "discoverable")) or False,
        "version": read(("metadata", "discoveryVersion")),
        "serialize": read(("metadata", "cacheSerializable")),
        "ignored_inputs": read(("metadata", "cacheIgnoreInputVars")),
    }
    return {name: value for name, value in said.items() if value or name == "cache"}


def _retries(template: JsonMap) -> Json:
    return Draft(template).get(("metadata", "retries", "retries")) or 0


def _of_metadata(field: str) -> Callable[[JsonMap], Json]:
    return lambda template: Draft(template).get(("metadata", field))


def _replicas(template: JsonMap) -> JsonMap | None:
    found = dict(_counted(template))
    return found or None


def _counted(template: JsonMap) -> Iterator[tuple[str, Json]]:
    read = Draft(template).get
    for role, place in REPLICAS.get(str(template.get("type")), {}).items():
        for field in _COUNTS:
            if (number := read(("custom", *place, field))) is not None:
                yield role, number
    for path, role in ray_groups(template):
        if (number := read((*path, "replicas"))) is not None:
            yield role, number


_COUNTS: Final = ("replicas", "numberOfWorkers")


def _spark_conf(template: JsonMap) -> Json:
    return Draft(template).get(("custom", "sparkConf"))


def _task_config(template: JsonMap) -> JsonMap | None:
    """`custom` without the Spark conf, and without pods, images and resources of replicas."""
    draft = Draft(template)
    draft.drop(("custom", "sparkConf"))
    for path, *_ in overlay_places(template):
        draft.drop(path)
    for path, _ in ray_groups(template):
        draft.drop((*path, "replicas"))
    for place in REPLICAS.get(str(template.get("type")), {}).values():
        for field in ("image", "resources", "common", *_COUNTS):
            draft.drop(("custom", *place, field))
        if draft.get(("custom", *place)) == {}:
            draft.drop(("custom", *place))
    return draft.get(("custom",)) or None


TASK_WORDS: Final[Mapping[str, Callable[[JsonMap], Json]]] = {
    "cache": _cache,
    "retries": _retries,
    "timeout": _of_metadata("timeout"),
    "interruptible": _of_metadata("interruptible"),
    "replicas": _replicas,
    "spark_conf": _spark_conf,
    "task_config": _task_config,
}
"""What is said of a task itself, and how it is read from a template."""

_ALWAYS: Final = frozenset({"timeout", "interruptible"})
"""Words that are there with null too."""


def _without_ours(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if not key.startswith(_OURS)}
