"""flytekit's options of one execution, of which nothing gets into a launch plan.

flytekit registers a workflow's default launch plan, where there is none, with the options of the
run that found it missing (`FlyteRemote.execute_local_workflow`), and every later run of the
version has them. An override is for one execution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from flytekit.models.common import Annotations

from kubetailor.registry.overrides.document import OVERRIDE

if TYPE_CHECKING:

    @dataclass
    class Options:
        """flytekit's, which has no types; others take it as it is there, and get Any."""

        annotations: Any = None

else:
    from flytekit.core.options import Options

__all__ = ["LaunchOptions"]


@dataclass
class LaunchOptions(Options):
    """Options of an execution.

    Attributes:
        to_register: what is registered with instead, as without the override.
    """

    to_register: Options | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, given: Any, annotations: Mapping[str, str] | None) -> Any:
        """The options that were given, with the annotations of an execution.

        Args:
            given: the options.
            annotations: all annotations of the request; None for those of the options.
        """
        to_register = (given.to_register if isinstance(given, cls) else given) or Options()
        said = {each.name: getattr(to_register, each.name) for each in fields(to_register)}
        if annotations is not None:
            said["annotations"] = Annotations(dict(annotations))
        return cls(**said, to_register=to_register)

    @classmethod
    def apart(cls, options: Any) -> Any:
        """Options with an override that somebody wrote into the annotations by hand, kept apart."""
        annotations = getattr(options.annotations, "values", {})
        if isinstance(options, cls) or OVERRIDE not in annotations:
            return options
        rest = {key: value for key, value in annotations.items() if key != OVERRIDE}
        kept = Annotations(rest) if rest else None
        return cls.of(replace(options, annotations=kept), annotations)
