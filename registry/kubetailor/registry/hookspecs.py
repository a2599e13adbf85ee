"""The hooks of a plugin. They register; the order of steps is the config's alone.

A plugin is a module. Its `@transformer` functions are registered without any hook; the hooks are
for what is made at run time, and for all else::

    from kubetailor.registry import hookimpl

    @hookimpl
    def register_kinds(register):
        register(Kind("TrainingRun", "acme.example.com", (PodPath("worker", "spec.template"),)))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    import click

    from kubetailor.workloads import Kind, Workload

__all__ = ["PROJECT", "RegisterTransformer", "hookimpl", "hookspec"]

PROJECT = "kubetailor"
"""The name of the pluggy project, and of the entry-point group."""

hookspec: pluggy.HookspecMarker = pluggy.HookspecMarker(PROJECT)
hookimpl: pluggy.HookimplMarker = pluggy.HookimplMarker(PROJECT)


class RegisterTransformer(Protocol):
    """What `register_transformers` is given."""

    def __call__(
        self, function: Callable[..., Any], *, name: str | None = None, atomic: bool = False
    ) -> None:
        """Register a function as the transformer ``<plugin>.<name>``, by default its own name."""
        ...


@hookspec
def register_transformers(register: RegisterTransformer) -> None:
    """Called once, when the plugin is loaded: register functions as transformers.

    :param register: takes the function; `name` if it should not be the function's own, and
        `atomic` if as a default it is kept whole or not at all.
    """


@hookspec
def register_kinds(register: Callable[[Kind], None]) -> None:
    """Called once, when the plugin is loaded: add rows to the table of kinds.

    :param register: takes a `Kind`.
    """


@hookspec
def register_accelerators(register: Callable[[str, Mapping[str, Any]], None]) -> None:
    """Called once, when the plugin is loaded: add entries to the catalogue of accelerators.

    :param register: takes a name and the entry as a config writes it under `accelerators`.
    """


@hookspec
def register_commands(cli: click.Group) -> None:
    """Called when the command line starts: add commands to ``kubetailor``.

    :param cli: the click group.
    """


@hookspec
def validate(workload: Workload) -> Iterable[str] | None:
    """Called for each workload that a chain changed: say what is wrong with the result.

    :param workload: the result; to change it is a fault.
    :return: faults, each a sentence; any of them fails the chain, and all are told, with the
        plugin and the step after which it was so.
    """
