"""One plugin: where it was found, and what stands for its code."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

from kubetailor.registry.errors import Mark
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.registry.lost import HOOKS

__all__ = ["Plugin"]


@dataclass
class Plugin:
    """One plugin.

    Attributes:
        name: the entry point's name, else the last part of the module's, or the file's stem.
        origin: where it was found, for listings: a distribution, a module or a file.
        module: the module, or None if it could not be loaded.
        distribution: the distribution's name, or None outside one.
        version: the distribution's version, or None.
        mark: where the config names it, or None.
        error: why it could not be loaded, or None.
        transformers: the names that it registered.
    """

    name: str
    origin: str
    module: ModuleType | None = None
    distribution: str | None = None
    version: str | None = None
    mark: Mark | None = None
    error: str | None = None
    transformers: list[str] = field(default_factory=list)

    @classmethod
    def installed(cls, point: EntryPoint) -> Plugin:
        """The plugin of an entry point, which is not loaded yet."""
        dist = point.dist
        if dist is None:
            return cls(point.name, point.value)
        name, version = dist.name, dist.version
        return cls(point.name, f"{name} {version}", distribution=name, version=version)

    @property
    def identity(self) -> str:
        """What stands for its code in a digest: name and version, else a hash of its sources."""
        if self.distribution:
            return f"{self.distribution}=={self.version}"
        return f"{self.name}@sha256:{_source_digest(self.module)}"

    def fault(self, reason: str) -> str:
        """A fault of this plugin: where the config names it, its name and the reason."""
        place = f"{self.mark}: " if self.mark else ""
        return f"{place}plugin {self.name!r}: {reason}"

    @property
    def hooks(self) -> list[str]:
        """The hooks that it implements."""
        found = vars(self.module) if self.module else {}
        return sorted(name for name in HOOKS if hasattr(found.get(name), f"{PROJECT}_impl"))


def _sources(module: ModuleType | None) -> list[Path]:
    file = getattr(module, "__file__", None)
    if file is None:
        return []
    if Path(file).name == "__init__.py":
        return sorted(Path(file).parent.rglob("*.py"))
    return [Path(file)]


@functools.cache  # what is imported does not change with its file
def _source_digest(module: ModuleType | None) -> str:
    digest = hashlib.sha256()
    for path in _sources(module):
        digest.update(path.read_bytes())
    return digest.hexdigest()
