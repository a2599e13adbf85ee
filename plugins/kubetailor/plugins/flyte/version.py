"""The version of what is registered: the same code under another chain is another version."""

from __future__ import annotations

import json
from typing import Any

import click

from kubetailor.plugins.flyte.serialization import tailor_at
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.tailoring import serializes

__all__ = ["context_of", "explain_rejection"]

_REJECTED = "different structure"
"""FlyteAdmin's words (flyteadmin/pkg/errors/errors.go, `New...ExistsDifferentStructureError`)."""

_COMPARED = ("chain", "digest", "done", "deferred")


def context_of(path: str) -> tuple[str, ...]:
    """What flytekit is to fold into an automatic version, for the config at a path.

    Raises:
        SerializationError: it cannot be used.
    """
    tailor = tailor_at(path)
    if not serializes(tailor):
        return ()
    fields = json.dumps(dict(tailor.fields or {}), sort_keys=True)
    return (tailor.digest, fields)


def explain_rejection(
    error: Exception,
    remote: Any,
    cp_entity: Any,
    settings: Any = None,
    version: Any = None,
    *_: Any,
    **__: Any,
) -> None:
    """Say on stderr if FlyteAdmin refused a version because it was registered under another chain.

    Args:
        error: what `FlyteRemote.raw_register` raised.
        remote: the FlyteRemote.
        cp_entity: what was to be registered.
        settings: the serialization settings.
        version: the version.
    """
    details = getattr(error.__cause__, "details", None)
    if _REJECTED not in f"{error} {details() if callable(details) else ''}":
        return
    template = getattr(cp_entity, "template", None)
    if template is None:
        return
    name = template.id.name
    version = version or getattr(settings, "version", None)
    ours = _stamp(template)
    try:
        theirs = _stamp(_registered(remote, name, version, settings))
    except Exception:  # a workflow, or FlyteAdmin does not say
        return
    if theirs != ours:
        click.secho(
            f"kubetailor: version {version} of {name} is registered {_said(theirs)}, and would now "
            f"be registered {_said(ours)}: register it as a new version",
            fg="yellow",
            err=True,
        )


def _registered(remote: Any, name: str, version: Any, settings: Any) -> Any:
    """The task template that FlyteAdmin has."""
    from flytekit.models.core.identifier import ResourceType

    id_ = remote._resolve_identifier(ResourceType.TASK, name, version, settings)
    return remote.client.get_task(id_).closure.compiled_task.template


def _stamp(template: Any) -> dict[str, Any] | None:
    """The parts of a task template's stamp that say what was done; None without one."""
    metadata = getattr(template.metadata, "k8s_object_metadata", None)
    text = (metadata.annotations or {}).get(STAMP) if metadata else None
    try:
        found = json.loads(text) if text else None
        return {key: found.get(key) for key in _COMPARED} if found else None
    except (ValueError, AttributeError):
        return None


def _said(stamp: dict[str, Any] | None) -> str:
    if stamp is None:
        return "as its author wrote it"
    done = f"{stamp['done']} steps of " if stamp["deferred"] else ""
    return f"after {done}the chain {stamp['chain']} ({str(stamp['digest'])[:19]})"
