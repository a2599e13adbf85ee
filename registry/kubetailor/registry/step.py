"""A step: one use of a transformer in a chain."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from kubetailor.registry.errors import Mark
from kubetailor.registry.selectors import Selector
from kubetailor.registry.transformer import Transformer

__all__ = ["LAYERS", "Layer", "Step", "copied"]

Layer: TypeAlias = Literal["defaults", "steps", "override", "enforce"]
LAYERS: tuple[Layer, ...] = ("defaults", "steps", "override", "enforce")
"""The order in which they run; `override` is one execution's, the others are lists of a chain."""


@dataclass(frozen=True)
class Step:
    """One use of a transformer.

    Attributes:
        name: the name in the config, else the transformer's.
        layer: the list that it is in.
        transformer: what it uses.
        arguments: the keyword arguments, from `with`.
        when: where it applies.
        optional: it may find nothing to change.
        mark: its place in the config, or None.
        written: the `with`, as it was read.
    """

    name: str
    layer: Layer
    transformer: Transformer
    arguments: Mapping[str, Any]
    when: Selector
    optional: bool = False
    mark: Mark | None = None
    written: Mapping[str, Any] = field(default_factory=dict)


def copied(value: Any) -> Any:
    """A copy of an argument that shares nothing which can be changed with it."""
    if isinstance(value, str | int | float | None):
        return value
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    if type(value) is list:
        return [copied(item) for item in value]
    return copy.deepcopy(value)
