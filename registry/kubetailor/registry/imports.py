"""Importing what a config or a distribution names; what is not there is said with what is."""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType

from kubetailor.registry.errors import PluginError
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.workloads import nearest

__all__ = ["file_of", "home_of", "import_file", "import_named", "installed_plugins", "own_version"]

_FILE_MODULES = "_kubetailor_file_plugins"


def installed_plugins() -> dict[str, importlib.metadata.EntryPoint]:
    """Installed plugins by name; two distributions with one name are told apart by value."""
    found: dict[str, importlib.metadata.EntryPoint] = {}
    for point in importlib.metadata.entry_points(group=PROJECT):
        name = point.name
        if name in found and found[name].value != point.value:
            name = f"{point.name} ({point.value})"  # kept, so that the second is refused
        found[name] = point
    return found


@functools.cache
def own_version() -> str | None:
    """The installed version of kubetailor; None in a checkout that is not installed."""
    try:
        return importlib.metadata.version(PROJECT)
    except importlib.metadata.PackageNotFoundError:
        return None


def home_of(module: str) -> list[str]:
    """The file or the folders of the package that a module is in; none if it is not there."""
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    return [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else ())]


def file_of(module: str) -> str | None:
    """The file of a module, which is not imported for it; None if it is not there."""
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # importing a parent package may raise anything; it is met again
        return None
    return spec.origin if spec is not None and spec.has_location else None


def import_named(name: str, directory: Path) -> ModuleType:
    """The module of an import path.

    Args:
        name: the import path.
        directory: where files are that the user may have meant.

    Raises:
        PluginError: there is no such module.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            raise  # it is the module that imports what is not there
        raise PluginError([f"no module {missing!r}; {_near(missing, directory)}"]) from None


def _near(missing: str, directory: Path) -> str:
    parent, _, last = missing.rpartition(".")
    if parent:
        paths = getattr(sys.modules.get(parent), "__path__", ())
        names = [found.name for found in pkgutil.iter_modules(paths)]
        return nearest(last, names, what=f"modules of {parent}")
    meant = {found.name: found.name for found in pkgutil.iter_modules()}
    meant |= {path.stem: f"./{path.name}" for path in directory.glob("*.py")}
    if close := difflib.get_close_matches(missing, meant, n=3):
        return f"did you mean {', '.join(meant[name] for name in close)}?"
    return "a file is named by its path, such as ./team.py"


def import_file(file: Path) -> ModuleType:
    """The module of a file, imported once, and again where its content has changed.

    Its name cannot hide an installed module's.

    Raises:
        PluginError: there is no such file, or it is no Python file.
    """
    if not file.parent.is_dir():
        raise PluginError([f"no folder {file.parent}"])
    if not file.is_file():
        there = [path.name for path in file.parent.glob("*.py") if path.is_file()]
        near = nearest(file.name, there, what="Python files there")
        raise PluginError([f"no file {file.name}; {near}"])
    source = file.read_bytes()
    digest = hashlib.sha256(str(file).encode() + b"\0" + source).hexdigest()[:16]
    name = f"{_FILE_MODULES}.{file.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or not isinstance(spec.loader, SourceLoader):
        raise PluginError([f"{file.name} is no Python file"])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # Not by way of `__pycache__`, which takes an edit within one second for the old file.
        exec(spec.loader.source_to_code(source, str(file)), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module
