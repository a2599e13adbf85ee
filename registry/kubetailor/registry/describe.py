"""What a transformer takes, for people: names, types, defaults, and the docstring's words."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from kubetailor.registry.signature import is_union, unwrapped
from kubetailor.registry.transformer import Transformer

__all__ = ["Parameter", "description_of", "parameters_of", "type_text"]

_SECTION = re.compile(r"(Args|Returns|Raises|Yields|Examples?|Notes?|Attributes):")
_ARGUMENT = re.compile(r"(\w+)(?: *\([^)]*\))?: *(.*)")


@dataclass(frozen=True)
class Parameter:
    """One key of a step's `with`.

    Attributes:
        name: the key.
        type: its type, as Python writes it.
        required: whether it has no default.
        default: the default, None if there is none.
        doc: what the docstring says of it, in one line.
    """

    name: str
    type: str
    required: bool
    default: Any
    doc: str


def parameters_of(transformer: Transformer) -> list[Parameter]:
    """The parameters of a transformer, in the order of its signature."""
    docs = _argument_docs(transformer.doc)
    signature = transformer.signature.parameters
    return [
        Parameter(
            name,
            type_text(annotation),
            name in transformer.required,
            None if name in transformer.required else signature[name].default,
            docs.get(name, ""),
        )
        for name, annotation in transformer.annotations.items()
    ]


def description_of(transformer: Transformer) -> str:
    """The docstring up to its first section, such as ``Args:``."""
    lines: list[str] = []
    for line in transformer.doc.splitlines():
        if _SECTION.fullmatch(line):
            break
        lines.append(line)
    return "\n".join(lines).strip()


def type_text(annotation: Any) -> str:
    """An annotation as Python writes it, without validators."""
    annotation = unwrapped(annotation)
    if annotation is None or annotation is type(None):
        return "None"
    origin, args = get_origin(annotation), get_args(annotation)
    if is_union(annotation):
        return " | ".join(map(type_text, args))
    if origin is Literal:
        return " | ".join(map(repr, args))
    if origin is not None and args:
        inner = ", ".join("..." if arg is ... else type_text(arg) for arg in args)
        return f"{getattr(origin, '__name__', origin)}[{inner}]"
    return str(getattr(annotation, "__name__", annotation))


def _argument_docs(doc: str) -> dict[str, str]:
    """The entries of the section ``Args:`` of a Google-style docstring."""
    found: dict[str, list[str]] = {}
    inside, name, margin = False, "", 0
    for line in doc.splitlines():
        if _SECTION.fullmatch(line):
            inside = line.startswith("Args")
            continue
        if not inside or not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        entry = _ARGUMENT.fullmatch(line.strip()) if not found or indent <= margin else None
        if entry is not None:
            name, margin = entry[1], indent
            found[name] = [entry[2]]
        elif name:
            found[name].append(line.strip())
    return {name: inspect.cleandoc(" ".join(parts)) for name, parts in found.items()}
