"""``{count}`` in the strings of an accelerator: it stands for the number of GPUs."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["COUNT", "filled", "matches_count"]

COUNT = "{count}"


def filled(value: Any, count: str) -> Any:
    """A value with a number in the place of every ``{count}``."""
    if isinstance(value, str):
        return value.replace(COUNT, count)
    if isinstance(value, Mapping):
        return {key: filled(item, count) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(filled(item, count) for item in value)
    return value


def matches_count(pattern: str, text: str) -> bool:
    """Whether a text is a pattern with any number in the place of ``{count}``."""
    if COUNT not in pattern:
        return pattern == text
    return _number_pattern(pattern).fullmatch(text) is not None


@functools.lru_cache(maxsize=1024)
def _number_pattern(pattern: str) -> re.Pattern[str]:
    first, *rest = map(re.escape, pattern.split(COUNT))
    numbers = ["(?P<n>[0-9]+)", *["(?P=n)"] * len(rest)]  # where it stands twice it is the same
    return re.compile(first + "".join(n + part for n, part in zip(numbers, rest, strict=False)))
