"""The form of `kubetailor.yaml`; the JSON Schema comes from here too."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kubetailor.registry.accelerators import FlyteSettings
from kubetailor.registry.context import Phase
from kubetailor.registry.parameters import Text
from kubetailor.registry.source import read_core

__all__ = [
    "ChainModel",
    "ConfigModel",
    "FlyteModel",
    "OverridableModel",
    "Part",
    "SelectModel",
    "StepModel",
]

_Open = Annotated[dict[str, Any], BeforeValidator(read_core)]


class Part(BaseModel):
    """A part of a config: no keys but its own."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class StepModel(Part):
    """One use of a transformer."""

    use: Text | None = Field(
        description="The transformer: `plugin.function`, or bare for a built-in. Null drops the "
        "step of the same `name` that the parent chain has."
    )
    name: Text | None = Field(
        None,
        description="A name for the step; in a chain that extends another it takes the place "
        "of the parent's step of this name.",
    )
    with_: dict[str, Any] | None = Field(
        None, alias="with", description="The transformer's parameters."
    )
    when: dict[str, Any] | None = Field(None, description="Where the step applies.")
    optional: bool = Field(False, description="The step may find nothing to change.")


class ChainModel(Part):
    """An ordered list of steps, in three layers."""

    extends: Text | None = Field(None, description="The chain whose lists come before these.")
    defaults: list[StepModel] | None = Field(
        None, description="Fill what the author left unset; never change what was set."
    )
    steps: list[StepModel] | None = Field(None, description="Change what the author wrote.")
    enforce: list[StepModel] | None = Field(
        None, description="Run last; no override can undo them."
    )


class SelectModel(Part):
    """One rule of `select`."""

    when: dict[str, Any] | None = Field(None, description="Where the rule applies.")
    chain: Text | None = Field(description="The chain, or null for none.")


class FlyteModel(Part):
    """How this cluster's FlytePropeller is set; the defaults are its own."""

    device_label: Text = Field(
        default=FlyteSettings.device_label, description="Propeller's `gpu-device-node-label`."
    )
    partition_label: Text = Field(
        default=FlyteSettings.partition_label,
        description="Propeller's `gpu-partition-size-node-label`.",
    )


class OverridableModel(Part):
    """What one execution may override."""

    use: Text
    when: dict[str, Any] | None = None
    allow: _Open | None = Field(
        None,
        description="Parameter -> `{in: [...]}`, `{min, max}`, `{pattern}` or `{keys: [globs]}`.",
    )


class ConfigModel(Part):
    """A whole `kubetailor.yaml`."""

    plugins: list[Text] | None = Field(
        None, description="Import paths, or paths of files beside this one."
    )
    block_plugins: list[Text] | None = Field(
        None, description="Installed plugins that are not wanted."
    )
    phases: list[Phase] | None = Field(
        None,
        min_length=1,
        description="The phases that are installed here; by default `serialize` alone.",
    )
    strict: bool = Field(False, description="Warnings of steps are errors.")
    accelerators: dict[str, dict[str, Any]] | None = Field(
        None, description="Adds to, or replaces, entries of the catalogue."
    )
    flyte: FlyteModel = Field(default_factory=FlyteModel)
    chains: dict[str, ChainModel] | None = None
    select: list[SelectModel] | None = Field(
        None,
        description="Which chain: the first rule that holds; none, if none does. Without `select`, "
        "the chain `default`.",
    )
    overridable: list[OverridableModel] | None = None
