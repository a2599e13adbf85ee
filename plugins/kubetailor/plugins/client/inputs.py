"""The inputs of an execution, from a file, converted as `pyflyte run` converts them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kubetailor.registry import ConfigError, KubetailorError
from kubetailor.registry.source import Limits, Source, read_core, text
from kubetailor.workloads import nearest

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

__all__ = ["Inputs", "read_inputs"]


class Inputs(NamedTuple):
    """What `FlyteRemote.execute` takes.

    Attributes:
        values: the inputs, by name.
        types: their Python types.
    """

    values: dict[str, Any]
    types: dict[str, Any]


def read_inputs(path: Path | None, remote: FlyteRemote, entity: Any) -> Inputs:
    """Read a file of inputs: YAML or JSON, a map of names.

    Args:
        path: the file; None for no inputs.
        remote: where they go.
        entity: what is launched; its interface says their types.

    Raises:
        KubetailorError: the file cannot be read, or every input that is not of the interface.
    """
    from flytekit.core.type_engine import TypeEngine

    variables: dict[str, Any] = entity.interface.inputs
    types = TypeEngine.guess_python_types(variables)
    if path is None:
        return Inputs({}, types)
    found: dict[str, Any] = {}
    faults: list[str] = []
    for name, value in _read(path).items():
        if name not in variables:
            near = nearest(name, variables, what="inputs")
            faults.append(f"{path}: no input {name!r}; {near}")
        elif value is not None:
            try:
                found[name] = _converted(remote, value, types[name], variables[name].type)
            except Exception as error:  # flytekit's converters raise anything
                said = error.message if isinstance(error, click.ClickException) else str(error)
                wanted = getattr(types[name], "__name__", types[name])
                faults.append(f"{path}: input {name!r}, {wanted}: {said}")
    if faults:
        raise KubetailorError("\n".join(faults))
    return Inputs(found, types)


def _read(path: Path) -> dict[str, Any]:
    try:
        source = Source(path.read_bytes(), str(path), Limits())
    except OSError as error:
        raise KubetailorError(f"{path}: {error.strerror}") from None
    if not isinstance(source.data, dict):
        raise ConfigError("expected a map of inputs", source.mark(()))
    return {text(name): value for name, value in source.data.items()}


def _converted(remote: FlyteRemote, value: Any, python_type: Any, literal_type: Any) -> Any:
    """A value as if it had been an option of `pyflyte run`."""
    from flytekit.interaction.click_types import FlyteLiteralConverter

    converter = FlyteLiteralConverter(
        remote.context, literal_type=literal_type, python_type=python_type, is_remote=True
    )
    written = text(value) if isinstance(value, str) else json.dumps(read_core(value))
    # Files and directories ask the command where it runs.
    command = click.Context(click.Command("run"), obj=SimpleNamespace(is_remote=True, verbose=0))
    return converter.click_type.convert(written, None, command)
