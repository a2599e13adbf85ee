"""Situations that users of other tools reported, each with what a good tool makes of it.

The files beside this one hold them as data: an object, a chain, and what is expected. An override is
the last step, as long as there is nothing else that it could be.

Not here, and why:

- C10, C12, C13, C45 and the GPU of C47: the swap of accelerators, in tests/transformers.
- C23, C24 and the UPDATE of C22: the webhook acts on CREATE.
- C36: a cap of resources, which there is no transformer for.
- The port of C44, the boolean annotation of C28, and C48's container that is not called `pytorch`: the
  author's own mistakes, which are left for the API server to report. The design checks what a chain changes.
- C45's selector beside the replicas: nobody reads it, and no step wrote it.
"""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import copy
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetailor.registry import ConfigError, StepError
from kubetailor.registry.testing import ABSENT, TailorBench
from kubetailor.workloads import dump_yaml, load_documents, same

HERE = Path(__file__).parent
KEYS = frozenset(
    [
        "id",
        "title",
        "object",
        "object_text",
        "config",
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
        (tmp_path / f"{name}.py").write_text(source)
    text = (
        f"strict: {str(case.get('strict', False)).lower()}\n"
        f"plugins: [{', '.join(f'./{name}.py' for name in case.get('plugins', ()))}]\n"
        f"chains:\n  default:\n{textwrap.indent(case['config'], '    ')}"
    )
    obj = case.get("object")
    if "object_text" in case:
        (document,) = load_documents(case["object_text"].encode(), "object.yaml")
        obj = document.obj
    phase = case.get("phase", "admit")

    if "error" in case:
        with pytest.raises((ConfigError, StepError)) as caught:
            tailor.chain(text).run(obj, phase)
        for fragment in case["error"]:
            assert fragment in str(caught.value)
        return

    before = copy.deepcopy(obj)
    chain = tailor.chain(text)
    outcome = chain.prove(obj, phase)
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
    for text in case.get("output_contains_no", ()):
        assert text not in written
    assert all(same(chain.run(obj, phase).after, outcome.after) for _ in range(20))


def test_every_case_is_here_once() -> None:
    names = [param.id for param in cases()]
    assert len(names) == len(set(names))
    assert len({name.partition(":")[0] for name in names}) == 31
