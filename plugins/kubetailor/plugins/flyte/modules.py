"""A module as `pyflyte package` would serialize it, before any chain."""

from __future__ import annotations

import contextlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flytekit.configuration import ImageConfig, SerializationSettings
from flytekit.core.context_manager import FlyteContextManager
from flytekit.models.admin.workflow import WorkflowSpec
from flytekit.models.task import TaskSpec
from flytekit.tools.module_loader import add_sys_path, just_load_modules
from flytekit.tools.repo import find_common_root, list_packages_and_modules
from flytekit.tools.serialize_helpers import get_registrable_entities

from kubetailor.plugins.flyte.entities import Entities
from kubetailor.plugins.flyte.install import left_alone
from kubetailor.registry.imports import home_of
from kubetailor.registry.raised import said_of
from kubetailor.workloads import KubetailorError

__all__ = ["ModuleError", "images_of", "serialize_module"]


class ModuleError(KubetailorError):
    """A module that cannot be imported or serialized."""


def images_of(images: tuple[str, ...]) -> ImageConfig:
    """The images of `--image`, as pyflyte takes them.

    Raises:
        ModuleError: an image that flytekit refuses.
    """
    try:
        return ImageConfig.validate_image(None, "--image", images)
    except Exception as error:
        raise ModuleError(f"--image: {error}") from None


def serialize_module(
    module: str,
    images: ImageConfig,
    *,
    project: str | None = None,
    domain: str | None = None,
    version: str | None = None,
) -> Entities:
    """The tasks and workflows of a module, and of what it imports.

    Args:
        module: an importable module or package, or the path of a file.
        images: the images.
        project: the project to be registered in.
        domain: the domain.
        version: the version.

    Raises:
        ModuleError: it is no module and no package, it cannot be imported, or flytekit cannot
            serialize it.
    """
    root, name = _located(module)
    settings = SerializationSettings(
        images, project=project, domain=domain, version=version, source_root=str(root)
    )
    context = FlyteContextManager.current_context().with_serialization_settings(settings)
    # What the module prints is not part of our output.
    with (
        left_alone(),
        contextlib.redirect_stdout(sys.stderr),
        FlyteContextManager.with_context(context) as entered,
        add_sys_path(root),
    ):
        try:
            _refuse_plain_folder(module, name)
            just_load_modules([name])
            found: list[Any] = get_registrable_entities(entered)
        except KubetailorError:
            raise
        except (Exception, SystemExit) as error:
            raise ModuleError(f"{module}: {said_of(error, home_of(name))}") from error
    return Entities(
        [entity.to_flyte_idl() for entity in found if isinstance(entity, TaskSpec)],
        [entity.to_flyte_idl() for entity in found if isinstance(entity, WorkflowSpec)],
    )


def _located(module: str) -> tuple[Path, str]:
    """The directory to import from, and the dotted name."""
    path = Path(module)
    is_path = module.endswith(".py") or "/" in module or not module.strip(".") or path.is_file()
    if not is_path:
        return Path.cwd(), module
    if not path.exists():
        raise ModuleError(f"{module}: no such file or directory")
    if path.suffix != ".py" and not path.is_dir():
        raise ModuleError(
            f"{module}: expected a module, a package, or what `pyflyte package` wrote, whose name "
            "ends in .tgz or .tar.gz"
        )
    whole = str(path.resolve())  # flytekit finds no root for a path such as `.`
    root = find_common_root([whole])
    (name,) = list_packages_and_modules(root, [whole])
    return Path(root), name


def _refuse_plain_folder(module: str, name: str) -> None:
    """A folder is taken if it is a regular package, as by `pyflyte register`."""
    spec = find_spec(name)
    if spec is not None and spec.origin is None and spec.submodule_search_locations:
        raise ModuleError(f"{module}: no package: the folder has no __init__.py")
