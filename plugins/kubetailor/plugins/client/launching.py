"""What comes before a launch with an override: its annotations, and what the cluster would say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
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
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    overwrite_cache: bool = False,
    project: str | None = None,
    domain: str | None = None,
    tailor: Tailor | None = None,
    registered: Registered | None = None,
) -> Launch:
    """Lay an override over what an execution has anyway, and refuse what the cluster would.

    Where nothing is asked for, the launch plan's annotations hold, and none are sent.

    Args:
        remote: where it is launched.
        entity: what is launched, as `FlyteRemote.execute` takes it.
        override: the override.
        annotations: those of the request.
        labels: the same; None for the launch plan's.
        inputs: the inputs; None if they are not known yet.
        overwrite_cache: whether the request says so.
        project: of the execution; by default the remote's.
        domain: the same.
        tailor: the config; by default the one in force.
        registered: what FlyteAdmin holds of the entity, if that was asked already.

    Raises:
        OverrideError: a step may not be, is for no task, or changes nothing.
    """
    from kubetailor.plugins.client.previewing import preview

    tailor = tailor or tailor_in_force()
    launch_plan = launch_plan_of(remote, entity)
    own = own_annotations(remote, launch_plan, project, domain)
    found = merged(own, annotations or {}, override)
    request = found.request if override.steps or annotations else {}
    tailor.config.overrides.compile(found.override)
    try:
        known = registered or _registered(remote, entity if launch_plan is None else launch_plan)
    except KubetailorError as error:
        return Launch(request, None, str(error))
    shown = preview(
        known,
        tailor,
        found.override if found.override.steps else None,
        labels=labels,
        annotations=found.annotations,
        inputs=None if inputs is None else _plain(inputs),
        overwrite_cache=overwrite_cache,
        project=project or remote.default_project,
        domain=domain or remote.default_domain,
    )
    shown.check()
    return Launch(request, shown)


def _plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that a `when` can read: plain values, also those that pyflyte made literals of."""
    from flytekit.models.literals import Literal

    literals = {name: as_json(v.to_flyte_idl()) for name, v in inputs.items() if type(v) is Literal}
    return {**plain_values(_as_maps(inputs)), **plain_inputs(literals)}


def _as_maps(value: Any) -> Any:
    """A value with maps for its dataclasses and models; nothing is copied, as it may be large."""
    if isinstance(value, Mapping):
        return {key: _as_maps(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _as_maps(getattr(value, each.name)) for each in fields(value)}
    model: Any = getattr(type(value), "model_fields", None)
    return value if model is None else {name: _as_maps(getattr(value, name)) for name in model}


def _registered(remote: FlyteRemote, entity: Any) -> Registered:
    """What FlyteAdmin holds of what is launched.

    Raises:
        KubetailorError: it cannot say; or the entity is local, and may be changed since then.
    """
    from flytekit.remote.remote import RemoteEntity

    from kubetailor.plugins.client.registered import registered_of

    if not isinstance(entity, RemoteEntity):
        raise KubetailorError(
            f"{entity.name} is not fetched from FlyteAdmin, so only what may be overridden was; "
            "launch what FlyteRemote.fetch_launch_plan gives to have all of it checked"
        )
    return registered_of(remote, entity)
