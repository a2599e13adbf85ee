"""What to say of an exception that other people's code raised: what, and their own line of it."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import kubetailor

__all__ = ["said_of"]


def said_of(error: BaseException, own: Iterable[str] = ()) -> str:
    """The exception in one line, with the deepest place in its user's own files.

    A place in Python itself, in kubetailor, or in what is installed tells the user nothing.

    Args:
        error: the exception.
        own: files and folders that are theirs though they are installed.
    """
    own = tuple(own)
    text, places = str(error), list[tuple[str, int | None]]()
    if error.__traceback__ is not None:
        places = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        text = error.msg
        places.append((error.filename, error.lineno))
    place = next((f"{file}:{line}" for file, line in reversed(places) if _is_own(file, own)), None)
    return f"{type(error).__name__}: {text}" + (f" ({place})" if place else "")


def _is_own(file: str, own: tuple[str, ...]) -> bool:
    if file.startswith("<"):
        return False
    path = Path(file)
    if any(path.is_relative_to(folder) for folder in own):
        return True
    if {"site-packages", "dist-packages"} & set(path.parts):
        return False
    return not any(path.is_relative_to(folder) for folder in _libraries())


@lru_cache(maxsize=1)
def _libraries() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = {found for name in names if (found := sysconfig.get_path(name))}
    return (*sorted(paths), *kubetailor.__path__)
