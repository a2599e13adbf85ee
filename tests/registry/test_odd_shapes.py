"""Objects that are large, deep, empty or oddly named come out right: a few checks over each."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest

from kubetailor.registry import Chain, TaskContext
from kubetailor.workloads import BUILTIN_KINDS, JsonMap, KindTable, diff

from .test_growth import GROWING, STEPS, _chain, _pod

ODD_KEYS = ("a/b", "a~b", "~0", "~1", "/", "~", "", "a.b/c~d", "0", "-", "Größe", "日本", "\u2028")


def _nulls() -> JsonMap:
    """A pod in which whatever a step writes is null."""
    nothing = dict.fromkeys(("env", "resources", "volumeMounts", "args", "command", "envFrom"))
    lists = ("tolerations", "volumes", "initContainers", "imagePullSecrets", "hostAliases")
    maps = ("nodeSelector", "affinity", "securityContext", "priorityClassName", "dnsConfig")
    pod = _pod(
        containers=[{"name": "c0", "image": "a:1", **nothing}], **dict.fromkeys(lists + maps)
    )
    return {**pod, "metadata": {"name": "train", "labels": None, "annotations": None}}


def _empties() -> JsonMap:
    """The same with what is empty."""
    container = {"name": "c0", "image": "a:1", "env": [], "resources": {}, "volumeMounts": []}
    pod = _pod(containers=[container], tolerations=[], volumes=[], nodeSelector={}, affinity={})
    return {**pod, "metadata": {"name": "train", "labels": {}, "annotations": {}}}


def _odd_keys() -> JsonMap:
    def odd() -> JsonMap:
        return {key: f"value of {key}" for key in ODD_KEYS}

    pod = _pod(nodeSelector=odd(), **{key: {key: [odd()]} for key in ODD_KEYS})
    metadata = {"name": "train", "labels": odd(), "annotations": odd()}
    return {**pod, "metadata": metadata, "a/b~c": odd()}


def _unicode() -> JsonMap:
    value = "naïve 日本語 \U0001f9f5 e\u0301 \u202eabc\u202c \u0000 \ud7ff"
    env = [{"name": "TEXT", "value": value}, {"name": "日本", "value": "$(TEXT)"}]
    pod = _pod(containers=[{"name": "c0", "image": "a:1", "env": env, "args": [value]}])
    return {**pod, "metadata": {"name": "train", "annotations": {"said": value}}}


def _deep() -> JsonMap:
    nested: Any = "here"
    for level in range(200):
        nested = {"under/~": nested} if level % 2 else [nested]
    return _pod(**{"example.com/deep": nested})


def _megabytes() -> JsonMap:
    pod = GROWING["env"](500)
    pod["metadata"]["annotations"]["example.com/large"] = "x" * 1_500_000
    return pod


SHAPES: dict[str, Callable[[], JsonMap]] = {
    "nulls": _nulls,
    "empties": _empties,
    "keys with / and ~": _odd_keys,
    "unicode": _unicode,
    "200 deep": _deep,
    "1.5 MB": _megabytes,
    "500 env": lambda: GROWING["env"](500),
    "200 containers": lambda: GROWING["containers"](200),
    "100 worker groups": lambda: GROWING["worker groups"](100),
    "100 pods": lambda: GROWING["pods"](100),
}


def _all_steps(layer: str) -> Chain:
    steps = [step for use, given in STEPS.items() for step in _chain(use, given, layer).steps]
    return Chain("all", tuple(steps))


def _paths(old: Any, new: Any) -> list[tuple[Any, ...]]:
    return [change[1] for change in diff(old, new)]


@pytest.mark.parametrize("layer", ["defaults", "steps"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_comes_out_is_what_went_in_and_what_the_steps_ask_for(shape: str, layer: str) -> None:
    given = SHAPES[shape]()
    kept = copy.deepcopy(given)
    kind = KindTable(BUILTIN_KINDS).of(given)
    assert kind is not None
    chain = _all_steps(layer)
    result = chain.run(given, kind, TaskContext("admit"))
    assert given == kept
    assert {step.name for step, _ in result.roots} == set(STEPS)
    # The patch is one that others can read, and leads to what came out.
    patch = json.loads(json.dumps(result.patch()))
    assert jsonpatch.apply_patch(given, patch) == result.after
    # Nothing is changed that no step is about, and nothing is said twice.
    assert not [change for change in result.changes() if change.op == "remove"]
    for _, path, _, now in diff(given, result.after):
        assert path[:1] in (("spec",), ("metadata",)), path
        assert now is not None, path
    again = chain.run(result.after, kind, TaskContext("admit"))
    assert _paths(result.after, again.after) == []
    for value in _pods_of(result.after):
        assert value["nodeSelector"]["a"] == "b"
        assert value["priorityClassName"] == "high"
        assert [entry for entry in value["tolerations"] if entry.get("key") == "a"]
        assert value["containers"][0]["env"].count({"name": "NEW", "value": "$(OLD)"}) == 1


def _pods_of(obj: JsonMap) -> list[JsonMap]:
    spec = obj["spec"]
    if "replicatedJobs" in spec:
        jobs = spec["replicatedJobs"]
        return [job["template"]["spec"]["template"]["spec"] for job in jobs]
    if "workerGroupSpecs" in spec:
        groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
        return [group["template"]["spec"] for group in groups]
    return [spec]
