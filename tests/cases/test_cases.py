"""Situations that users of other tools reported, each with what a good tool makes of it.

The files beside this one hold them as data: an object, a chain, perhaps the override of one
execution, and what is expected. Not here are those of `ELSEWHERE`.
"""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetailor.registry import KubetailorError
from kubetailor.registry.testing import ABSENT, TailorBench
from kubetailor.workloads import dump_yaml, load_documents, same

HERE = Path(__file__).parent

IDS = frozenset(
    f"C{number:02}"
    for number in (
        *(1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 15, 16, 17, 18, 19, 21, 22, 23, 24, 25, 26, 28, 29),
        *(30, 32, 33, 34, 35, 36, 37, 39, 40, 42, 44, 45, 47, 48),
    )
)
"""Every situation, frozen."""

ELSEWHERE = {
    "C23": "UPDATE: a queue label taken off a job that runs; the webhook acts on CREATE",
    "C24": "UPDATE: the template of a job that runs; the webhook acts on CREATE",
}
"""Those that no file holds, and why."""

ACCELERATORS = """\
accelerators:
  a100-40:
    resource: nvidia.com/gpu
    node_selector: {cloud.google.com/gke-accelerator: nvidia-tesla-a100}
    tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
  h100-80:
    resource: nvidia.com/gpu
    node_selector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}
    tolerations:
    - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
    - {key: pool.example.com/h100, operator: Equal, value: true, effect: NoSchedule}
  a100-mig-1g10:
    resource: nvidia.com/mig-1g.10gb
    node_selector: {pool.example.com/mig: mixed}
    tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
  mi300x:
    resource: amd.com/gpu
    node_selector: {pool.example.com/gpu: mi300x}
    tolerations: [{key: amd.com/gpu, operator: Exists, effect: NoSchedule}]
  l4:
    resource: nvidia.com/gpu
    runtime_class: nvidia
    node_selector: {cloud.google.com/gke-accelerator: nvidia-l4}
    tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
"""
KEYS = frozenset(
    [
        "id",
        "title",
        "object",
        "object_text",
        "config",
        "override",
        "overridable",
        "use",
        "with",
        "plugins",
        "phase",
        "strict",
        "result",
        "absent",
        "holds",
        "error",
        "warn",
        "patch",
        "variants",
        "output_contains_no",
    ]
)


def cases() -> Iterator[Any]:
    for file in sorted(HERE.glob("*.yaml")):
        for case in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            variants = case.pop("variants", [])
            outcome = ("result", "absent", "error", "warn", "patch", "holds")
            yield pytest.param(case, id=case["id"])
            for variant in variants:
                # What is expected is the variant's own, if it says anything of it.
                kept = {
                    k: v
                    for k, v in case.items()
                    if k not in outcome or not variant.keys() & set(outcome)
                }
                yield pytest.param({**kept, **variant}, id=f"{case['id']}: {variant['title']}")


@pytest.mark.parametrize("case", list(cases()))
def test_case(case: Any, tailor: TailorBench, tmp_path: Path) -> None:
    assert case.keys() <= KEYS
    for name, source in case.get("plugins", {}).items():
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
    text = (
        f"strict: {str(case.get('strict', False)).lower()}\n"
        f"plugins: [{', '.join(f'./{name}.py' for name in case.get('plugins', ()))}]\n"
        f"{ACCELERATORS if 'type:' in (case.get('override') or '') else ''}"
        f"chains:\n  default:\n{textwrap.indent(case.get('config') or '{}', '    ')}\n"
        f"{'overridable: ' + case['overridable'] if 'overridable' in case else ''}"
    )
    obj = case.get("object")
    if "object_text" in case:
        (document,) = load_documents(case["object_text"].encode(), "object.yaml")
        obj = document.obj
    run: dict[str, Any] = {
        "phase": case.get("phase", "admit"),
        "override": case.get("override"),
    }

    if "error" in case:
        with pytest.raises(KubetailorError) as caught:
            tailor.chain(text).run(obj, **run)
        for fragment in case["error"]:
            assert fragment in str(caught.value)
        return

    before = copy.deepcopy(obj)
    if "use" in case:
        outcome = tailor.prove(case["use"], obj, **case["with"])
    else:
        outcome = tailor.chain(text).prove(obj, **run)
    assert same(obj, before)
    outcome.assert_changes(
        {**case.get("result", {}), **dict.fromkeys(case.get("absent", ()), ABSENT)}
    )
    for path, value in case.get("holds", {}).items():
        assert same(outcome[path], value)
    warnings = "\n".join(outcome.warnings)
    for fragment in case.get("warn", ()):
        assert fragment in warnings
    if "warn" not in case:
        assert not warnings
    if "patch" in case:
        assert sorted(f"{op['op']} {op['path']}" for op in outcome.patch) == sorted(case["patch"])

    written = dump_yaml([outcome.after])
    assert same(load_documents(written.encode(), "-")[0].obj, outcome.after)
    assert same(yaml.safe_load(written), outcome.after)
    for fragment in case.get("output_contains_no", ()):
        assert fragment not in written
    if "use" not in case:
        chain = tailor.chain(text)
        assert all(same(chain.run(obj, **run).after, outcome.after) for _ in range(5))


def test_every_case_is_here_once() -> None:
    names = [param.id for param in cases()]
    assert len(names) == len(set(names))
    assert {name.partition(":")[0] for name in names} == IDS - ELSEWHERE.keys()
    assert ELSEWHERE.keys() <= IDS
