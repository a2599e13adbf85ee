"""JSON text of what was read from YAML or built in Python, the same for the same data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubetailor.registry.errors import OverrideError
from kubetailor.registry.source import Plain, read_core, text

if TYPE_CHECKING:
    from kubetailor.registry.reading import MarkOf

__all__ = ["json_text"]

_JSON_SCALAR = re.compile(
    r"true|false|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII
)


def json_text(value: Any, mark: MarkOf, path: tuple[str | int, ...] = ()) -> str:
    """JSON text that is read as the value was: `1.10` without quotes stays as it was written.

    Args:
        value: what was read from YAML, or built.
        mark: the place of what is at a path of it.
        path: where it is.

    Raises:
        OverrideError: JSON cannot say it.
    """
    if isinstance(value, Plain):
        if isinstance(read_core(value), str):
            return _string(value)
        if _JSON_SCALAR.fullmatch(value):
            return str(text(value))
        raise OverrideError(
            f"{text(value)!r} may be a text or {read_core(value)!r}: write it with quotes, or as "
            "JSON writes it",
            mark(path),
        )
    if isinstance(value, Mapping):
        parts = [
            f"{_string(str(key))}:{json_text(value[key], mark, (*path, key))}"
            for key in sorted(value, key=str)
        ]
        return f"{{{','.join(parts)}}}"
    if isinstance(value, list | tuple):
        parts = [json_text(item, mark, (*path, index)) for index, item in enumerate(value)]
        return f"[{','.join(parts)}]"
    if isinstance(value, str):
        return _string(value)
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise OverrideError(f"{'.'.join(map(str, path))}: {error}", mark(path)) from None


_ESCAPED = re.compile("[\x7f-\uffff]")


def _string(value: str) -> str:
    """A string of JSON that YAML reads alike: it has no surrogate pairs, and more line breaks."""
    found = json.dumps(text(value), ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", found)
