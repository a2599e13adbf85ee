"""What accelerators state, to tell which fields of a pod are theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubetailor.registry.accelerator import Accelerator
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.placeholder import matches_count
from kubetailor.workloads import Json
from kubetailor.workloads.identity import toleration_key

__all__ = ["Stated"]


class Stated:
    """What some accelerators state, for whatever number of GPUs, and what Flyte makes of them.

    Attributes:
        runtime_classes: their runtime classes.
        resources: what they set besides the GPUs.
    """

    def __init__(self, entries: Sequence[Accelerator], flyte: FlyteSettings) -> None:
        """What these accelerators state.

        Args:
            entries: the accelerators.
            flyte: how FlytePropeller is set.
        """
        forms = [form for entry in entries for form in entry.forms]
        self.runtime_classes: set[str | None] = {form.runtime_class for form in forms} - {None}
        self.resources: set[str] = {
            name for f in forms for part in (f.per_gpu, f.requests, f.limits) for name in part
        }
        self._flyte = flyte
        devices = [(device, form.partition) for form in forms for device in form.devices]
        by_flyte = [flyte.pairs(*device) for device in devices]
        selectors = [*(form.node_selector for form in forms), *by_flyte]
        self._selected = _by_key(pair for selector in selectors for pair in selector.items())
        self._placed = {key for form in forms for key, _ in form.stated_pairs()} | set(
            self._selected
        )
        self._required = [r for form in forms for r in form.node_requirements]
        self._tolerated: dict[tuple[Any, ...], set[str]] = {}
        own = [entry for form in forms for entry in form.tolerations]
        for entry in (*own, *(entry for d in devices for entry in flyte.tolerations(*d))):
            key, operator, value, effect = toleration_key(entry)
            self._tolerated.setdefault((key, operator, effect), set()).add(value)

    def selects(self, key: str, value: Json) -> bool:
        """Whether a selector pair is theirs, or a partition's on FlytePropeller's label."""
        return key == self._flyte.partition_label or _matches(self._selected.get(key), value)

    def selects_by(self, key: str) -> bool:
        """Whether they select nodes by a label, rather than require it."""
        return key in self._selected

    def places_by(self, key: str) -> bool:
        """Whether they place pods by a node label at all."""
        return key in self._placed

    def requires(self, expression: Mapping[str, Any]) -> bool:
        """Whether an expression is one of their node requirements."""
        return any(_is_expression(own, expression) for own in self._required)

    def tolerates(self, toleration: Mapping[str, Any]) -> bool:
        """Whether a toleration is one of theirs, or a partition's on FlytePropeller's label."""
        key, operator, value, effect = toleration_key(toleration)
        if key == self._flyte.partition_label and operator == "Equal":
            return True
        return _matches(self._tolerated.get((key, operator, effect)), value)


def _by_key(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for key, value in pairs:
        found.setdefault(key, set()).add(value)
    return found


def _matches(patterns: Iterable[str] | None, value: Json) -> bool:
    if patterns is None or not isinstance(value, str):
        return False
    return any(matches_count(pattern, value) for pattern in patterns)


def _is_expression(own: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    if (own["key"], own["operator"]) != (there.get("key"), there.get("operator")):
        return False
    patterns, values = own.get("values") or [], there.get("values") or []
    return len(patterns) == len(values) and all(map(matches_count, patterns, values))
