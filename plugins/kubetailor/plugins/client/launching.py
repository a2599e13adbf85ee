"""What comes before a launch with an override: its annotations, and what the cluster would say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubetailor.plugins.cli.output import note
from kubetailor.plugins.client.annotations import launch_plan_of, merged, own_annotations
from kubetailor.plugins.execution.literals import plain_inputs, plain_values
from kubetailor.plugins.flyte.messages import as_json
from kubetailor.registry import KubetailorError, Override
from kubetailor.registry.tailor import Tailor

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

    from kubetailor.plugins.client.preview import Preview
    from kubetailor.plugins.client.registered import Registered
    from kubetailor.plugins.client.request import Request

__all__ = ["Launch", "prepare", "tailor_in_force"]


@dataclass(frozen=True)
class Launch:
    """What a launch has to send, and what is known of it.

    Attributes:
        annotations: all annotations of the request.
        preview: what will happen; None where it could not be asked for.
        unchecked: why not, else None.
    """

    annotations: Mapping[str, str]
    preview: Preview | None
    unchecked: str | None = None

    def say(self) -> None:
        """Say on stderr what will not happen, and what could not be checked."""
        if self.unchecked is not None:
            note(f"what the override does could not be checked: {self.unchecked}")
        if self.preview is not None:
            self.preview.say()


def tailor_in_force(path: Path | None = None) -> Tailor:
    """The config in force; without one the built-ins, and what they let be overridden.

    Args:
        path: the config that was asked for, or None.
    """
    found = Tailor.find(path)
    if found is None:
        note(
            "no config here: overrides are judged by what is allowed by default; give the "
            "cluster's with KUBETAILOR_CONFIG"
        )
    return found or Tailor.built_in()


def prepare(
    remote: FlyteRemote,
    entity: Any,
    override: Override,
    request: Request,
    *,
    tailor: Tailor | None = None,
    registered: Registered | None = None,
) -> Launch:
    """Lay an override over what an execution has anyway, and refuse what the cluster would.

    Where nothing is asked for, the launch plan's annotations hold, and none are sent.

    Args:
        remote: where it is launched.
        entity: what is launched, as `FlyteRemote.execute` takes it.
        override: the override.
        request: what else is said of it; it runs in the remote's project and domain unless others
            are said.
        tailor: the config; by default the one in force.
        registered: what FlyteAdmin holds of the entity, if that was asked already.

    Raises:
        OverrideError: a step may not be, is for no task, or changes nothing.
    """
    from kubetailor.plugins.client.previewing import preview

    tailor = tailor or tailor_in_force()
    launch_plan = launch_plan_of(remote, entity)
    own = own_annotations(remote, launch_plan, request.project, request.domain)
    found = merged(own, request.annotations or {}, override)
    annotations = found.request if override.steps or request.annotations else {}
    tailor.config.overrides.compile(found.override)
    try:
        launched = entity if launch_plan is None else launch_plan
        known = registered or _registered(remote, launched, tailor, request)
    except KubetailorError as error:
        return Launch(annotations, None, str(error))
    request = replace(
        request,
        annotations=found.annotations,
        inputs=None if request.inputs is None else _plain(request.inputs),
        project=request.project or remote.default_project,
        domain=request.domain or remote.default_domain,
    )
    shown = preview(known, tailor, found.override if found.override.steps else None, request)
    shown.check()
    return Launch(annotations, shown)


def _plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that a `when` can read: plain values, also those that pyflyte made literals of."""
    from flytekit.models.literals import Literal

    literals = {name: as_json(v.to_flyte_idl()) for name, v in inputs.items() if type(v) is Literal}
    return {**plain_values(_as_sent(inputs)), **plain_inputs(literals)}


def _as_sent(value: Any) -> Any:
    """A value as the cluster sees it: of what is neither plain nor a map there, None.

    A file, a directory or a data set is a dataclass of flytekit's too, and sent as what it is.
    """
    if isinstance(value, Mapping):
        return {key: _as_sent(item) for key, item in value.items()}
    return None if _has_own_form(value) else _as_maps(value)


def _as_maps(value: Any) -> Any:
    """A value with maps for its dataclasses and models; nothing is copied, as it may be large."""
    if isinstance(value, Mapping):
        return {key: _as_maps(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _as_maps(getattr(value, each.name)) for each in fields(value)}
    model: Any = getattr(type(value), "model_fields", None)
    return value if model is None else {name: _as_maps(getattr(value, name)) for name in model}


def _has_own_form(value: Any) -> bool:
    """Whether flytekit has a form for a dataclass that is not the one of all."""
    from flytekit.core.type_engine import DataclassTransformer, TypeEngine

    if not is_dataclass(value) or isinstance(value, type):
        return False
    return type(TypeEngine.get_transformer(type(value))) is not DataclassTransformer


def _registered(remote: FlyteRemote, entity: Any, tailor: Tailor, request: Request) -> Registered:
    """What FlyteAdmin holds of what is launched; of what is local, what registering makes of it.

    Raises:
        KubetailorError: FlyteAdmin cannot say, or flytekit cannot serialize it.
    """
    from flytekit.remote.remote import RemoteEntity

    from kubetailor.plugins.client.local import registered_of_local
    from kubetailor.plugins.client.registered import registered_of

    if isinstance(entity, RemoteEntity):
        return registered_of(remote, entity)
    place = {"project": request.project, "domain": request.domain}
    return registered_of_local(remote, entity, tailor, **place)
