"""The override of an execution, as its objects carry it.

Whoever may launch may write one: it is checked wherever it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetailor.registry.digest import sha256
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.registry.overrides.document import OVERRIDE
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Draft, InvalidObjectError, JsonMap, Path

__all__ = ["JUDGED", "judged", "launch_alone", "override_of"]

JUDGED: Final = "kubetailor.dev/override-judged"
"""The annotation by which `launch` names the override of which it has seen that it does something.

It reaches child executions together with the override, which need not do anything in each of them.
"""

_PLACE: Final[Path] = ("metadata", "annotations", OVERRIDE)


def override_of(obj: JsonMap, tailor: Tailor) -> CompiledOverride | None:
    """The override of an object's execution, or None.

    Args:
        obj: a FlyteWorkflow, or what one of its tasks makes.
        tailor: the config in use.

    Raises:
        OverrideError: it cannot be read, or may not be.
        InvalidObjectError: the annotation is no text.
    """
    text = Draft(obj).get(_PLACE)
    if text is None:
        return None
    if not isinstance(text, str):
        field = f"metadata.annotations['{OVERRIDE}']"
        raise InvalidObjectError(f"expected a text, found {type(text).__name__}", field=field)
    return tailor.config.overrides.read(text)


def judged(obj: JsonMap) -> str:
    """What stands for the text of an object's override, whatever a config makes of it."""
    return sha256(Draft(obj).get(_PLACE))


def launch_alone(
    override: CompiledOverride, unseen: str = "the closure is offloaded"
) -> Iterator[tuple[str, str]]:
    """Each step that may be for no object where `launch` sees no tasks: its name, and a warning.

    Args:
        override: the override.
        unseen: why `launch` sees none.
    """
    reads = override.launch_only
    for step in override.steps:
        if step.transformer.options.task_templates:
            why = "it is about task templates, of which the phase `admit` sees none"
        elif step.name in reads:
            why = f"`when` reads {', '.join(reads[step.name])}, which `admit` may not know"
        else:
            continue
        yield step.name, f"{unseen}, and step {step.name!r} of the override is lost: {why}"
