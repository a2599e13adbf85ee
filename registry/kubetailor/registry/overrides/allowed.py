"""What the value of one parameter of an override may be."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from kubetailor.registry.overrides.never import key_of, keys_of
from kubetailor.workloads import InvalidObjectError, parse_quantity
from kubetailor.workloads.duration import parse_duration
from kubetailor.workloads.quantity import same_quantity

__all__ = ["Allowed", "compared", "plain", "shown"]


@dataclass(frozen=True)
class Allowed:
    """What the value of one parameter may be: of a map each value is meant, of a list each entry.

    Attributes:
        values: one of these, or None.
        least: at least this, or None; for a map it may be a map.
        most: at most this, likewise.
        pattern: what the whole text must match, or None.
        keys: globs, one of which must match each key, or None.
    """

    values: tuple[Any, ...] | None = None
    least: Any = None
    most: Any = None
    pattern: re.Pattern[str] | None = None
    keys: tuple[str, ...] | None = None

    @property
    def words(self) -> set[str]:
        """The words of `allow` that were written."""
        said: dict[str, object] = {"in": self.values, "pattern": self.pattern, "keys": self.keys}
        return {word for word, value in said.items() if value is not None}

    def reasons(self, value: Any) -> Iterator[str]:
        """What is wrong with a value."""
        if self.keys is not None:
            yield from self._key_reasons(value, self.keys)
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield from (f"{key}: {reason}" for reason in self._reasons(item, key))
        elif isinstance(value, list):
            for item in value:
                yield from self._reasons(item, key_of(item))
        else:
            yield from self._reasons(value, None)

    def _key_reasons(self, value: Any, globs: tuple[str, ...]) -> Iterator[str]:
        for key in keys_of(value):
            if not any(fnmatch.fnmatchcase(key, glob) for glob in globs):
                yield f"the key {key!r}; allowed: {', '.join(globs)}"

    def _reasons(self, value: Any, key: str | None) -> Iterator[str]:
        """What is wrong with one value, or with that of a key."""
        if self.values is not None and not any(_same(value, other) for other in self.values):
            yield f"{shown(value)}; allowed: {', '.join(map(shown, self.values))}"
        if self.pattern is not None and not (
            _is_scalar(value) and self.pattern.fullmatch(_text(value))
        ):
            yield f"{shown(value)}; allowed: what matches {self.pattern.pattern}"
        for bounds, sign, word in ((self.least, -1, "least"), (self.most, 1, "most")):
            bound = bounds.get(key) if isinstance(bounds, Mapping) else bounds
            if bound is None:
                continue
            beyond = compared(value, bound)
            if beyond is None or beyond == sign:
                yield f"{shown(value)}; allowed: at {word} {shown(bound)}"


def plain(value: Any) -> Any:
    """Maps, lists and scalars of an argument of any type."""
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


def _is_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, Mapping | list)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    found = "null" if value is None else _text(value)
    return found if len(found) <= 80 else found[:77] + "..."


_SUFFIXED = re.compile(r"[0-9.]+[a-zA-Z]+")


def _same(value: Any, other: Any) -> bool:
    if value is None or other is None or not (_is_scalar(value) and _is_scalar(other)):
        return bool(value == other)
    if _text(value) == _text(other):
        return True
    # `1` and `1.0` may be labels, `1Gi` and `1024Mi` are not.
    return _SUFFIXED.fullmatch(_text(other)) is not None and same_quantity(value, other)


def compared(value: Any, bound: Any) -> int | None:
    """-1, 0 or 1, as a value is less or more than a bound; None if they cannot be compared."""
    if isinstance(value, timedelta) and isinstance(bound, timedelta):
        return (value > bound) - (value < bound)
    given, limit = _quantity(value), _quantity(bound)
    if given is None or limit is None:
        given, limit = parse_duration(value), parse_duration(bound)
    if given is None or limit is None:
        return None
    return (given > limit) - (given < limit)


def _quantity(value: Any) -> Decimal | None:
    try:
        return parse_quantity(value)
    except InvalidObjectError:
        return None
