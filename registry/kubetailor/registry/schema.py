"""The JSON Schema of a config, for what is installed: editors complete and check by it.

It comes from the models that read a config, and from the signatures of the transformers. An editor
reads `true` and `1.10` before it asks the schema; a config keeps them as text where the parameter's
type is text, so every string may be a number or a boolean here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from kubetailor.registry.accelerator import ACCELERATOR_FORMAT, Accelerator
from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.context import PHASES
from kubetailor.registry.describe import description_of, parameters_of
from kubetailor.registry.model import ConfigModel, OverrideModel
from kubetailor.registry.overrides.document import MAX_STEPS
from kubetailor.registry.parameters import json_schema
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import MAP_FIELDS, OBJECT_FIELDS, POD_FIELDS, TASK_FIELDS
from kubetailor.registry.source import Plain, read_core
from kubetailor.registry.transformer import Transformer
from kubetailor.workloads import InvalidObjectError, check_json

__all__ = ["ACCELERATOR_FORMAT", "config_schema", "override_schema"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_GLOB: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
_GLOBS: dict[str, Any] = {"anyOf": [_GLOB, {"type": "array", "items": _GLOB, "minItems": 1}]}
_GLOBS_BY_NAME: dict[str, Any] = {
    "type": "object",
    "additionalProperties": _GLOBS,
    "minProperties": 1,
}


def config_schema(plugins: Plugins, catalogue: Catalogue) -> dict[str, Any]:
    """The JSON Schema of a `kubetailor.yaml`.

    Args:
        plugins: the plugins, whose transformers `use` may name.
        catalogue: the accelerators.
    """
    schema = ConfigModel.model_json_schema()
    definitions = schema["$defs"]
    transformers = _define(definitions, plugins, ("StepModel", "SelectModel", "OverridableModel"))
    definitions["accelerator"] = _accelerator_schema(catalogue)
    uses = _uses(transformers)
    step = definitions["StepModel"]
    step["properties"]["use"] |= {"anyOf": [*uses, {"type": "null"}]}
    step["allOf"] = [*_conditions(transformers), _DROPS]
    entry = definitions["OverridableModel"]
    entry["properties"]["use"] |= {"anyOf": uses}
    entry["allOf"] = list(_allow_conditions(transformers))
    entries: dict[str, Any] = {"additionalProperties": {"$ref": "#/$defs/accelerator"}}
    _or_null(schema, "accelerators", {"type": "object", **entries})
    rewritten = _rewritten(schema, sorted(catalogue))
    return {"$schema": _DIALECT, "title": "kubetailor.yaml", **rewritten}


def override_schema(plugins: Plugins, catalogue: Catalogue) -> dict[str, Any]:
    """The JSON Schema of an override.

    Args:
        plugins: the plugins, whose transformers `use` may name.
        catalogue: the accelerators.
    """
    schema = OverrideModel.model_json_schema()
    schema["properties"]["steps"]["maxItems"] = MAX_STEPS
    definitions = schema["$defs"]
    transformers = _define(definitions, plugins, ("OverrideStepModel",))
    step = definitions["OverrideStepModel"]
    step["properties"]["use"] |= {"anyOf": _uses(transformers)}
    step["allOf"] = list(_conditions(transformers))
    rewritten = _rewritten(schema, sorted(catalogue))
    return {"$schema": _DIALECT, "title": "an override of kubetailor", **rewritten}


def _define(
    definitions: dict[str, Any], plugins: Plugins, models: Iterable[str]
) -> list[Transformer]:
    """Define what steps may say; returns the transformers that they may name."""
    transformers = [plugins.transformers[name] for name in sorted(plugins.transformers)]
    for transformer in transformers:
        own = _with_schema(transformer)
        # As `json_schema` refers to them.
        for name, part in own.pop("$defs", {}).items():
            definitions[f"{transformer.name}.{name}"] = part
        definitions[_with_name(transformer)] = own
    definitions["when"] = _when_schema()
    inputs = {"anyOf": [*_GLOBS["anyOf"], {"$ref": "#/$defs/inputs"}]}
    definitions["inputs"] = {**_GLOBS_BY_NAME, "additionalProperties": inputs}
    for model in models:
        _or_null(definitions[model], "when", {"$ref": "#/$defs/when"})
    return transformers


def _uses(transformers: Iterable[Transformer]) -> list[dict[str, Any]]:
    return [{"const": t.name, "description": t.summary} for t in transformers]


# steps -------------------------------------------------------------------------------------------

_DROPS: dict[str, Any] = {
    "if": {"properties": {"use": {"type": "null"}}},
    "then": {"required": ["name"]},
}
"""`use: null` drops the inherited step of a name."""


def _conditions(transformers: Iterable[Transformer]) -> Iterator[dict[str, Any]]:
    """What `with` must be, for each transformer."""
    for transformer in transformers:
        form: dict[str, Any] = {"$ref": f"#/$defs/{_with_name(transformer)}"}
        then: dict[str, Any] = {"required": ["with"]} if transformer.required else {}
        if not transformer.required:
            form = {"anyOf": [form, {"type": "null"}]}
        yield {
            "if": {"properties": {"use": {"const": transformer.name}}},
            "then": {**then, "properties": {"with": form}},
        }


def _allow_conditions(transformers: Iterable[Transformer]) -> Iterator[dict[str, Any]]:
    """Which parameters `allow` may name, for each transformer."""
    for transformer in transformers:
        names: dict[str, Any] = {"propertyNames": {"enum": list(transformer.annotations)}}
        yield {
            "if": {"properties": {"use": {"const": transformer.name}}},
            "then": {"properties": {"allow": names}},
        }


def _with_name(transformer: Transformer) -> str:
    return f"with.{transformer.name}"


def _with_schema(transformer: Transformer) -> dict[str, Any]:
    """The schema of a step's `with`; open where a type has none."""
    from pydantic.errors import PydanticUserError

    schema: dict[str, Any]
    try:
        schema = json_schema(transformer)
    except PydanticUserError:
        schema = {"type": "object", "properties": {}}
    properties: dict[str, dict[str, Any]] = schema["properties"]
    schema["description"] = description_of(transformer)
    for parameter in parameters_of(transformer):
        form = properties.get(parameter.name)
        if form is None:
            continue
        if parameter.doc:
            form.setdefault("description", parameter.doc)
        if parameter.default is not None and _is_json(parameter.default):
            form.setdefault("default", parameter.default)
    return schema


