"""The words that say something of a task itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubetailor.plugins.client.words import (
    Place,
    Used,
    Word,
    changed,
    changed_maps,
    entries,
    parameters,
    strings,
    value,
)
from kubetailor.workloads import Draft, Json, JsonMap, Workload
from kubetailor.workloads.task_pods import REPLICAS, overlay_places, ray_groups
from kubetailor.workloads.task_template import TASK_TEMPLATE

__all__ = ["TASK_WORDS"]

_OURS: Final = "kubetailor.dev/"
_COUNTS: Final = ("replicas", "numberOfWorkers")


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


def _labels(template: JsonMap) -> JsonMap:
    return dict(Workload(template, TASK_TEMPLATE).labels)


def _annotations(template: JsonMap) -> JsonMap:
    found = Workload(template, TASK_TEMPLATE).annotations
    return {key: value for key, value in found.items() if not key.startswith(_OURS)}


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


def _write_replicas(place: Place, word: str, old: Json, new: Json) -> Iterator[Used]:
    before, after, roles = changed_maps(place, word, old, new)
    for role in roles:
        if role not in before or role not in after:
            raise place.fault(f"`{word}`: role {role!r} cannot be added or taken away")
        yield "task_config", {"replicas": after[role], "role": role}


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


def _write_task_config(place: Place, word: str, old: Json, new: Json) -> Iterator[Used]:
    before, after, _ = changed_maps(place, word, old, new)
    yield word, {"set": _merge_patch(before, after)}


def _merge_patch(old: JsonMap, new: JsonMap) -> JsonMap:
    """RFC 7386: what changed; null for what goes."""
    found: JsonMap = {}
    for key in changed(old, new):
        one, other = old.get(key), new.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            other = _merge_patch(one, other)
        found[key] = other
    return found


TASK_WORDS: Final[Mapping[str, Word[[JsonMap]]]] = {
    "cache": Word(_cache, parameters),
    "retries": Word(_retries, value("retries")),
    "timeout": Word(_of_metadata("timeout"), value("timeout", may_go=True), always=True),
    "interruptible": Word(
        _of_metadata("interruptible"), value("interruptible", may_go=True), always=True
    ),
    "labels": Word(_labels, entries, strings),
    "annotations": Word(_annotations, entries, strings),
    "replicas": Word(_replicas, _write_replicas),
    "spark_conf": Word(_spark_conf, entries, strings),
    "task_config": Word(_task_config, _write_task_config),
}
"""Each is read from a task template; `replicas` is a parameter of `task_config`."""
