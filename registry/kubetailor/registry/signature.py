"""What a function is made of, and what an annotation says."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin

__all__ = ["body_of", "is_union", "members_of", "source_of", "unwrapped"]


def body_of(function: Any) -> Any:
    """The function that has the annotations: of a partial, a method or a callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    if inspect.isroutine(function) or inspect.isclass(function) or not callable(function):
        return function
    return type(function).__call__


def source_of(function: Callable[..., Any]) -> str:
    """``file:line`` of a function, or its module's name."""
    target = inspect.unwrap(body_of(function))
    code = getattr(target, "__code__", None)
    if code is None:
        return str(getattr(target, "__module__", "?"))
    return f"{code.co_filename}:{code.co_firstlineno}"


def members_of(annotation: Any) -> list[Any]:
    """The types that an annotation allows beside None."""
    annotation = unwrapped(annotation)
    parts = get_args(annotation) if is_union(annotation) else (annotation,)
    return [unwrapped(part) for part in parts if part is not type(None)]


def is_union(annotation: Any) -> bool:
    """Whether an annotation is a union, spelt either way."""
    return get_origin(annotation) in (Union, types.UnionType)


def unwrapped(annotation: Any) -> Any:
    """An annotation without `Annotated`."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
