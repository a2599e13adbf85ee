"""The faults of a config, a plugin or a step: what was given, where, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubetailor.workloads import KubetailorError

__all__ = ["ConfigError", "DeferError", "Mark", "OverrideError", "PluginError", "StepError"]


class Mark(NamedTuple):
    """A place in a file, from 1; without a line, what has no lines, as a word of a command."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class ConfigError(KubetailorError):
    """A config that cannot be used.

    Attributes:
        mark: the first place at fault, or None.
    """

    def __init__(self, message: str, mark: Mark | None = None) -> None:
        super().__init__(f"{mark}: {message}" if mark else message)
        self.mark: Mark | None = mark


class OverrideError(ConfigError):
    """An override that cannot be used, or may not be."""

    @classmethod
    def of(cls, error: ConfigError) -> OverrideError:
        """A fault that was found as a config's are."""
        found = cls(str(error))
        found.mark = error.mark
        return found


class PluginError(KubetailorError):
    """Plugins that cannot be loaded, each with its reason."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults: tuple[str, ...] = tuple(faults)


class StepError(KubetailorError):
    """A step that failed, or whose result Kubernetes would refuse.

    Attributes:
        step: the step's name.
        plugin: the plugin of its transformer.
        obj: the object, such as ``PyTorchJob train`` or ``task pipelines.train.fit``.
        mark: the step's place in the config, or None.
    """

    def __init__(
        self, message: str, *, step: str, plugin: str, obj: str, mark: Mark | None, field: str = ""
    ) -> None:
        place = f"{mark}: " if mark else ""
        where = f" of {field}" if field and field not in message else ""
        super().__init__(f"{place}step {step!r} (plugin {plugin}) on {obj}: {message}{where}")
        self.step: str = step
        self.plugin: str = plugin
        self.obj: str = obj
        self.mark: Mark | None = mark
        self.field: str = field

    def __str__(self) -> str:
        return str(self.args[0])


class DeferError(Exception):
    """A field of the task was read that this phase cannot know; the chain waits for the next one.

    Attributes:
        field: the field, such as ``node``.
    """

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field: str = field
