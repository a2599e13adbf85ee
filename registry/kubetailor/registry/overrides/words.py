"""An override as words of a command: `--set STEP.PARAM=VALUE` and `--on KEY=GLOB`."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_origin

from typing_extensions import is_typeddict

from kubetailor.registry.errors import ConfigError, Mark, OverrideError
from kubetailor.registry.overrides.document import LIMITS, Override, OverrideStep
from kubetailor.registry.selectors import MAP_FIELDS, WHEN_FIELDS
from kubetailor.registry.signature import is_union, unwrapped
from kubetailor.registry.source import Source
from kubetailor.registry.transformer import Transformer
from kubetailor.workloads import nearest

if TYPE_CHECKING:
    from kubetailor.registry.plugins import Plugins

__all__ = ["override_of_words"]


def override_of_words(sets: Sequence[str], on: Sequence[str], plugins: Plugins) -> Override:
    """The override that the words of a command say.

    The words for one transformer make one step. All of `on` hold, for every step.

    Args:
        sets: ``STEP.PARAM=VALUE``. STEP is the longest name of a transformer; further words after
            PARAM are keys, of which the last, in a map of scalars, may have dots. VALUE is YAML.
        on: ``KEY=GLOB``. After `labels`, `annotations` and `inputs` comes the name, as in
            ``labels.team``.
        plugins: those that are loaded, with their transformers.

    Raises:
        OverrideError: the first word that cannot be, and what is allowed.
    """
    if on and not sets:
        raise OverrideError(f"--on {on[0]}: it says where --set holds, and there is none")
    when = tuple(_condition(word) for word in on)
    found: dict[str, dict[str, Any]] = {}
    places: dict[str, dict[tuple[str, ...], Mark]] = {}
    for word in sets:
        mark = Mark(f"--set {word}")
        left, equals, right = word.partition("=")
        if not equals:
            raise OverrideError(
                "expected STEP.PARAM=VALUE, as in --set gpu.type=nvidia-h100-80gb", mark
            )
        transformer, rest = _transformer(left, plugins, mark)
        keys = _keys(transformer, rest, mark)
        _put(found.setdefault(transformer.name, {}), keys, _value(right, mark), mark)
        places.setdefault(transformer.name, {})[keys] = mark
    return Override(
        tuple(
            OverrideStep(use, parameters, when, mark=_place_in(places[use]))
            for use, parameters in found.items()
        )
    )


def _place_in(words: Mapping[tuple[str, ...], Mark]) -> Any:
    """The word that says what is at a path of the step; the first one for all else."""

    def place(path: Sequence[str | int]) -> Mark:
        keys = tuple(map(str, path[1:])) if path[:1] == ("with",) else ()
        shared = {word: _shared(word, keys) for word in words}
        return words[max(shared, key=lambda word: shared[word])]

    return place


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def _transformer(left: str, plugins: Plugins, mark: Mark) -> tuple[Transformer, str]:
    """The transformer with the longest name that `left` begins with, and the rest of it."""
    words = left.split(".")
    for end in range(len(words), 0, -1):
        found = plugins.transformers.get(".".join(words[:end]))
        if found is None:
            continue
        if end == len(words):
            known = ", ".join(found.annotations) or "none"
            raise OverrideError(
                f"which parameter of {found.name}? Write {found.name}.PARAM=VALUE; "
                f"parameters: {known}",
                mark,
            )
        return found, ".".join(words[end:])
    name = ".".join(words[:-1]) or left
    raise OverrideError(plugins.no_transformer(name), mark)


def _keys(transformer: Transformer, rest: str, mark: Mark) -> tuple[str, ...]:
    """The parameter, and the keys in it, as far as its type has maps."""
    parameter, dot, path = rest.partition(".")
    if parameter not in transformer.annotations:
        listing = f"kubetailor transformers {transformer.name}"
        near = nearest(parameter, transformer.annotations, what="parameters", listing=listing)
        raise OverrideError(f"{transformer.name}: no parameter {parameter!r}; {near}", mark)
    keys = [parameter]
    annotation = transformer.annotations[parameter]
    while dot:
        inner = _inner(annotation, path)
        if inner is None:
            name = ".".join((transformer.name, *keys))
            raise OverrideError(f"{name} has no keys: write {name}=VALUE", mark)
        key, dot, path = (path, "", "") if _is_scalar(inner) else path.partition(".")
        keys.append(key)
        annotation = inner
    if "" in keys:
        raise OverrideError("a key is empty", mark)
    return tuple(keys)


def _members(annotation: Any) -> list[Any]:
    annotation = unwrapped(annotation)
    if not is_union(annotation):
        return [annotation]
    return [member for part in get_args(annotation) for member in _members(part)]


def _inner(annotation: Any, path: str) -> Any:
    """The type of what is under a key; Any where that is open, None where there are no keys."""
    for member in _members(annotation):
        if member is Any or hasattr(member, "model_fields"):
            return Any
        if is_typeddict(member):
            hints = typing.get_type_hints(member, include_extras=True)
            return hints.get(path.partition(".")[0], Any)
        origin = get_origin(member) or member
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return (*get_args(member), Any, Any)[1] if get_args(member) else Any
    return None


def _is_scalar(annotation: Any) -> bool:
    """Whether one of the types that it allows is a scalar, so that there are no keys below."""
    return any(
        get_origin(member) is typing.Literal
        or (isinstance(member, type) and issubclass(member, str | int | float))
        for member in _members(annotation)
    )


def _value(written: str, mark: Mark) -> Any:
    """The value, YAML as a config's; nothing is null."""
    if not written.strip():
        return None
    try:
        return Source(written.encode(errors="replace"), mark.file, LIMITS).data
    except ConfigError as error:
        raise OverrideError.of(error) from None


def _put(step: dict[str, Any], keys: tuple[str, ...], value: Any, mark: Mark) -> None:
    """Lay a value into the parameters of a step: maps merge, and nothing is said twice."""
    node = step
    for key in keys[:-1]:
        below = node.setdefault(key, {})
        if not isinstance(below, dict):
            raise OverrideError(f"{key} is set as a whole by another --set", mark)
        node = below
    last = keys[-1]
    if last not in node:
        node[last] = value
    elif isinstance(node[last], dict) and isinstance(value, dict) and value:
        for key, item in value.items():
            _put(node[last], (key,), item, mark)
    else:
        raise OverrideError(f"{'.'.join(keys)} is set twice", mark)


def _condition(word: str) -> dict[str, Any]:
    """``KEY=GLOB`` as a `when`; the rest of a KEY of a map is the name in it."""
    key, equals, glob = word.partition("=")
    mark = Mark(f"--on {word}")
    if not equals:
        raise OverrideError("expected KEY=GLOB, as in --on task='*.train'", mark)
    name, _, entry = key.partition(".")
    fields = [field for field in WHEN_FIELDS if field not in ("any", "all", "not")]
    if name not in fields:
        raise OverrideError(f"no field {name!r}; {nearest(name, fields, what='fields')}", mark)
    if (name in MAP_FIELDS) is not bool(entry):
        form = f"{name}.NAME=GLOB" if name in MAP_FIELDS else f"{name}=GLOB"
        raise OverrideError(f"expected {form}", mark)
    return {name: {entry: glob} if entry else glob}
