"""Overrides as they are written: documents of anybody's, and the builder that says the same."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.registry import KubetailorError, Override, OverrideError, TaskContext
from kubetailor.registry.config import Config
from kubetailor.registry.load import load_config
from kubetailor.registry.overrides.document import LIMITS, MAX_STEPS
from kubetailor.registry.schema import override_schema
from kubetailor.registry.selectors import WHEN_FIELDS, View
from kubetailor.registry.source import read_core, text

GPU = """\
steps:
- use: gpu
  with: {type: nvidia-h100-80gb, count: 4}
  when: {task: "*.train", labels: {team: a*}}
- name: mine
  use: labels
  with:
    set: {version: 1.10, on: true, quoted: "1.10", none: null}
  optional: true
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    path: Path = tmp_path_factory.mktemp("config") / "kubetailor.yaml"
    path.write_text("chains: {default: {}}")
    return load_config(path, entry_points=False)


def compiled(config: Config, override: Override) -> list[Any]:
    steps = config.overrides.compile(override).steps
    return [(s.name, s.transformer.name, s.arguments, s.when.written, s.optional) for s in steps]


# ----------------------------------------------------------------------------------------- documents


def test_a_document_is_read_by_the_rules_of_a_config(config: Config) -> None:
    document = GPU.replace(", none: null", "")
    assert compiled(config, Override.parse(document)) == [
        (
            "gpu",
            "gpu",
            {"type": "nvidia-h100-80gb", "count": 4},
            {"task": "*.train", "labels": {"team": "a*"}},
            False,
        ),
        (
            "mine",
            "labels",
            {"set": {"version": "1.10", "on": "true", "quoted": "1.10"}},
            None,
            True,
        ),
    ]


def test_the_annotation_is_json_that_is_read_as_the_document_was(config: Config) -> None:
    document = GPU.replace(", none: null", "")
    override = Override.parse(document)
    found = override.annotation()
    assert found == (
        '{"steps":[{"use":"gpu","when":{"labels":{"team":"a*"},"task":"*.train"},'
        '"with":{"count":4,"type":"nvidia-h100-80gb"}},'
        '{"name":"mine","optional":true,"use":"labels",'
        '"with":{"set":{"on":true,"quoted":"1.10","version":1.10}}}]}'
    )
    json.loads(found)
    again = Override.parse(found)
    assert again.annotation() == found
    assert compiled(config, again) == compiled(config, override)
    digests = {config.overrides.compile(each).digest for each in (override, again)}
    assert digests == {config.overrides.read(found).digest}


def test_what_json_cannot_say_as_it_was_written_is_refused() -> None:
    for written in ("0755", "+1", ".5", "0o17", "True", "1."):
        override = Override.parse(f"steps: [{{use: labels, with: {{set: {{a: {written}}}}}}}]", "f")
        with pytest.raises(OverrideError, match=r"f:1:\d+: .* may be a text or .*: write it with"):
            override.annotation()
    with pytest.raises(OverrideError, match=r"step 1 of the override: with\.set: Object of type"):
        Override().step("labels", set={1, 2}).annotation()
    with pytest.raises(OverrideError, match="Out of range float"):
        Override().step("x", y=float("nan")).annotation()


