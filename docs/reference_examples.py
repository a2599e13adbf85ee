"""The examples of the reference: of each built-in transformer, and of each hook.

docs/reference/examples/<transformer>.yaml holds a step's `with`, and the object that it is `given`;
docs/reference/examples/hooks/<hook>.py is a plugin that implements the hook.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from kubetailor.registry.testing import TailorBench
from kubetailor.workloads import JsonMap, dump_yaml

__all__ = ["EXAMPLES", "Example", "chain_of_all", "example_of", "hook_example"]

_CONTAINERS = ("init_containers", "sidecars")

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


def chain_of_all(uses: Iterable[str]) -> str:
    """A config with one chain: the example of each of these transformers."""
    steps = []
    # What is about the containers of a pod comes after what adds some.
    for use in sorted(uses, key=lambda use: (use not in _CONTAINERS, use)):
        example = example_of(use)
        if example is not None:
            steps.append({"use": use, "with": example.parameters})
    return yaml.safe_dump({"phases": ["admit"], "chains": {"default": {"steps": steps}}})


def hook_example(hook: str) -> Path:
    """The plugin that shows a hook; it may be missing."""
    return EXAMPLES / "hooks" / f"{hook}.py"
