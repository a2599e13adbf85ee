"""The examples of the reference: of each built-in transformer, and of each hook.

docs/reference/examples/<transformer>.yaml holds a step's `with`, and the object that it is `given`;
docs/reference/examples/hooks/<hook>.py is a plugin that implements the hook.
"""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from kubetailor.registry.testing import TailorBench
from kubetailor.workloads import JsonMap, dump_yaml

__all__ = ["EXAMPLES", "Example", "example_of", "hook_example"]

EXAMPLES = Path(__file__).resolve().parent / "reference" / "examples"


@dataclass(frozen=True)
class Example:
    """One use of a transformer.

    Attributes:
        use: the transformer.
        parameters: the step's `with`.
        given: the object.
    """

    use: str
    parameters: JsonMap
    given: JsonMap

    @functools.cached_property
    def becomes(self) -> JsonMap:
        """What comes out; every promise of a transformer is proved on the way."""
        with tempfile.TemporaryDirectory() as folder:
            return TailorBench(Path(folder)).prove(self.use, self.given, **self.parameters).after

    def markdown(self) -> str:
        """The three of them, as blocks that a page shows."""
        step = {"use": self.use, **({"with": self.parameters} if self.parameters else {})}
        parts = (("The step", "step", step), ("makes of", "given", self.given))
        return "\n".join(
            f"{said}\n\n```yaml title={self.use}/{name}.yaml\n{dump_yaml([data])}```\n"
            for said, name, data in (*parts, ("this:", "becomes", self.becomes))
        )


def example_of(use: str) -> Example | None:
    """The example of a transformer, or None."""
    path = EXAMPLES / f"{use}.yaml"
    if not path.is_file():
        return None
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    return Example(use, found.get("with") or {}, found["given"])


def hook_example(hook: str) -> Path:
    """The plugin that shows a hook; it may be missing."""
    return EXAMPLES / "hooks" / f"{hook}.py"