FAULTS = [
    ("", "o.yaml: the file is empty"),
    ("[]", "o.yaml:1:1: expected a map"),
    ("{}", "o.yaml:1:1: steps: Field required (found nothing)"),
    ("steps: {}", "o.yaml:1:1: steps: Input should be a valid list (found {})"),
    ("steps: []", "o.yaml:1:1: steps: List should have at least 1 item"),
    ("step: []", "o.yaml:1:1: no key 'step' here; did you mean steps? (keys: steps)"),
    ("chains: {}", "o.yaml:1:1: no key 'chains' here; keys: steps"),
    ("steps: [{with: {}}]", "o.yaml:1:9: steps.0.use: Field required"),
    ("steps: [{use: null, name: a}]", "o.yaml:1:10: steps.0.use: Input should be a valid string"),
    ("steps:\n- use: env\n  wiht: {}", "o.yaml:3:3: no key 'wiht' here; did you mean with?"),
    ("steps:\n- {use: env, optional: maybe}", "o.yaml:2:14: steps.0.optional: Input should be a"),
    ("steps: [{use: &a env}, {use: *a}]", "o.yaml:1:15: no aliases here: write it out"),
    ("steps: [{<<: &a {use: env}, when: *a}]", "no aliases here"),
    (
        "steps: [!!python/name:os.system {use: env}]",
        "o.yaml:1:9: the tag 'tag:yaml.org,2002:python",
    ),
    ("steps: [{use: env, use: gpu}]", "o.yaml:1:20: the key 'use' is there twice"),
    (
        "steps: [{use: env}]\n---\nsteps: [{use: gpu}]",
        "o.yaml:2:1: not YAML: but found another doc",
    ),
    ("steps: [", "not YAML: "),
    ("x" * (LIMITS.bytes + 1), f"o.yaml: {LIMITS.bytes + 1} bytes, at most {LIMITS.bytes}"),
    ("steps: " + "[" * 20 + "]" * 20, "o.yaml:1:20: nested too deep, or too large"),
    ("steps: " + "[" * 5000, "not YAML: exceeded maximum nesting depth"),
    ("steps: [" + ",".join(["1"] * 3000) + "]", "nested too deep, or too large"),
    ("steps: [" + "{use: env}," * 33 + "]", "o.yaml:1:361: 33 steps, at most 32"),
    ("a: \ud800", "o.yaml: surrogates not allowed"),
]


