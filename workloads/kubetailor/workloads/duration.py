"""Durations, as protobuf writes them (``3600s``) and as Go does (``1h0m0s``).

https://protobuf.dev/reference/protobuf/google.protobuf/#duration
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

__all__ = ["duration_text", "go_duration_text", "parse_duration"]

_UNITS: Final[Mapping[str, Decimal]] = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
}
_PART: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?)(ns|us|µs|ms|s|m|h)")
_WHOLE: Final = re.compile(f"(?:{_PART.pattern})+")
_FRACTIONS: Final = (0, 3, 6, 9)


def parse_duration(value: Any) -> Decimal | None:
    """The seconds of a duration; None for what is none.

    Args:
        value: what is there.
    """
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        return None
    return sum((Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(value)), Decimal())


def duration_text(seconds: Decimal) -> str:
    """A duration as protobuf's JSON form has it: with 0, 3, 6 or 9 digits after the point.

    Args:
        seconds: how long, to the nanosecond at most.
    """
    nanoseconds = round(seconds.scaleb(9))
    digits = next(n for n in _FRACTIONS if nanoseconds % 10 ** (9 - n) == 0)
    return f"{Decimal(nanoseconds).scaleb(-9):.{digits}f}s"


def go_duration_text(seconds: Decimal) -> str:
    """A duration as Go writes it: ``1h0m0s``.

    Args:
        seconds: how long, to the nanosecond at most.
    """
    if seconds and seconds < 1:
        for unit, digits in (("ms", 3), ("µs", 6), ("ns", 9)):
            if seconds.scaleb(digits) >= 1:
                return f"{seconds.scaleb(digits).normalize():f}{unit}"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{rest.normalize():f}s"]
    if hours or minutes:
        parts.insert(0, f"{minutes:f}m")
    if hours:
        parts.insert(0, f"{hours:f}h")
    return "".join(parts)
