"""The parameters of steps, read by a transformer's annotations once, when a config is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import NotRequired, Required, TypedDict

from kubetailor.registry.source import Plain, read_core, text
from kubetailor.registry.transformer import Transformer
from kubetailor.workloads import nearest

__all__ = ["ParameterError", "Text", "adapter_of", "json_schema", "read_parameters"]

Text = Annotated[str, AfterValidator(text)]


class ParameterError(ValueError):
    """A `with` that its transformer cannot take.

    Attributes:
        path: where in the `with`.
    """

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.path: tuple[str | int, ...] = path


def adapter_of(
    name: str, annotations: Mapping[str, Any], required: frozenset[str]
) -> TypeAdapter[Any]:
    """The adapter that reads the `with` of a transformer."""
    fields = {
        field: Required[hint] if field in required else NotRequired[hint]
        for field, hint in annotations.items()
    }
    shape = TypedDict(name.replace(".", "_"), fields)  # type: ignore[misc]  # made at run time
    config = ConfigDict(extra="forbid", title=name, arbitrary_types_allowed=True)
    return TypeAdapter(with_config(config)(shape))


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
    # pydantic makes a str of what a type reads as one; what is still plain is where any is taken.
    return {name: read_core(value) for name, value in found.items()}


def _parameter_error(transformer: Transformer, error: ValidationError) -> ParameterError:
    faults = error.errors(include_url=False)
    first = faults[0]
    # Steps into a union's members are pydantic's, not the user's.
    path = tuple(
        key for key in first["loc"] if not (isinstance(key, str) and key.startswith("function-"))
    )
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
