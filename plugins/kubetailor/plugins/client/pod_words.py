"""The words that say something of a pod of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubetailor.plugins.client.words import (
    Place,
    Used,
    Word,
    changed_maps,
    entries,
    strings,
    value,
)
from kubetailor.registry import Catalogue
from kubetailor.registry.source import read_core
from kubetailor.transformers.gpu_on import gpu_on
from kubetailor.workloads import Container, Json, JsonMap, Pod

__all__ = ["POD_WORDS", "REPLICA_WORDS", "rest_of"]

_SIMPLE_ENV: Final = frozenset({"name", "value"})


def _gpu(pod: Pod, _: Container, catalogue: Catalogue) -> JsonMap | None:
    return gpu_on(pod, catalogue)


def _write_gpu(place: Place, word: str, old: Json, new: Json) -> Iterator[Used]:
    _, after, keys = changed_maps(place, word, old, new)
    if odd := [key for key in keys if key not in ("type", "count")]:
        raise place.fault(f"`{word}`: {', '.join(odd)} is for reading: change `type` and `count`")
    if not after.get("type"):
        raise place.fault(f"`{word}` needs a `type`: see `kubetailor accelerators`")
    yield word, {"type": after["type"], **{key: after.get(key) for key in keys}}


def _resources(pod: Pod, primary: Container, catalogue: Catalogue) -> JsonMap:
    """Requests and limits, but for GPUs, which are said by their count."""
    full = {alias: name for name, alias in pod.workload.resource_aliases.items()}
    return {
        part: {
            name: value
            for name, value in (primary.resources.get(part) or {}).items()
            if full.get(name, name) not in catalogue.marks.resources
        }
        for part in ("requests", "limits")
    }


def _write_resources(place: Place, word: str, old: Json, new: Json) -> Iterator[Used]:
    before, after, parts = changed_maps(place, word, old, new)
    said: JsonMap = {}
    for part in parts:
        _, wanted, names = changed_maps(place, part, before.get(part), after.get(part))
        said[part] = {name: wanted.get(name) for name in names}
    yield word, said


def _image(_: Pod, primary: Container, __: Catalogue) -> Json:
    return primary.image


def _env(_: Pod, primary: Container, __: Catalogue) -> JsonMap:
    simple = [entry for entry in primary.env if entry.keys() <= _SIMPLE_ENV]
    return {entry["name"]: entry.get("value", "") for entry in simple}


def _node_selector(pod: Pod, _: Container, __: Catalogue) -> JsonMap:
    return dict(pod.node_selector)


def _tolerations(pod: Pod, _: Container, __: Catalogue) -> Json:
    return list(pod.tolerations)


def _typed_tolerations(said: Any) -> Any:
    """Key and value are strings, and `tolerationSeconds` is a number."""
    if not isinstance(said, list):
        return read_core(said)
    return [
        {**strings(entry), **{k: read_core(v) for k, v in entry.items() if k not in _STRING}}
        if isinstance(entry, dict)
        else read_core(entry)
        for entry in said
    ]


_STRING: Final = frozenset({"key", "value"})


def _write_tolerations(place: Place, word: str, old: Json, new: Json) -> Iterator[Used]:
    before, after = old or [], new or []
    if not isinstance(before, list) or not isinstance(after, list):
        raise place.fault(f"`{word}`: expected a list, found {after!r}")
    said = {
        "add": [entry for entry in after if entry not in before],
        "remove": [
            {key: value for key, value in entry.items() if key != "tolerationSeconds"}
            for entry in before
            if entry not in after
        ],
    }
    yield word, {name: value for name, value in said.items() if value}


def _priority_class(pod: Pod, _: Container, __: Catalogue) -> Json:
    return pod.peek("priorityClassName")


REPLICA_WORDS: Final[Mapping[str, Word[[Pod, Container, Catalogue]]]] = {
    "gpu": Word(_gpu, _write_gpu),
    "resources": Word(_resources, _write_resources),
    "image": Word(_image, value("image"), always=True),
}
"""What is known of a replica in a task's `custom`."""

POD_WORDS: Final[Mapping[str, Word[[Pod, Container, Catalogue]]]] = {
    **REPLICA_WORDS,
    "env": Word(_env, entries, strings),
    "node_selector": Word(_node_selector, entries, strings),
    "tolerations": Word(_tolerations, _write_tolerations, _typed_tolerations),
    "priority_class": Word(_priority_class, value("name"), always=True),
}
"""Each is read from a pod, its primary container and the catalogue."""


def rest_of(pod: Pod, primary: Container) -> JsonMap:
    """The pod spec without what the words say of it."""
    spec: JsonMap = pod.get()
    rest = {key: value for key, value in spec.items() if key not in _SAID and value}
    containers: list[Any] = []
    for container in spec.get("containers") or []:
        kept = dict(container)
        if container.get("name") == primary.name:
            kept = {key: value for key, value in kept.items() if key not in _SAID_OF_PRIMARY}
            env = [entry for entry in primary.env if not entry.keys() <= _SIMPLE_ENV]
            if env:
                kept["env"] = env
        containers.append({key: value for key, value in kept.items() if value})
    return {**rest, **({"containers": containers} if containers else {})}


_SAID: Final = frozenset({"containers", "nodeSelector", "tolerations", "priorityClassName"})
_SAID_OF_PRIMARY: Final = frozenset({"image", "resources", "env"})
