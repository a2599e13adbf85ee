"""The parameters of steps: read by the annotations of a transformer, once, when a config is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import NotRequired, Required, TypedDict

from kubetailor.registry.source import Plain, read_core, text
from kubetailor.registry.transformer import Transformer, is_union
from kubetailor.workloads import nearest

__all__ = ["ParameterError", "Text", "adapter_of", "json_schema", "read_parameters"]

Text = Annotated[str, AfterValidator(text)]
_Open = Annotated[Any, BeforeValidator(read_core)]


class ParameterError(ValueError):
    """A `with` that its transformer cannot take.

    Attributes:
        path: where in the `with`.
    """

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.path = path


def _readable(annotation: Any) -> Any:
    """An annotation under which plain scalars are read as the type says."""
    if annotation is str:
        return Text
    if annotation in (Any, object):
        return _Open
    if annotation in (dict, list):
        return Annotated[annotation, BeforeValidator(read_core)]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[(_readable(args[0]), *annotation.__metadata__)]
    if is_union(annotation):
        found = _readable(args[0])
        for arg in args[1:]:
            found = found | _readable(arg)
        return found
    if origin in (dict, list, tuple, set, frozenset, Mapping) and args:
        return origin[tuple(_readable(arg) for arg in args)]
    return annotation


def adapter_of(name: str, annotations: Mapping[str, Any], required: frozenset[str]) -> TypeAdapter[Any]:
    """The adapter that reads the `with` of a transformer."""
    fields = {
        field: Required[_readable(hint)] if field in required else NotRequired[_readable(hint)]
        for field, hint in annotations.items()
    }
    shape: Any = TypedDict(name.replace(".", "_"), fields)  # type: ignore[operator, misc]
    shape.__pydantic_config__ = ConfigDict(extra="forbid", title=name, arbitrary_types_allowed=True)
    return TypeAdapter(shape)


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
    return {name: text(value) for name, value in found.items()}


def _parameter_error(transformer: Transformer, error: ValidationError) -> ParameterError:
    faults = error.errors(include_url=False)
    first = faults[0]
    # Steps into a union's members are pydantic's, not the user's.
    path = tuple(key for key in first["loc"] if not (isinstance(key, str) and key.startswith("function-")))
    name = ".".join(map(str, path))
    known = list(transformer.annotations)
    if first["type"] == "extra_forbidden" and len(path) == 1:
        message = f"no parameter {name!r}; {nearest(name, known, what='parameters')}"
    elif first["type"] == "missing":
        message = f"the parameter {name!r} is required"
    else:
        reason = first["msg"].removeprefix("Value error, ")
        message = f"{name}: {reason} (found {_shown(first['input'])})"
    return ParameterError(f"{transformer.name}: {message}", path)


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