@pytest.mark.parametrize(("document", "message"), FAULTS, ids=[m[:40] for _, m in FAULTS])
def test_a_document_that_cannot_be_is_refused_with_its_place(document: str, message: str) -> None:
    with pytest.raises(OverrideError) as caught:
        Override.parse(document, "o.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("o.yaml")


STEP_FAULTS = [
    ("{use: gqu}", "o.yaml:2:4: no transformer 'gqu'; did you mean gpu?"),
    ("{use: env, with: {st: {}}}", "o.yaml:2:21: env: no parameter 'st'; did you mean set?"),
    (
        "{use: gpu, with: {type: nvidia-h10}}",
        "gpu: type: no accelerator 'nvidia-h10'; did you mean",
    ),
    (
        "{use: gpu, with: {type: nvidia-h100-80gb, count: many}}",
        "count: Input should be a valid integer",
    ),
    ("{use: gpu}", "the parameter 'type' is required"),
    ("{use: env, when: {tusk: a}}", "o.yaml:2:21: when: no field 'tusk'; did you mean task?"),
    ("{use: env, when: {task: {a: b}}}", "expected a glob or a list of globs"),
    ("{use: env, name: a}\n- {use: env, name: a}", "o.yaml:3:14: the name 'a' is there twice"),
    ("{use: image, with: {image: x}}", "o.yaml:2:4: step 'image': image may not be overridden; al"),
]


@pytest.mark.parametrize(("steps", "message"), STEP_FAULTS, ids=[m[:40] for _, m in STEP_FAULTS])
def test_a_step_that_cannot_be_is_refused_with_its_place(
    config: Config, steps: str, message: str
) -> None:
    with pytest.raises(OverrideError) as caught:
        config.overrides.compile(Override.parse(f"steps:\n- {steps}", "o.yaml"))
    assert message in str(caught.value)
    assert caught.value.mark is not None


def test_every_fault_is_said_but_not_thousands(config: Config) -> None:
    both = "steps: [{use: gqu}, {use: image}]"
    with pytest.raises(OverrideError, match=r"'gqu'(.|\n)*image may not"):
        config.overrides.compile(Override.parse(both))
    keys = ", ".join(f"a{number}: 1" for number in range(900))
    with pytest.raises(OverrideError, match=r"no key 'a19' here(.|\n)*… and 881 more") as caught:
        Override.parse(f"{{{keys}}}")
    assert len(str(caught.value)) < 5000


def test_names_differ_so_that_outcomes_can_be_told_apart(config: Config) -> None:
    override = Override().step("env").step("env").step("labels").step("env").named("env-2")
    with pytest.raises(OverrideError, match="the name 'env-2' is there twice"):
        config.overrides.compile(override)
    override = Override().step("env").step("env").step("env").step("labels")
    names = [step.name for step in config.overrides.compile(override).steps]
    assert names == ["env", "env-2", "env-3", "labels"]


# ----------------------------------------------------------------------------------------- anybody's

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
WORDS = st.sampled_from(
    [
        "steps",
        "use",
        "with",
        "when",
        "env",
        "gpu",
        "labels",
        "set",
        "all",
        "task",
        *"&*!{}[],:-'\"#\n|>%",
    ]
)


def _never_by_accident(config: Config, document: str) -> None:
    """Nothing but a fault that says itself may come of it."""
    with contextlib.suppress(KubetailorError):
        config.overrides.compile(Override.parse(document))


@given(document=st.text(max_size=60) | st.lists(WORDS, max_size=25).map("".join))
def test_any_text_is_read_or_refused(config: Config, document: str) -> None:
    _never_by_accident(config, document)


@given(
    use=st.sampled_from(["env", "labels", "gpu", "tolerations", "resources", "kueue", "nope"]),
    with_=VALUES | st.dictionaries(st.sampled_from(["set", "add", "type", "limits"]), VALUES),
    when=VALUES | st.dictionaries(st.sampled_from(WHEN_FIELDS), VALUES, max_size=3),
    optional=VALUES,
)
def test_any_step_is_read_or_refused(
    config: Config, use: str, with_: Any, when: Any, optional: Any
) -> None:
    step = {"use": use, "with": with_, "when": when, "optional": optional}
    _never_by_accident(config, json.dumps({"steps": [step]}))


@pytest.mark.parametrize(
    "document",
    [
        "{" + ",".join(f"k{i}: 1" for i in range(990)) + "}",
        "steps: [{use: env, when: {task: [" + ",".join(["'*a*b*c*d*[ab]'"] * 400) + "]}}]",
        "steps: [{use: env, when: {task: '" + "*a" * 7000 + "'}}]",
        "steps: [{use: " + "e" * 16000 + "}]",
        "steps: [{use: env, with: {" + "s" * 16000 + ": 1}}]",
        "steps: [{use: env, with: {set: {" + ",".join(f"A{i}: x" for i in range(950)) + "}}}]",
        "steps: [{use: gpu, with: {type: " + "nvidia" * 2000 + "}}]",
        "[" * 16000,
        "{a: " * 4000,
        "? " * 8000,
        "- " * 8000,
    ],
    ids=lambda document: document[:30],
)
def test_no_document_takes_long(config: Config, document: str) -> None:
    config.overrides.compile(Override().step("env"))  # what is made once is made
    began = time.process_time()
    _never_by_accident(config, document)
    assert time.process_time() - began < 1.5


def test_globs_of_anybody_s_do_not_take_long(config: Config) -> None:
    glob = "*a" * 2000 + "b"
    override = config.overrides.compile(Override().step("env").on(task=[glob] * 3))
    began = time.process_time()
    nothing: Any = None
    view = View(TaskContext("launch", task="a" * 5000), nothing)
    assert override.steps[0].when.test(view) is False
    assert time.process_time() - began < 1.5


@given(
    text=st.text(max_size=20).filter(lambda text: text.isprintable() or "\n" in text),
    number=st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
)
def test_what_is_built_is_what_is_read(text: str, number: Any) -> None:
    override = Override().step("x", a=text, b=[number, None], c={text: {"d": text}})
    parsed = Override.parse(override.annotation()).steps[0].with_
    assert _core(parsed) == {"a": text, "b": [number, None], "c": {text: {"d": text}}}


def _core(value: Any) -> Any:
    return read_core(dict(value))


@pytest.mark.parametrize(
    "odd", ["\x85", "\u2028", "\x7f", "\ufeff", "😀", "é", "\x07", "\t\n ", "\\"]
)
def test_odd_characters_stay(odd: str) -> None:
    found = Override().step("x", a=f"a{odd}b").annotation()
    assert text(Override.parse(found).steps[0].with_["a"]) == f"a{odd}b"
    assert json.loads(found)["steps"][0]["with"]["a"] == f"a{odd}b"


# ------------------------------------------------------------------------------------------- builder


def test_the_builder_says_what_a_document_says(config: Config) -> None:
    built = (
        Override()
        .step("gpu", type="nvidia-h100-80gb", count=4)
        .on(task="*.train", labels={"team": "a*"})
        .step("labels", set={"version": "1.10", "on": True, "quoted": "1.10"})
        .named("mine")
        .optional()
    )
    parsed = Override.parse(GPU.replace(", none: null", ""))
    assert compiled(config, built) == compiled(config, parsed)
    assert config.overrides.compile(built).digest == config.overrides.compile(parsed).digest


def test_every_on_holds_together_with_the_others() -> None:
    override = Override().step("env").on(task="a*").on(task="*b", node=["n1.n0", "n2"])
    assert json.loads(override.annotation())["steps"][0]["when"] == {
        "all": [{"task": "a*"}, {"node": ["n1.n0", "n2"], "task": "*b"}]
    }
    assert Override().step("env").on() == Override().step("env")
    either = Override().step("env").when({"any": [{"node": "a"}, {"not": {"task": None}}]})
    assert json.loads(either.annotation())["steps"][0]["when"]["any"][1] == {"not": {"task": None}}
    for method in ("optional", "on"):
        with pytest.raises(OverrideError, match="there is no step yet"):
            getattr(Override(), method)(**({"task": "a"} if method == "on" else {}))


def test_a_builder_is_not_changed_and_two_add_up() -> None:
    base = Override().step("env")
    base.optional()
    base.on(task="x")
    assert base == Override().step("env")
    both = base + Override().step("gpu", type="x")
    assert [step.use for step in both.steps] == ["env", "gpu"]


def test_what_is_too_large_does_not_leave_the_client() -> None:
    with pytest.raises(OverrideError, match="bytes, at most"):
        Override().step("env", set={"A": "x" * LIMITS.bytes}).annotation()
    deep: Any = "x"
    for _ in range(LIMITS.depth):
        deep = [deep]
    with pytest.raises(OverrideError, match="nested too deep"):
        Override().step("env", a=deep).annotation()
    many = Override()
    for _ in range(MAX_STEPS + 1):
        many = many.step("env")
    with pytest.raises(OverrideError, match="33 steps, at most 32"):
        many.annotation()


# -------------------------------------------------------------------------------------------- schema


def test_the_schema_says_yes_and_no_where_the_reader_does(config: Config) -> None:
    schema = override_schema(config.plugins, config.catalogue)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    def steps(*written: Any) -> Any:
        return {"steps": list(written)}

    good = [
        steps({"use": "gpu", "with": {"type": "nvidia-h100-80gb", "count": 4}}),
        steps({"use": "env", "when": {"inputs": {"epochs": 3, "model": {"lr": "0.1*"}}}}),
        steps({"use": "env", "name": "a", "optional": True, "when": {"node": ["n0", "n1.*"]}}),
    ]
    bad = [
        {},
        steps(),
        steps({"use": "gpu"}),
        steps({"use": None, "name": "a"}),
        steps({"use": "nope"}),
        steps({"use": "env", "when": {"labels": {"a": {"b": "c"}}}}),
        steps({"use": "env", "with": {"st": {}}}),
        steps(*[{"use": "env"}] * (MAX_STEPS + 1)),
        {"steps": [{"use": "env"}], "enforce": []},
    ]
    for document in (*good, *bad):
        reads = True
        try:
            config.overrides.compile(Override.parse(json.dumps(document)))
        except OverrideError:
            reads = False
        assert validator.is_valid(document) is reads is (document in good), document
