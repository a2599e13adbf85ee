"""The options by which a command is given an override.

Every `pyflyte` imports this module, so nothing heavier than click may be imported here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from kubetailor.registry.overrides.document import Override
    from kubetailor.registry.plugins import Plugins

__all__ = ["OVERRIDE_OPTIONS", "GivenOverride", "override_options"]


@dataclass(frozen=True)
class GivenOverride:
    """What a command was given: a file, words, or both.

    Attributes:
        file: of `--override`, or None.
        sets: of `--set`.
        on: of `--on`.
    """

    file: Path | None = None
    sets: tuple[str, ...] = ()
    on: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything was given."""
        return self.file is not None or bool(self.sets or self.on)

    def read(self, plugins: Plugins) -> Override:
        """The override: the file's steps, then those of the words.

        Args:
            plugins: those that are loaded.

        Raises:
            OverrideError: the file cannot be read, or a word cannot be.
        """
        from kubetailor.registry.errors import OverrideError
        from kubetailor.registry.overrides.document import LIMITS, Override
        from kubetailor.registry.overrides.words import override_of_words

        found = Override()
        if self.file is not None:
            try:
                with self.file.open("rb") as file:
                    text = file.read(LIMITS.bytes + 1)  # that it is too large is said by `parse`
            except OSError as error:
                raise OverrideError(f"{self.file}: {error.strerror}") from None
            found = Override.parse(text, str(self.file))
        return found + override_of_words(self.sets, self.on, plugins)


OVERRIDE_OPTIONS: Final = (
    click.Option(
        ["--override", "override_file"],
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="An override: YAML or JSON with `steps`, for this once.",
    ),
    click.Option(
        ["--set", "override_sets"],
        multiple=True,
        metavar="STEP.PARAM=VALUE",
        help="One parameter of an override, such as gpu.type=nvidia-h100-80gb; repeat it for more.",
    ),
    click.Option(
        ["--on", "override_on"],
        multiple=True,
        metavar="KEY=GLOB",
        help="Which tasks every --set is for, such as task=*.train; of several all must hold.",
    ),
)
"""The options themselves, for a command that is not ours."""


def override_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--override``, ``--set`` and ``--on``, given to the command as `override: GivenOverride`."""

    @functools.wraps(command)
    def run(
        *args: Any,
        override_file: Path | None,
        override_sets: tuple[str, ...],
        override_on: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        given = GivenOverride(override_file, override_sets, override_on)
        return command(*args, override=given, **kwargs)

    params = run.__dict__.setdefault("__click_params__", [])
    params.extend(reversed(OVERRIDE_OPTIONS))
    return run
