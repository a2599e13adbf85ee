"""A module as `pyflyte package` would serialize it, before any chain."""

from __future__ import annotations

import contextlib
import sys
import traceback
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
        ModuleError: it cannot be imported, or flytekit cannot serialize it.
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
            just_load_modules([name])
            found: list[Any] = get_registrable_entities(entered)
        except KubetailorError:
            raise
        except (Exception, SystemExit) as error:
            raise ModuleError(f"{module}: {_reason(error)}") from error
    return Entities(
        [entity.to_flyte_idl() for entity in found if isinstance(entity, TaskSpec)],
        [entity.to_flyte_idl() for entity in found if isinstance(entity, WorkflowSpec)],
    )


def _located(module: str) -> tuple[Path, str]:
    """The directory to import from, and the dotted name."""
    if not (module.endswith(".py") or "/" in module):
        return Path.cwd(), module
    if not Path(module).exists():
        raise ModuleError(f"{module}: no such file or directory")
    root = find_common_root([module])
    (name,) = list_packages_and_modules(root, [module])
    return Path(root), name


def _reason(error: BaseException) -> str:
    """What failed, and the user's line where it did."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename
        and not frame.filename.startswith("<")
        and frame.filename != __file__
    ]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
