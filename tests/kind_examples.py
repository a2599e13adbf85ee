"""Every built-in over every kind: the examples of the reference, and the pods that come out."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import yaml
from reference_examples import EXAMPLES, example_of

from kubetailor.registry import CannotChangeError, StepError
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.testing import Outcome, TailorBench
from kubetailor.workloads import JsonMap, Kind, Workload

__all__ = ["KINDS", "PLUGINS", "USES", "each_alone", "example", "parameters", "pods_of"]

PLUGINS: Final = Plugins.load(entry_points=False).require()
USES: Final = sorted(t.name for t in PLUGINS.transformers.values() if t.plugin == "kubetailor")
_FILES: Final = {path.stem: path for path in sorted((EXAMPLES / "kinds").glob("*.yaml"))}
KINDS: Final = sorted(_FILES)
"""Each kind that has an example, by the name of its file."""


@functools.cache
def example(kind: str) -> JsonMap:
    """An object of a kind; it is not to be changed."""
    found: JsonMap = yaml.safe_load(_FILES[kind].read_text(encoding="utf-8"))
    return found


@functools.cache
def parameters(use: str) -> JsonMap:
    """The `with` of a built-in's example."""
    step = example_of(use)
    assert step is not None
    return step.parameters


def each_alone(bench: TailorBench, obj: JsonMap) -> Iterator[tuple[str, Outcome]]:
    """Each built-in that changes an object, and what it makes of it; promises are proved.

    What the object's kind or its operator does not take, the step has said.
    """
    for use in USES:
        try:
            outcome = bench.prove(use, obj, **parameters(use))
        except StepError as error:
            if not isinstance(error.__cause__, CannotChangeError):
                raise
            continue
        if outcome.patch:
            yield use, outcome


def pods_of(obj: JsonMap) -> Iterator[JsonMap]:
    """A Pod for each pod spec of an object; of Spark and of a task in a container, what is one."""
    for pod in Workload(obj, row_of(obj)).pods():
        spec: Any = pod.edit()
        if isinstance(spec.get("containers"), list):
            metadata = {"labels": pod.labels, "annotations": pod.annotations}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", **metadata},
                "spec": spec,
            }


def row_of(obj: JsonMap) -> Kind:
    """The row of an object's kind."""
    row = PLUGINS.kinds.of(obj)
    assert row is not None
    return row
