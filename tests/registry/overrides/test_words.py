"""`--set` and `--on`: the words of a command that say an override."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from typing_extensions import TypedDict

from kubetailor.registry import KubetailorError, Override, OverrideError, Pod, transformer
from kubetailor.registry.config import Config
from kubetailor.registry.load import load_config
from kubetailor.registry.overrides.words import override_of_words
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.source import read_core
from kubetailor.registry.transformer import Options, Transformer

TEAM = """\
from typing import Any
from kubetailor.registry import Pod, transformer

@transformer
def gpu(pod: Pod, *, pool: str = "a") -> None: ...
@transformer(name="gpu.type")
def longer(pod: Pod, *, tier: str = "a") -> None: ...
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder: Path = tmp_path_factory.mktemp("config")
    (folder / "acme.py").write_text(TEAM)
    path = folder / "kubetailor.yaml"
    path.write_text("plugins: [./acme.py]\nchains: {default: {}}")
    return load_config(path, entry_points=False)


def said(config: Config, *sets: str, on: tuple[str, ...] = ()) -> Any:
    override = override_of_words(sets, on, config.plugins)
    return read_core([dict(step.data) for step in override.steps])


SETS: list[tuple[list[str], list[dict[str, Any]]]] = [
    (
        ["gpu.type=nvidia-h100-80gb", "gpu.count=4", "labels.set={example.com/team: a}"],
        [
            {"use": "gpu", "with": {"type": "nvidia-h100-80gb", "count": 4}},
            {"use": "labels", "with": {"set": {"example.com/team": "a"}}},
        ],
    ),
    (["gpu.count=1", "env.set.A=b", "gpu.type=x"], [{"use": "gpu", "with": {"count": 1, "type": "x"}}, {"use": "env", "with": {"set": {"A": "b"}}}]),
    (["acme.gpu.pool=b"], [{"use": "acme.gpu", "with": {"pool": "b"}}]),
    (["acme.gpu.type.tier=b"], [{"use": "acme.gpu.type", "with": {"tier": "b"}}]),
    (["resources.limits.cpu=4"], [{"use": "resources", "with": {"limits": {"cpu": 4}}}]),
    (["resources.limits.nvidia.com/gpu=4"], [{"use": "resources", "with": {"limits": {"nvidia.com/gpu": 4}}}]),
    (["resources.limits.cpu=4", "resources.limits={memory: 1Gi}"], [{"use": "resources", "with": {"limits": {"cpu": 4, "memory": "1Gi"}}}]),
    (["labels.set.example.com/a.b=x=y"], [{"use": "labels", "with": {"set": {"example.com/a.b": "x=y"}}}]),
    (["labels.set.v=1.10", "labels.remove=[a, b]"], [{"use": "labels", "with": {"set": {"v": 1.10}, "remove": ["a", "b"]}}]),
    (["env.set.A='1: 2'"], [{"use": "env", "with": {"set": {"A": "1: 2"}}}]),
    (["env.set.A.B=1"], [{"use": "env", "with": {"set": {"A.B": 1}}}]),
    (["env.set={A: {valueFrom: {fieldRef: {fieldPath: x}}}}"], [{"use": "env", "with": {"set": {"A": {"valueFrom": {"fieldRef": {"fieldPath": "x"}}}}}}]),
    (["resources.limits.cpu="], [{"use": "resources", "with": {"limits": {"cpu": None}}}]),
    (["resources.limits.cpu=null"], [{"use": "resources", "with": {"limits": {"cpu": None}}}]),
    (["image.image=repo:5000/x@sha256:00"], [{"use": "image", "with": {"image": "repo:5000/x@sha256:00"}}]),
    (["patch.pod.hostNetwork=true"], [{"use": "patch", "with": {"pod": {"hostNetwork": True}}}]),
    ([], []),
]  # fmt: skip


@pytest.mark.parametrize(("sets", "steps"), SETS, ids=[" ".join(sets) for sets, _ in SETS])
def test_words_say_what_a_document_would(
    config: Config, sets: list[str], steps: list[dict[str, Any]]
) -> None:
    assert said(config, *sets) == steps


def test_a_plain_value_stays_text_until_its_type_reads_it(config: Config) -> None:
    words = ["labels.set.v=1.10", "labels.set.on=true", "gpu.type=nvidia-h100-80gb", "gpu.count=4"]
    override = override_of_words(words, [], config.plugins)
    steps = config.overrides.compile(override).steps
    assert steps[0].arguments == {"set": {"v": "1.10", "on": "true"}}
    assert steps[1].arguments == {"type": "nvidia-h100-80gb", "count": 4}
    digest = config.overrides.compile(override).digest
    assert config.overrides.read(override.annotation()).digest == digest


def test_all_of_on_holds_for_every_set(config: Config) -> None:
    found = said(
        config,
        "env.set.A=1",
        "labels.set.a=b",
        on=("task=*.train", "task=a*", "node=n1.n[0-3]", "labels.example.com/x=y", "inputs.e=3"),
    )
    whens = [step["when"] for step in found]
    assert whens[0] == whens[1]
    assert whens[0] == {
        "all": [
            {"task": "*.train"},
            {"task": "a*"},
            {"node": "n1.n[0-3]"},
            {"labels": {"example.com/x": "y"}},
            {"inputs": {"e": "3"}},
        ]
    }
    assert said(config, "env.set.A=1", on=("task=[ab]*",))[0]["when"] == {"task": "[ab]*"}


