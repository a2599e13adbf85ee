"""One hash for all that a chain does; what is said of it, but does nothing, is not in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kubetailor.registry.accelerator import Accelerator
from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.source import as_written, canonical
from kubetailor.registry.step import Step

__all__ = ["chain_digest", "sha256"]


def chain_digest(
    steps: Sequence[Step], *, strict: bool, catalogue: Catalogue, plugins: Plugins
) -> str:
    """What stands for a chain: its steps with what they use, and the code of their plugins."""
    loaded = {PROJECT, *(step.transformer.plugin for step in steps)}
    identities = sorted(plugins[name].identity for name in loaded)
    used = sorted(
        {
            name
            for step in steps
            for name in _strings([step.arguments, step.written])
            if name in catalogue
        }
    )
    return sha256(
        {
            "steps": [
                {
                    "layer": step.layer,
                    "use": step.transformer.name,
                    "with": _parameters(step),
                    "when": step.when.written,
                    "optional": step.optional,
                }
                for step in steps
            ],
            "strict": strict,
            "accelerators": {name: _accelerator(catalogue[name]) for name in used},
            "flyte": {name: said for name, said in asdict(catalogue.flyte).items() if said},
            "plugins": identities,
        }
    )


def _accelerator(entry: Accelerator) -> Any:
    return _plain({key: value for key, value in asdict(entry).items() if key != "pages"})


def sha256(value: Any) -> str:
    """The hash of JSON data, ``sha256:`` and hexadecimal digits."""
    return "sha256:" + hashlib.sha256(canonical(value).encode()).hexdigest()


def _parameters(step: Step) -> dict[str, Any]:
    """The parameters as they were read; one that is no JSON data as it was written.

    A model may hold a set, whose order differs from run to run, or a secret, which shows none.
    """
    found: dict[str, Any] = {}
    for name, value in step.arguments.items():
        try:
            found[name] = _plain(value)
        except TypeError:
            found[name] = {"written": as_written(step.written.get(name))}
    return found


def _plain(value: Any) -> Any:
    """JSON data of maps and sequences of any type.

    Raises:
        TypeError: there is something else in it.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if type(value) is dict:
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} is no JSON data")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