def _is_json(value: Any) -> bool:
    try:
        check_json(None, value)
    except InvalidObjectError:
        return False
    return True


# the open parts of the model ---------------------------------------------------------------------


def _when_schema() -> dict[str, Any]:
    here = {"$ref": "#/$defs/when"}
    parts = {"type": "array", "items": here, "minItems": 1}
    phases = {"enum": list(PHASES)}
    properties: dict[str, Any] = {
        **dict.fromkeys((*TASK_FIELDS, *OBJECT_FIELDS, *POD_FIELDS), _GLOBS),
        **dict.fromkeys(MAP_FIELDS, _GLOBS_BY_NAME),
        "inputs": {"$ref": "#/$defs/inputs"},
        "phase": {"anyOf": [phases, {"type": "array", "items": phases, "minItems": 1}]},
        "any": parts,
        "all": parts,
        "not": here,
    }
    return {
        "description": "Globs, or lists of globs, by field; all must match.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
    }


_TEXTS: dict[str, Any] = {"type": ["object", "null"], "additionalProperties": _GLOB}
_OBJECTS: dict[str, Any] = {"type": ["array", "null"], "items": {"type": "object"}}
_LIST: dict[str, Any] = {"type": ["array", "null"], "items": _SCALAR}
_ACCELERATOR: Mapping[str, Any] = {
    "resource": _SCALAR,
    "device": _GLOB,
    "aliases": _LIST,
    "partition": _GLOB,
    "node_selector": _TEXTS,
    "tolerations": _OBJECTS,
    "node_requirements": _OBJECTS,
    "runtime_class": _GLOB,
    "per_gpu": _TEXTS,
    "requests": _TEXTS,
    "limits": _TEXTS,
    "pages": _LIST,
}


def _accelerator_schema(catalogue: Catalogue) -> dict[str, Any]:
    known = {f.name: _ACCELERATOR.get(f.name, {}) for f in fields(Accelerator) if f.name != "name"}
    overlay = {"type": "object", "properties": _ACCELERATOR, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {
            **known,
            "by_count": {
                "type": ["object", "null"],
                "propertyNames": {"pattern": "^[0-9]+$"},
                "additionalProperties": overlay,
            },
            # One entry of the config may extend another of it.
            "extends": {"anyOf": [{"enum": sorted(catalogue)}, _SCALAR]},
        },
        "additionalProperties": False,
    }


# rewriting ---------------------------------------------------------------------------------------


def _or_null(model: dict[str, Any], name: str, form: dict[str, Any]) -> None:
    """Give a property that may be left empty its form; its description stays."""
    old = model["properties"][name]
    kept = {key: old[key] for key in ("description",) if key in old}
    model["properties"][name] = {**kept, "anyOf": [form, {"type": "null"}]}


_DATA = frozenset({"const", "default", "enum"})
"""Keywords whose values are data."""

_MAPS = frozenset({"$defs", "properties"})
"""Keywords whose values are schemas by name."""


def _rewritten(schema: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A schema and all in it: strings as YAML may read them, names of accelerators as a list.

    pydantic's titles go: they only repeat the names.
    """

    def part(key: str, value: Any) -> Any:
        if key in _DATA:
            return value
        if key in _MAPS:
            return {name: _rewritten(inner, names) for name, inner in value.items()}
        if isinstance(value, list):
            return [_rewritten(i, names) if isinstance(i, dict) else i for i in value]
        return _rewritten(value, names) if isinstance(value, dict) else value

    found = {key: part(key, value) for key, value in schema.items() if key != "title"}
    if found.get("format") == ACCELERATOR_FORMAT:
        del found["format"]
        return found | {"enum": list(names)}
    if found.get("type") == "string" and not {"enum", "const"} & found.keys():
        return found | _SCALAR
    return _with_readings(found)


def _with_readings(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that names texts, and what YAML reads where they are written without quotes."""
    texts = [schema["const"]] if "const" in schema else schema.get("enum") or []
    read = [read_core(Plain(text)) for text in texts if isinstance(text, str)]
    others = [value for value in read if not isinstance(value, str) and value not in texts]
    if not others:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("const", "enum", "type")}
    return {**rest, "enum": [*texts, *others]}