FAULTS: list[tuple[list[str], list[str], str]] = [
    (["gpu"], [], "--set gpu: expected STEP.PARAM=VALUE, as in --set gpu.type="),
    (
        ["gpu=4"],
        [],
        "--set gpu=4: which parameter of gpu? Write gpu.PARAM=VALUE; parameters: type, count, con",
    ),
    (["gqu.type=4"], [], "--set gqu.type=4: no transformer 'gqu'; did you mean gpu?"),
    (["=4"], [], "--set =4: no transformer ''"),
    (["acme.spot.pool=4"], [], "no transformer 'acme.spot'; did you mean"),
    (
        ["corp.spot.pool=4"],
        [],
        "--set corp.spot.pool=4: no transformer 'corp.spot'; no plugin 'corp' is loaded: install it",
    ),
    (["gpu.tpe=4"], [], "--set gpu.tpe=4: gpu: no parameter 'tpe'; did you mean type?"),
    (["gpu.=4"], [], "gpu: no parameter ''"),
    (["gpu.type.x=4"], [], "gpu.type has no keys: write gpu.type=VALUE"),
    (["labels.remove.x=4"], [], "labels.remove has no keys: write labels.remove=VALUE"),
    (["env.set.=4"], [], "--set env.set.=4: a key is empty"),
    (["env.set.A=[1"], [], "--set env.set.A=[1:2:1: not YAML"),
    (["env.set.A=*x"], [], "not YAML: "),
    (["gpu.count=1", "gpu.count=2"], [], "--set gpu.count=2: count is set twice"),
    (["labels.set.a=1", "labels.set={a: 2}"], [], "--set labels.set={a: 2}: a is set twice"),
    (
        ["labels.set=x", "labels.set.a=2"],
        [],
        "--set labels.set.a=2: set is set as a whole by another",
    ),
    (["env.set.A=1"], ["task"], "--on task: expected KEY=GLOB"),
    (["env.set.A=1"], ["tsk=a"], "--on tsk=a: no field 'tsk'; did you mean task?"),
    (["env.set.A=1"], ["any=a"], "--on any=a: no field 'any'"),
    (["env.set.A=1"], ["labels=a"], "--on labels=a: expected labels.NAME=GLOB"),
    (["env.set.A=1"], ["task.x=a"], "--on task.x=a: expected task=GLOB"),
    ([], ["task=a"], "--on task=a: it says where --set holds, and there is none"),
]


@pytest.mark.parametrize(("sets", "on", "message"), FAULTS, ids=[m[:40] for _, _, m in FAULTS])
def test_a_word_that_cannot_be_is_named(
    config: Config, sets: list[str], on: list[str], message: str
) -> None:
    with pytest.raises(OverrideError) as caught:
        override_of_words(sets, on, config.plugins)
    assert message in str(caught.value)


def test_a_fault_of_a_step_names_its_word(config: Config) -> None:
    words = ["gpu.type=nvidia-h100-80gb", "gpu.count=many", "labels.set.Foo/Bar/x=1"]
    override = override_of_words(words, [], config.plugins)
    with pytest.raises(OverrideError) as caught:
        config.overrides.compile(override)
    first, second = str(caught.value).splitlines()
    assert first.startswith("--set gpu.count=many: gpu: count: Input should be a valid integer")
    assert second.startswith("--set labels.set.Foo/Bar/x=1: labels: set.Foo/Bar/x")


class Form(BaseModel):
    replicas: int = 1


class Typed(TypedDict, total=False):
    replicas: int
    conf: dict[str, str]


@transformer
def every(
    pod: Pod,
    *,
    model: Form | None = None,
    typed: Typed | None = None,
    free: Any = None,
    deep: dict[str, dict[str, int]] | None = None,
    mapping: Mapping[str, bool] | None = None,
    bare: dict | None = None,  # type: ignore[type-arg]  # some authors write it bare
) -> None: ...


@pytest.mark.parametrize(
    ("word", "with_"),
    [
        ("model.replicas=2", {"model": {"replicas": 2}}),
        ("typed.replicas=2", {"typed": {"replicas": 2}}),
        ("typed.conf.spark.x=2", {"typed": {"conf": {"spark.x": 2}}}),
        ("free.a.b.c=2", {"free": {"a": {"b": {"c": 2}}}}),
        ("deep.a.b.c=2", {"deep": {"a": {"b.c": 2}}}),
        ("mapping.a.b=true", {"mapping": {"a.b": True}}),
        ("bare.a.b=2", {"bare": {"a": {"b": 2}}}),
    ],
)
def test_keys_follow_the_type_of_the_parameter(word: str, with_: Any) -> None:
    plugins = Plugins()
    found = Transformer.of(every, name="every", plugin="team", options=Options())
    plugins.transformers[found.name] = found
    override = override_of_words([f"every.{word}"], [], plugins)
    assert read_core(dict(override.steps[0].with_)) == with_


@given(
    sets=st.lists(st.text(max_size=20) | st.sampled_from(["gpu.type", "env.set"]).flatmap(
        lambda left: st.text(max_size=10).map(lambda rest: f"{left}.{rest}={rest}")
    ), max_size=3),
    on=st.lists(st.text(max_size=12), max_size=2),
)  # fmt: skip
def test_any_words_are_read_or_refused(config: Config, sets: list[str], on: list[str]) -> None:
    try:
        found = override_of_words(sets, on, config.plugins)
    except KubetailorError:
        return
    assert isinstance(found, Override)
