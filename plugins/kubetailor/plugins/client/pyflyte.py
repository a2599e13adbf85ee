"""`--override`, `--set` and `--on` of `pyflyte run --remote`.

They are there as soon as pyflyte's own module is imported (`flytekit.plugins`, a post-import hook),
and take none of the places that flytekit has for one plugin alone. Every `pyflyte` pays for what is
imported here: nothing but click.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import click

from kubetailor.plugins.cli.overriding import OVERRIDE_OPTIONS, GivenOverride

if TYPE_CHECKING:
    from kubetailor.registry import Override
    from kubetailor.registry.tailor import Tailor

__all__ = ["install"]

_GIVEN: Final = f"{__name__}.given"
"""Where the context of the command keeps the override, for the entity's own command below it."""


def install(module: ModuleType) -> None:
    """Give the options to `pyflyte run`.

    Args:
        module: flytekit.clis.sdk_in_container.run.
    """
    try:
        run, group, run_remote = module.run, module.RemoteEntityGroup, module.run_remote
        registered = {group.LAUNCHPLAN_COMMAND, group.WORKFLOW_COMMAND, group.TASK_COMMAND}
        taken = {name for param in run.params for name in param.opts}
        options = [option for option in OVERRIDE_OPTIONS if taken.isdisjoint(option.opts)]
        if len(options) != len(OVERRIDE_OPTIONS):
            raise AttributeError("pyflyte run has options of these names")
        resolve = run.resolve_command
    except AttributeError as error:
        import logging

        logging.getLogger("flytekit").error(
            "kubetailor does not know this flytekit: pyflyte run has no --override: %s", error
        )
        return
    run.params += [copy.copy(option) for option in options]
    run.resolve_command = _resolving(resolve, registered)
    module.run_remote = _running(run_remote)  # type: ignore[attr-defined]  # it has just been read


def _resolving(original: Callable[..., Any], registered: set[str]) -> Callable[..., Any]:
    @functools.wraps(original)
    def resolve_command(ctx: click.Context, args: list[str]) -> Any:
        # What is left in `params` becomes flytekit's RunLevelParams, which has no more fields.
        given = GivenOverride(*(ctx.params.pop(name, None) for name in _NAMES))
        if given and not ctx.resilient_parsing:
            if not ctx.params["remote"] and args[0] not in registered:
                raise click.UsageError(
                    "--override, --set and --on are for an execution on a cluster: add --remote",
                    ctx,
                )
            ctx.meta[_GIVEN] = _faults_said(_read)(given)
        return original(ctx, args)

    return resolve_command


_NAMES: Final = tuple(str(option.name) for option in OVERRIDE_OPTIONS)


def _read(given: GivenOverride) -> tuple[Override, Tailor]:
    """The override, refused before anything is registered if no task may have it."""
    from kubetailor.plugins.client.launching import tailor_in_force

    tailor = tailor_in_force()
    override = given.read(tailor.config.plugins)
    tailor.config.overrides.compile(override)
    return override, tailor


def _running(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run_remote(
        remote: Any,
        entity: Any,
        project: str,
        domain: str,
        inputs: dict[str, Any],
        run_level_params: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        context = click.get_current_context(silent=True)
        given = None if context is None else context.meta.get(_GIVEN)
        if given is not None:
            from kubetailor.plugins.client.launching import prepare
            from kubetailor.plugins.client.request import Request

            override, tailor = given
            request = Request(
                annotations=run_level_params.annotations,
                labels=run_level_params.labels,
                inputs=inputs,
                overwrite_cache=run_level_params.overwrite_cache,
                project=project,
                domain=domain,
            )
            launch = _faults_said(prepare)(remote, entity, override, request, tailor=tailor)
            launch.say()
            run_level_params.annotations = dict(launch.annotations)
        return original(remote, entity, project, domain, inputs, run_level_params, *args, **kwargs)

    return run_remote


def _faults_said(function: Callable[..., Any]) -> Callable[..., Any]:
    """A fault of the user's as pyflyte says one: no traceback."""
    from kubetailor.plugins.cli.output import Fault, faults_of
    from kubetailor.registry import KubetailorError

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except KubetailorError as error:
            raise Fault(faults_of(error)) from error

    return call
