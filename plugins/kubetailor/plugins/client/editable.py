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

from collections.abc import Mapping
from typing import ParamSpec

from kubetailor.plugins.client.pod_words import POD_WORDS, REPLICA_WORDS, rest_of
from kubetailor.plugins.client.preview import Preview
from kubetailor.plugins.client.task_words import TASK_WORDS
from kubetailor.plugins.client.words import Word
from kubetailor.registry import Catalogue
from kubetailor.workloads import CannotChangeError, Draft, JsonMap, Pod, Workload
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["document", "editable"]

P = ParamSpec("P")


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
    pods = Workload(template, TASK_TEMPLATE).pods()
    return {
        "task": read(("id", "name")),
        "task_type": template.get("type"),
        "version": read(("id", "version")),
        **_said(TASK_WORDS, template),
        "pods": {", ".join(pod.roles): _pod(pod, catalogue) for pod in pods},
    }


def _pod(pod: Pod, catalogue: Catalogue) -> JsonMap:
    try:
        primary = pod.primary
    except CannotChangeError:
        return {"rest": pod.get()}
    if pod.is_replica:
        return _said(REPLICA_WORDS, pod, primary, catalogue)
    found = _said(POD_WORDS, pod, primary, catalogue)
    rest = rest_of(pod, primary)
    return {**found, "rest": rest} if rest else found


def _said(words: Mapping[str, Word[P]], *of: P.args, **more: P.kwargs) -> JsonMap:
    """What each word says, where it says something."""
    said = {name: word.read(*of, **more) for name, word in words.items()}
    return {k: value for k, value in said.items() if value is not None or words[k].always}
