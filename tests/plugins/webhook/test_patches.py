"""Patches are minimal: they say what is new, and nothing that was there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jsonpatch
import pytest

from kubetailor.plugins.webhook.decide import decide
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import deep_copy

from .conftest import NAMES, object_of, patch_of, review_of
from .fuzz import CONFIGS, REST

TailorOf = Callable[[str], Tailor]


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every scalar of some JSON data, with its path but for indexes, and its type."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    elif isinstance(value, list):
        for child in value:
            yield from leaves(child, path)
    else:
        yield path, f"{type(value).__name__} {value}"


def at(obj: Any, pointer: str) -> Any:
    """What is at a place now, or None."""
    try:
        return jsonpatch.JsonPointer(pointer).resolve(obj)
    except jsonpatch.JsonPointerException:
        return None


def pairs(name: str, config: str, tailor_of: TailorOf) -> tuple[Any, list[dict[str, Any]]]:
    review = review_of(name)
    tailor = tailor_of(f"chains:\n  default:{CONFIGS[config]}{REST}")
    return object_of(review), patch_of(decide(review, tailor))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", NAMES)
def test_an_operation_replaces_no_list_or_map_that_was_there(
    name: str, config: str, tailor_of: TailorOf
) -> None:
    before, patch = pairs(name, config, tailor_of)
    now = deep_copy(before)
    for op in patch:
        there = at(now, op["path"])
        into_list = isinstance(at(now, op["path"].rpartition("/")[0]), list)
        if op["op"] in ("add", "replace") and not (op["op"] == "add" and into_list):
            assert not (there and isinstance(there, list)), op
            # An entry gives its place to another one, as an accelerator's does to the next one's.
            other = into_list and at(op, "/value/key") != at(there, "/key")
            assert not (there and isinstance(there, dict)) or other, op
        now = jsonpatch.JsonPatch([op]).apply(now, in_place=True)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("flyte")])
def test_a_patch_says_no_more_than_what_is_new(name: str, config: str, tailor_of: TailorOf) -> None:
    before, patch = pairs(name, config, tailor_of)
    now = deep_copy(before)
    said: Counter[tuple[tuple[str, ...], str]] = Counter()
    gone: Counter[tuple[tuple[str, ...], str]] = Counter()
    for op in patch:
        keys = tuple(key for key in jsonpatch.JsonPointer(op["path"]).parts if not key.isdecimal())
        said.update(leaves(op["value"], keys) if "value" in op else ())
        gone.update(leaves(at(now, op["path"]), keys) if op["op"] == "replace" else ())
        now = jsonpatch.JsonPatch([op]).apply(now, in_place=True)
    new = Counter(leaves(now)) - Counter(leaves(before))
    assert new == said & new
    assert not said - new - gone, patch  # an entry in place of another may have parts of it


def test_an_order_that_is_kept_costs_one_operation(tailor_of: TailorOf) -> None:
    review = review_of("pod-n3-0")
    spec = object_of(review)["spec"]
    spec["tolerations"] = [{"key": f"t{n}", "operator": "Exists"} for n in range(40)]
    steps = "{use: tolerations, with: {add: [{key: new, operator: Exists}], remove: [{key: t20}]}}"
    patch = patch_of(decide(review, tailor_of(f"chains: {{default: {{steps: [{steps}]}}}}")))
    own = [op for op in patch if op["path"].startswith("/spec/tolerations")]
    assert [(op["op"], op["path"]) for op in own] == [
        ("remove", "/spec/tolerations/20"),
        ("add", "/spec/tolerations/39"),
    ]
