"""What a plugin holds that would be lost without a word: it is a fault instead."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kubetailor.registry import hookspecs
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.registry.signature import body_of, source_of
from kubetailor.registry.transformer import TransformerError, options_of
from kubetailor.workloads import ConflictError, nearest

if TYPE_CHECKING:
    import pluggy

__all__ = ["HOOKS", "check_hooks", "check_members"]

HOOKS: tuple[str, ...] = tuple(
    name for name, value in vars(hookspecs).items() if hasattr(value, f"{PROJECT}_spec")
)
"""The hooks that there are."""


def check_hooks(manager: pluggy.PluginManager, module: ModuleType) -> None:
    """Check the hooks of a module that is registered.

    Raises:
        ConflictError: one that would never be called, or not as it is meant.
    """
    for caller in manager.get_hookcallers(module) or ():
        impl = next(found for found in caller.get_hookimpls() if found.plugin is module)
        if not caller.has_spec() and not impl.optionalhook:
            raise ConflictError(
                f"no hook {caller.name!r}; {nearest(caller.name, HOOKS, what='hooks')}"
            )
        if impl.hookwrapper or impl.wrapper:
            raise ConflictError(
                f"the hook {caller.name!r} is called for one plugin at a time, so that there is "
                f"nothing to wrap: {source_of(impl.function)} must be a plain function"
            )
    for name in HOOKS:
        function = vars(module).get(name)
        if inspect.isfunction(function) and _is_unmarked(function, name, module):
            raise ConflictError(
                f"{source_of(function)}: the function {name!r} is called like a hook, but is not "
                "marked @hookimpl: it would never be called"
            )


def _is_unmarked(function: Any, name: str, module: ModuleType) -> bool:
    """Whether a function that is called like a hook is meant to be one."""
    if function.__module__ != module.__name__ or options_of(function):
        return False
    if hasattr(function, f"{PROJECT}_impl"):
        return False
    spec = inspect.signature(getattr(hookspecs, name)).parameters
    own = inspect.signature(function).parameters
    return name.startswith("register_") or own.keys() <= spec.keys()


def check_members(module: ModuleType, registered: Sequence[Any]) -> None:
    """Check that what is marked in a class of a module was registered by a hook.

    Args:
        module: the module.
        registered: the functions that it registered.

    Raises:
        TransformerError: one that was not.
    """
    bodies = [body_of(function) for function in registered]
    for owner in list(vars(module).values()):
        if not inspect.isclass(owner) or owner.__module__ != module.__name__:
            continue
        for member in vars(owner).values():
            body = body_of(member)
            if (options_of(member) or options_of(body)) and body not in bodies:
                raise TransformerError(
                    f"{source_of(body)}: {body.__qualname__} is marked @transformer, but is in a "
                    "class: move it out, or register it with the hook register_transformers"
                )
