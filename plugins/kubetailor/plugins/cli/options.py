"""The options that commands share, here and in other hosts, and the config that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kubetailor.registry import ConfigError
from kubetailor.registry.context import PHASES, parse_task_fields
from kubetailor.registry.location import FILE_NAME

if TYPE_CHECKING:
    from kubetailor.registry.tailor import Tailor

__all__ = [
    "chain_option",
    "config_option",
    "no_config",
    "output_option",
    "phase_option",
    "required_tailor",
    "task_option",
]

F = TypeVar("F", bound=Callable[..., Any])


def config_option(command: F) -> F:
    """``--config``, given to the command as `config: Path | None`."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"The config. By default $KUBETAILOR_CONFIG, else the nearest {FILE_NAME} at or above "
        "the working directory.",
    )(command)


def chain_option(command: F) -> F:
    """``--chain``, given to the command as `chain: str | None`."""
    return click.option(
        "--chain",
        metavar="NAME",
        help="Run this chain, whatever `select` says. By default $KUBETAILOR_CHAIN.",
    )(command)


def task_option(command: F) -> F:
    """``--task``, given to the command as `task: dict[str, str]`."""
    return click.option(
        "--task",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_task_fields,
        help="What is known of the task, such as domain=production; repeat it for more. Beats "
        "$KUBETAILOR_TASK.",
    )(command)


def _task_fields(_: click.Context, __: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    try:
        return parse_task_fields(list(pairs))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def phase_option(command: F) -> F:
    """``--phase``, given to the command as `phase: Phase | None`."""
    return click.option(
        "--phase",
        type=click.Choice(PHASES),
        help="The phase to run. By default admit for Kubernetes objects, serialize for task "
        "templates.",
    )(command)


def output_option(*formats: str, default: str | None) -> Callable[[F], F]:
    """``-o``, given to the command as `output: str`.

    Args:
        formats: what it may be.
        default: what it is if it is not given; None is given to the command as None.
    """
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=default,
        show_default=default is not None,
        help="The format of what is printed.",
    )


def required_tailor(config: Path | None, chain: str | None, task: dict[str, str]) -> Tailor:
    """The config in force, as `config_option`, `chain_option` and `task_option` gave it.

    Raises:
        ConfigError: there is none, or it cannot be used.
        PluginError: plugins that cannot be loaded.
    """
    from kubetailor.registry.tailor import Tailor

    found = Tailor.find(config, chain=chain, fields=task)
    if found is None:
        raise no_config()
    return found


def no_config() -> ConfigError:
    """The error that says where a config was looked for."""
    return ConfigError(
        f"no config: neither --config nor KUBETAILOR_CONFIG is given, and there is no {FILE_NAME} "
        f"in {Path.cwd()} or above it"
    )
