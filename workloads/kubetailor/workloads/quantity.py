"""Kubernetes quantities, compared by value.

https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any

from kubetailor.workloads.errors import InvalidObjectError

__all__ = [
    "amount_in",
    "is_extended_resource",
    "is_positive",
    "is_whole",
    "parse_quantity",
    "quantity_text",
    "resource_names_in",
    "same_quantity",
    "times",
]

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_PATTERN = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?\d{1,2}))",
    re.ASCII,
)
_CASE_FAULTS = re.compile(r"([+-]?[\d.]+)([kKmMgGtTpPeE])([iI]?)[bB]?", re.ASCII)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Decimal:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise InvalidObjectError(f"{text!r} is not a quantity{_advice(text)}")
    number = Decimal(match["number"])
    if match["exponent"] is not None:
        return number * Decimal(10) ** int(match["exponent"])
    suffix = match["suffix"]
    if suffix in _BINARY:
        return number * (Decimal(1024) ** _BINARY[suffix])
    return number * (Decimal(1000) ** _DECIMAL[suffix])


def _advice(text: str) -> str:
    if fault := _CASE_FAULTS.fullmatch(text):
        number, letter = fault[1], fault[2].upper()
        decimal = "k" if letter == "K" else letter
        return f"; write {number}{decimal} or {number}{letter}i"
    return "; write a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei"


def parse_quantity(value: Any, field: str = "") -> Decimal:
    """The number that a quantity stands for.

    Args:
        value: a string such as "500m" or "1.5Gi", or an int or float as JSON has it.
        field: where it is, for the message.

    Raises:
        InvalidObjectError: it is not a quantity; the message names the likely spelling.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidObjectError(f"{value!r} is not a quantity", field=field)
    try:
        return _parse(value if isinstance(value, str) else repr(value))
    except InvalidObjectError as error:
        raise InvalidObjectError(str(error), field=field) from None


def same_quantity(a: Any, b: Any) -> bool:
    """Whether two quantities are equal in value: "0.5" is "500m". Malformed ones never are."""
    if a is b or (type(a) is type(b) and a == b):
        return True
    if a is None or b is None:
        return False
    try:
        return _as_kept(parse_quantity(a)) == _as_kept(parse_quantity(b))
    except InvalidObjectError:
        return False


def _as_kept(number: Decimal) -> Decimal:
    """In thousandths, rounded up: the API server's SetDefaults_ResourceList."""
    return (number * 1000).to_integral_value(ROUND_CEILING)


def is_positive(value: Any) -> bool:
    """Whether a quantity is more than 0. None and malformed ones are not."""
    try:
        return value is not None and parse_quantity(value) > 0
    except InvalidObjectError:
        return False


def is_whole(value: Any) -> bool:
    """Whether a quantity is a whole number, of any size.

    Raises:
        InvalidObjectError: it is not a quantity.
    """
    number = parse_quantity(value)
    return number == number.to_integral_value()  # what `%` does has to fit the precision


def amount_in(resources: Any, name: str, alias: str | None = None) -> Any:
    """How much of a resource a container's `resources` ask for: the limit, else the request.

    Args:
        resources: what the container holds there.
        name: the resource.
        alias: another name that means the same.
    """
    if not isinstance(resources, dict):
        return None
    for part in ("limits", "requests"):
        there = resources.get(part)
        if isinstance(there, dict):
            found = there.get(name)
            if found is None and alias is not None:
                found = there.get(alias)
            if found is not None:
                return found
    return None


def resource_names_in(resources: Any, aliases: Mapping[str, str]) -> set[str]:
    """The full names of the resources that a container's `resources` hold.

    Args:
        resources: what the container holds there.
        aliases: full name -> another name that means the same.
    """
    found: set[str] = set()
    for part in ("limits", "requests"):
        there = resources.get(part) if isinstance(resources, dict) else None
        if isinstance(there, dict):
            found.update(map(str, there))
    for name, alias in aliases.items():
        if alias in found:
            found.remove(alias)
            found.add(name)
    return found


_MOST = 2**63
"""What is as much is cut by the API server without a word."""


def quantity_text(value: Any) -> str:
    """A quantity as text, as Kubernetes' API writes it, after checking that it is one.

    Raises:
        InvalidObjectError: it is none, or one that nobody can ask for.
    """
    if not 0 <= parse_quantity(value) < _MOST:
        raise InvalidObjectError(f"the quantity {value} must be from 0 to less than 2**63")
    return value if isinstance(value, str) else repr(value)


@lru_cache(maxsize=4096)
def times(quantity: str, factor: int) -> str:
    """A quantity so many times, in its own unit: 4 times "85G" is "340G"."""
    parse_quantity(quantity)
    match = _PATTERN.fullmatch(quantity)
    assert match is not None
    return f"{Decimal(match['number']) * factor:f}{quantity[match.end('number') :]}"


def is_extended_resource(name: str) -> bool:
    """Whether a resource is an extended one: whole numbers only, requests equal to limits.

    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources
    """
    return name == "gpu" or ("/" in name and not name.split("/", 1)[0].endswith("kubernetes.io"))
