"""Protobuf messages as JSON data, and back part by part: what nobody changed stays as it is.

flytekit's models are not used to read messages: they lose what they do not know, such as a node's
overrides without resources.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format

from kubetailor.plugins.flyte.plain import plain
from kubetailor.workloads import CannotChangeError, Json, JsonMap, nearest, same

__all__ = ["as_json", "read_message", "write_message"]

HIDDEN = ("interface", "sql")
"""What a chain does not see of a task template: no object of the cluster is made of it."""


def as_json(message: Any) -> JsonMap:
    """A message in protobuf's JSON form, whole."""
    value = plain(json_format.MessageToDict(message))
    found: JsonMap = _with_maps_in_order(message.DESCRIPTOR, value)
    return found


def _with_maps_in_order(descriptor: Any, value: Json) -> Json:
    """A message in JSON form with the keys of its maps sorted: protobuf keeps them in any order."""
    if not isinstance(value, dict):  # a wrapper, such as BoolValue
        return value
    if descriptor.full_name == _STRUCT:
        return _sorted(value)
    return {
        field.json_name: _field_in_order(field, value[field.json_name])
        for field in descriptor.fields
        if field.json_name in value
    }


def _field_in_order(field: Any, value: Json) -> Json:
    kind = field.message_type
    if kind is None:
        return value
    if kind.GetOptions().map_entry:
        inner = kind.fields_by_name["value"]
        return {key: _field_in_order(inner, value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_with_maps_in_order(kind, item) for item in value]
    return _with_maps_in_order(kind, value)


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


_STRUCT = "google.protobuf.Struct"


def read_message(template: Any) -> JsonMap:
    """What a chain sees of a flyteidl.core.TaskTemplate message."""
    return {key: value for key, value in as_json(template).items() if key not in HIDDEN}


def write_message(message: Any, before: JsonMap, after: JsonMap, *, field: str = "") -> None:
    """Write what changed into a message.

    Args:
        message: any message.
        before: what it says, in JSON form.
        after: what it is to say.
        field: the path of the message, for errors.

    Raises:
        CannotChangeError: it has no field for it, or the field takes no such value.
    """
    descriptors = {each.json_name: each for each in message.DESCRIPTOR.fields}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old is new or same(old, new):
            continue
        where = f"{field}.{name}" if field else name
        descriptor = descriptors.get(name)
        if descriptor is None:
            known = nearest(name, descriptors, what="fields")
            raise CannotChangeError(f"Flyte has no such field; {known}", field=where)
        if new is None:
            message.ClearField(descriptor.name)
        elif isinstance(old, dict) and isinstance(new, dict) and _has_fields(descriptor):
            write_message(getattr(message, descriptor.name), old, new, field=where)
        else:
            message.ClearField(descriptor.name)
            parse(message, {name: new}, where)


def parse(message: Any, value: Json, field: str) -> Any:
    """Parse JSON data into a message, and return that.

    Raises:
        CannotChangeError: it has no place for the data.
    """
    try:
        return json_format.ParseDict(value, message)
    except json_format.ParseError as error:
        raise CannotChangeError(f"Flyte cannot hold this: {error}", field=field) from None


def _has_fields(descriptor: Any) -> bool:
    """Whether the field is a message of named fields, not a map, a Struct or a wrapper."""
    kind = descriptor.message_type
    return not (kind.GetOptions().map_entry or kind.full_name.startswith("google.protobuf."))
