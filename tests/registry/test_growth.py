"""What grows with the object or the chain grows in proportion to it."""

from __future__ import annotations

from typing import Any

import pytest

from kubetailor.registry import Chain, Step, TaskContext
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import compile_selector
from kubetailor.workloads import BUILTIN_KINDS, KindTable
from kubetailor.workloads.kinds import PodPath

TRANSFORMERS = Plugins.load(entry_points=False).transformers


def _job(pods: int) -> dict[str, Any]:
    # Which of the two containers is the primary one cannot be told: steps about it fail.
    spec = {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {
            "replicatedJobs": [
                {"name": f"job-{n}", "template": {"spec": {"template": {"spec": dict(spec)}}}}
                for n in range(pods)
            ]
        },
    }


def _chain(use: str, arguments: dict[str, Any], layer: Any) -> Chain:
    transformer = TRANSFORMERS[use]
    given = read_parameters(transformer, arguments)
    return Chain("one", (Step(use, layer, transformer, given, compile_selector(None)),))


@pytest.mark.parametrize("layer", ["defaults", "steps"])
@pytest.mark.parametrize(
    ("use", "arguments", "fails"),
    [("env", {"set": {"A": "1"}}, True), ("node_selector", {"set": {"a": "b"}}, False)],
)
def test_the_pods_of_a_workload_are_looked_for_as_often_whatever_their_number(
    monkeypatch: pytest.MonkeyPatch, use: str, arguments: dict[str, Any], fails: bool, layer: str
) -> None:
    looked: list[int] = []
    templates = PodPath.templates

    def counted(self: PodPath, root: Any) -> Any:
        looked.append(1)
        return templates(self, root)

    monkeypatch.setattr(PodPath, "templates", counted)
    counts = []
    for pods in (3, 30):
        looked.clear()
        job = _job(pods)
        kind = KindTable(BUILTIN_KINDS).of(job)
        assert kind is not None
        result = _chain(use, arguments, layer).run(job, kind, TaskContext("admit"))
        assert len(result.warnings) == (pods if fails else 0)
        counts.append(len(looked))
    assert counts[0] == counts[1]
