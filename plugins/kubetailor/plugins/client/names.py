"""What things are registered as, and the questions to FlyteAdmin that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from kubetailor.plugins.client.asking import ask, ask_if_there, raw
from kubetailor.workloads import KubetailorError, nearest

if TYPE_CHECKING:
    from flytekit.remote import FlyteRemote

__all__ = ["EntityKind", "Name", "find_message", "why_not"]

EntityKind: TypeAlias = Literal["launch plan", "workflow", "task"]

_LISTED: Final = 1000
"""As many names are looked at for a message."""


class Name(NamedTuple):
    """What something is registered as; printed as ``PROJECT/DOMAIN/NAME@VERSION``.

    Attributes:
        project: the project.
        domain: the domain.
        name: the name.
        version: the version; ``""`` for the latest one.
    """

    project: str
    domain: str
    name: str
    version: str = ""

    def __str__(self) -> str:
        found = f"{self.project}/{self.domain}/{self.name}"
        return f"{found}@{self.version}" if self.version else found

    @classmethod
    def parse(cls, text: str) -> Name:
        """Read ``PROJECT/DOMAIN/NAME[@VERSION]``.

        Raises:
            KubetailorError: it has another form.
        """
        path, at, version = text.partition("@")
        parts = path.split("/", 2)
        if len(parts) < 3 or not all(parts) or (at and not version):
            raise KubetailorError(f"expected PROJECT/DOMAIN/NAME[@VERSION], found {text!r}")
        project, domain, name = parts
        return cls(project, domain, name, version)

    @classmethod
    def of(cls, identifier: Any) -> Name:
        """The name of a flyteidl.core.Identifier, as a message or in JSON form."""
        fields = ("project", "domain", "name", "version")
        if isinstance(identifier, dict):
            return cls(*(identifier.get(each, "") for each in fields))
        return cls(*(getattr(identifier, each) for each in fields))


def find_message(remote: FlyteRemote, name: Name, kind: EntityKind) -> Any:
    """The message of an entity, or None.

    Args:
        remote: where to look.
        name: its name; without a version the latest one, of a launch plan the active one if any is.
        kind: what it is.

    Raises:
        KubetailorError: FlyteAdmin cannot be asked.
    """
    from flyteidl.admin.common_pb2 import NamedEntityIdentifier, ObjectGetRequest
    from flyteidl.admin.launch_plan_pb2 import ActiveLaunchPlanRequest
    from flyteidl.core.identifier_pb2 import Identifier, ResourceType

    client, what = raw(remote), f"{kind} {name}"
    if not name.version and kind == "launch plan":
        named = NamedEntityIdentifier(project=name.project, domain=name.domain, name=name.name)
        active = ActiveLaunchPlanRequest(id=named)
        found = ask_if_there(what, lambda: client.get_active_launch_plan(active))
        if found is not None:
            return found
    if not name.version:
        versions = _versions(remote, name, kind, most=1)
        if not versions:
            return None
        name = name._replace(version=versions[0])
    type_: Any = ResourceType.Value(kind.upper().replace(" ", "_"))
    request = ObjectGetRequest(id=Identifier(resource_type=type_, **name._asdict()))
    get: Callable[[Any], Any] = getattr(client, f"get_{kind.replace(' ', '_')}")
    return ask_if_there(what, lambda: get(request))


def _versions(remote: FlyteRemote, name: Name, kind: EntityKind, *, most: int) -> list[str]:
    """The versions of a name, the latest first."""
    from flyteidl.admin.common_pb2 import NamedEntityIdentifier, ResourceListRequest, Sort

    named = NamedEntityIdentifier(project=name.project, domain=name.domain, name=name.name)
    by = Sort(key="created_at", direction=Sort.DESCENDING)
    request = ResourceListRequest(id=named, limit=most, sort_by=by)
    what = kind.replace(" ", "_")
    listed = ask(
        f"versions of the {kind} {name}",
        lambda: getattr(raw(remote), f"list_{what}s_paginated")(request),
    )
    return [entity.id.version for entity in getattr(listed, f"{what}s")]


def why_not(remote: FlyteRemote, name: Name, kinds: tuple[EntityKind, ...]) -> str:
    """Why there is nothing of a name, and what there is.

    Args:
        remote: where it is not.
        name: the name.
        kinds: what it might have been.

    Raises:
        KubetailorError: FlyteAdmin cannot be asked.
    """
    for kind in kinds:
        if versions := _versions(remote, name, kind, most=_LISTED):
            near = nearest(name.version, versions, what="versions")
            return f"the {kind} has no version {name.version!r}; {near}"
    there = dict.fromkeys(each for kind in kinds for each in _names(remote, name, kind))
    place = f"{name.project}/{name.domain}"
    if not there:
        return f"nothing is registered in {place}"
    what = " or ".join(kinds)
    return f"no {what} of this name; {nearest(name.name, there, what=f'names in {place}')}"


def _names(remote: FlyteRemote, name: Name, kind: EntityKind) -> Iterator[str]:
    from flyteidl.admin.common_pb2 import NamedEntityIdentifierListRequest

    request = NamedEntityIdentifierListRequest(
        project=name.project, domain=name.domain, limit=_LISTED
    )
    what = f"list_{kind.replace(' ', '_')}_ids_paginated"
    listed = ask(f"names of {kind}s", lambda: getattr(raw(remote), what)(request))
    yield from (each.name for each in listed.entities)
