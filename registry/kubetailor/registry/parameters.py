"""The parameters of steps, read by a transformer's annotations once, when a config is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError, with_config
from pydantic.errors import PydanticUserError
from typing_extensions import NotRequired, Required, TypedDict

from kubetailor.registry.reading import keys_at
from kubetailor.registry.scalars import scalar_validator
from kubetailor.registry.signature import is_union, unwrapped
from kubetailor.registry.source import Plain, text
from kubetailor.registry.transformer import (
    Transformer,
    TransformerError,
)
from kubetailor.workloads import nearest

__all__ = ["ParameterError", "Text", "adapter_of", "json_schema", "read_parameters", "read_value"]

Text = Annotated[str, AfterValidator(text)]


class ParameterError(ValueError):
    """A `with` that its transformer cannot take.

    Attributes:
        path: where in the `with`.
    """

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.path: tuple[str | int, ...] = path


def adapter_of(transformer: Transformer) -> TypeAdapter[Any]:
    """The adapter that reads the `with` of a transformer.

    Raises:
        TransformerError: an annotation is one that pydantic cannot read.
    """
    name, required = transformer.name, transformer.required
    fields = {
        field: Required[hint] if field in required else NotRequired[hint]
        for field, hint in transformer.annotations.items()
    }
    config = ConfigDict(
        extra="forbid", title=name, arbitrary_types_allowed=True, allow_inf_nan=False
    )
    try:
        shape = TypedDict(name.replace(".", "_"), fields)  # type: ignore[misc]  # made at run time
        adapter: TypeAdapter[Any] = TypeAdapter(with_config(config)(shape))
        adapter.validator = scalar_validator(adapter.core_schema)
    except Exception as error:  # what annotations hold is the plugin's, and may raise anything
        reason = str(error).partition("\n")[0]
        if isinstance(error, PydanticUserError):
            reason = error.message.partition("\n")[0]
        raise TransformerError(
            f"transformer {name!r} ({transformer.source}): a parameter cannot be read: {reason}"
        ) from error
    return adapter


def read_parameters(transformer: Transformer, given: Any, context: Any = None) -> dict[str, Any]:
    """The keyword arguments that a step's `with` stands for.

    Args:
        transformer: whose parameters they are.
        given: the `with`, from YAML or from Python.
        context: what validators may look things up in.

    Raises:
        ParameterError: the first fault: where, what was given, what is allowed.
    """
    try:
        found = transformer.adapter.validate_python(given or {}, context=context)
    except ValidationError as error:
        raise _parameter_error(transformer, error) from None
    return dict(found)


def read_value(transformer: Transformer, parameter: str, given: Any, context: Any = None) -> Any:
    """What a scalar parameter, or a value in a map or list of one, would be.

    Where the parameter's type is no scalar, the value stays what was written.

    Args:
        transformer: whose parameter it is.
        parameter: its name.
        given: the value, from YAML or from Python.
        context: what validators may look things up in.

    Raises:
        ParameterError: the type does not take it.
    """
    annotation = transformer.annotations[parameter]
    if given is None or not _is_scalar(annotation):
        return text(given)
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    adapter.validator = scalar_validator(adapter.core_schema)
    try:
        return adapter.validate_python(given, context=context)
    except ValidationError as error:
        raise _parameter_error(transformer, error, (parameter,)) from None


def _is_scalar(annotation: Any) -> bool:
    """Whether values of a type hold no others."""
    annotation = unwrapped(annotation)
    if is_union(annotation):
        return all(_is_scalar(part) for part in get_args(annotation))
    kind = get_origin(annotation) or annotation
    if kind is Literal:
        return True
    holds = (Mapping, list, tuple, set, frozenset)
    return isinstance(kind, type) and not (
        issubclass(kind, holds) or is_dataclass(kind) or hasattr(kind, "model_fields")
    )


def _parameter_error(
    transformer: Transformer, error: ValidationError, above: tuple[str | int, ...] = ()
) -> ParameterError:
    faults = error.errors(include_url=False)
    first = faults[0]
    # Steps into a union's members are pydantic's, not the user's.
    path = tuple(
        key for key in first["loc"] if not (isinstance(key, str) and key.startswith("function-"))
    )
    if path[-1:] == ("[key]",) and path[-2:-1] == (first["input"],):
        path = path[:-1]  # so does pydantic say that the key itself is at fault
    path = (*above, *path)
    name = ".".join(map(str, path))
    known = list(transformer.annotations)
    if first["type"] == "extra_forbidden" and len(path) == 1:
        listing = f"kubetailor transformers {transformer.name}"
        near = nearest(name, known, what="parameters", listing=listing)
        message = f"no parameter {name!r}; {near}"
    elif first["type"] == "extra_forbidden" and (keys := _keys_at(transformer, path[:-1])):
        place = ".".join(map(str, path[:-1]))
        key = str(path[-1])
        message = f"{place}: no key {key!r} here; {nearest(key, keys, what='keys')}"
    elif first["type"] == "missing":
        message = f"the parameter {name!r} is required"
    else:
        reason = first["msg"].removeprefix("Value error, ")
        message = f"{name}: {reason} (found {_shown(first['input'])})"
    return ParameterError(f"{transformer.name}: {message}", path)


def _keys_at(transformer: Transformer, path: tuple[str | int, ...]) -> list[str]:
    try:
        return keys_at(transformer.adapter.json_schema(), path)
    except PydanticUserError:
        return []  # a type of a plugin that has no JSON Schema


def _shown(value: Any) -> str:
    value = text(value) if isinstance(value, Plain) else value
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def json_schema(transformer: Transformer) -> dict[str, Any]:
    """The JSON Schema of a transformer's `with`."""
    schema: dict[str, Any] = transformer.adapter.json_schema(
        ref_template=f"#/$defs/{transformer.name}.{{model}}"
    )
    return schema
