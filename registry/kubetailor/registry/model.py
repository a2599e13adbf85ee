"""The form of `kubetailor.yaml`; the JSON Schema comes from here too."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from kubetailor.registry.context import Phase
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.parameters import Text

__all__ = [
    "AllowModel",
    "ChainModel",
    "ConfigModel",
    "FlyteModel",
    "OverridableModel",
    "OverrideModel",
    "OverrideStepModel",
    "Part",
    "SelectModel",
    "StepModel",
]


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
    """How this cluster's Flyte is set; the defaults are its own."""

    device_label: Text = Field(
        default=FlyteSettings.device_label, description="Propeller's `gpu-device-node-label`."
    )
    partition_label: Text = Field(
        default=FlyteSettings.partition_label,
        description="Propeller's `gpu-partition-size-node-label`.",
    )
    offloaded_closures: bool = Field(
        default=FlyteSettings.offloaded_closures,
        description="FlyteAdmin's `useOffloadedWorkflowClosure`: the phase `launch` sees no tasks, "
        "and what an override asks of it is said to be lost before an execution is launched.",
    )


class AllowModel(Part):
    """What the value of a parameter may be: all that is said must hold.

    Of a map each value is meant, of a list each entry.
    """

    in_: list[Any] | None = Field(None, alias="in", min_length=1, description="One of these.")
    min: Any = Field(
        None,
        description="At least this; quantities compare by value. For a map it may be a map: key -> "
        "the least.",
    )
    max: Any = Field(None, description="At most this, as `min`.")
    pattern: Text | None = Field(
        None, description="A regular expression that matches the whole text."
    )
    keys: list[Text] | None = Field(
        None,
        min_length=1,
        description="Globs, one of which matches each key of a map, each entry of a list of texts, "
        "and the `key` of each entry of a list of maps. Where it is given, what is never "
        "overridable by default may be; what is under `kubetailor.dev` may not.",
    )


class OverridableModel(Part):
    """What one execution may override; of several entries one must allow a step."""

    use: Text = Field(description="The transformer.")
    when: dict[str, Any] | None = Field(
        None,
        description="Where the entry applies; it sees the object as `defaults` and `steps` left "
        "it; by `role`, every pod that the step changes. What a phase cannot know does not match. "
        "`labels`, `annotations` and `execution` may not be asked for: whoever launches says them.",
    )
    allow: dict[str, AllowModel | None] | None = Field(
        None,
        description="The parameters that may be given, and their values; null for any. Without "
        "`allow`, all of them.",
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


class OverrideStepModel(Part):
    """One step of an override; it can drop none."""

    use: Text = Field(description="The transformer: `plugin.function`, or bare for a built-in.")
    name: Text | None = Field(
        None, description="A name for the step, for messages; by default the transformer's."
    )
    with_: dict[str, Any] | None = Field(
        None, alias="with", description="The transformer's parameters."
    )
    when: dict[str, Any] | None = Field(
        None, description="Which tasks it is for; without it, all of the execution."
    )
    optional: bool = Field(
        False,
        description="The step may match no task, and find nothing to change or no place for it.",
    )


class OverrideModel(Part):
    """An override: a chain for one execution."""

    steps: list[OverrideStepModel] = Field(
        min_length=1,
        description="They run in their order, after the chain's `steps` and before its `enforce`.",
    )
