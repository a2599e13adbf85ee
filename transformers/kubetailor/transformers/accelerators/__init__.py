"""The accelerators that ship, as data: one file for each platform, with the pages it comes from.

A file is split into its entries when it is registered, and an entry is parsed when it is read: most
configs read one or two of them. The key `pages` of a file is that of each entry without its own.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from kubetailor.registry import hookimpl

__all__ = ["register_accelerators"]

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # every scalar stays text
_NAME = re.compile(r"^([\w.-]+):", re.MULTILINE)


@hookimpl
def register_accelerators(register: Callable[[str, Mapping[str, Any]], None]) -> None:
    """Register every entry of the files beside this one."""
    for name, preset in _shipped():
        register(name, preset)


@functools.cache
def _shipped() -> tuple[tuple[str, _Preset], ...]:
    """The entries of all files; what ships does not change while a process lives."""
    files = importlib.resources.files(__name__).iterdir()
    texts = [file.read_text(encoding="utf-8") for file in files if file.name.endswith(".yaml")]
    return tuple([preset for text in texts for preset in _presets(text)])


def _presets(text: str) -> Iterator[tuple[str, _Preset]]:
    """The entries of a file, each from its name to the next one's."""
    starts = list(_NAME.finditer(text))
    ends = [*(match.start() for match in starts[1:]), len(text)]
    parts = {m[1]: text[m.start() : end] for m, end in zip(starts, ends, strict=True)}
    pages = tuple(_parsed(parts.pop("pages")))
    for name, part in parts.items():
        yield name, _Preset(part, pages)


def _parsed(part: str) -> Any:
    (value,) = yaml.load(part, Loader=_Loader).values()
    return value


class _Preset(Mapping[str, Any]):
    """One entry, parsed when it is read."""

    def __init__(self, text: str, pages: tuple[str, ...]) -> None:
        self._text = text
        self._pages = pages

    @functools.cached_property
    def _data(self) -> dict[str, Any]:
        return {"pages": self._pages, **_parsed(self._text)}

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)
