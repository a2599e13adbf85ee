"""A chain with an override: what runs when, what may be, and what it did over an execution."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.registry import (
    Chain,
    ConfigError,
    Override,
    OverrideError,
    Result,
    StepError,
    TaskContext,
    Workload,
)
from kubetailor.registry import chain as chain_module
from kubetailor.registry.load import load_config
from kubetailor.registry.overrides.compiled import CompiledOverride, OverriddenRun
from kubetailor.registry.overrides.outcome import OverrideOutcome
from kubetailor.registry.run import Run
from kubetailor.registry.selectors import View, compile_selector
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import same

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "img"}]},
}
TEMPLATE: dict[str, Any] = {
    "type": "pytorch",
    "id": {"name": "t"},
    "custom": {},
    "container": {"image": "img"},
}
SPARK: dict[str, Any] = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {"name": "s"},
    "spec": {"driver": {}, "executor": {}},
}
CHAIN = """\
phases: [serialize, launch, admit]
chains:
  default:
    defaults:
    - {use: labels, with: {set: {a: defaults, b: defaults, c: defaults, d: defaults}}}
    steps:
    - {name: steps, use: labels, with: {set: {b: steps, c: steps, d: steps}}}
    enforce:
    - {name: enforce, use: labels, with: {set: {d: enforce}}}
"""
Load = Callable[..., Tailor]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str = CHAIN) -> Tailor:
        path = tmp_path / "kubetailor.yaml"
        path.write_text(text)
        return Tailor(load_config(path, entry_points=False))

    return load


def labels(result: Result) -> Any:
    return result.after["metadata"].get("labels")


def with_labels(**pairs: str) -> Override:
    return Override().step("labels", set=pairs)


# -------------------------------------------------------------------------------------- precedence


def test_it_runs_after_the_steps_and_before_enforce(load: Load) -> None:
    tailor = load()
    override = tailor.config.overrides.compile(with_labels(c="override", d="override"))
    found = tailor.tailor(POD, "admit", override=override)
    assert labels(found.result) == {
        "a": "defaults",
        "b": "steps",
        "c": "override",
        "d": "enforce",
    }
    assert found.chain is not None
    assert [(s.layer, s.name) for s in found.chain.steps] == [
        ("defaults", "labels"),
        ("steps", "steps"),
        ("override", "labels"),
        ("enforce", "enforce"),
    ]
    changes = found.result.changes()
    assert [c.layer for c in changes] == [
        *("defaults", "steps", "steps", "steps", "override", "override", "enforce"),
    ]
    assert changes[4].place == "step 1 of the override"
    # What it beats, and what beats it, is as without it.
    plain = tailor.tailor(POD, "admit").result
    assert labels(plain) == {"a": "defaults", "b": "steps", "c": "steps", "d": "enforce"}


def test_later_steps_win_and_so_does_the_execution_over_the_launch_plan(load: Load) -> None:
    tailor = load()
    both = with_labels(c="plan", e="plan") + with_labels(c="execution")
    override = tailor.config.overrides.compile(both)
    found = labels(tailor.tailor(POD, "admit", override=override).result)
    assert (found["c"], found["e"]) == ("execution", "plan")


def test_the_chain_stays_as_it_is_and_the_override_has_its_own_digest(load: Load) -> None:
    tailor = load()
    overrides = tailor.config.overrides
    chain = tailor.config.chain("default")
    one = overrides.compile(with_labels(x="1"))
    found = chain.overridden(one)
    assert chain.overridden(None) is chain
    assert (chain.override, len(chain.steps)) == (None, 3)
    assert (found.digest, found.override) == (chain.digest, one)
    assert one.digest.startswith("sha256:")
    assert overrides.compile(with_labels(x="1").named("other")).digest == one.digest
    others = [
        with_labels(x="2"),
        with_labels(x="1").optional(),
        with_labels(x="1").on(task="a"),
        with_labels(x="1") + with_labels(x="1"),
    ]
    digests = {overrides.compile(override).digest for override in others}
    assert len(digests | {one.digest}) == len(others) + 1


def test_what_has_one_digest_makes_the_same_objects_byte_for_byte(load: Load) -> None:
    tailor = load()
    overrides = tailor.config.overrides
    file = Override.parse("steps: [{use: env, with: {set: {B: 1, A: $(B), C: 2}}}]", "o.yaml")
    built = Override().step("env", set={"C": "2", "A": "$(B)", "B": 1})
    found = {}
    for override in (file, built, Override.parse(file.annotation())):
        compiled = overrides.compile(override)
        after = tailor.tailor(POD, "admit", override=compiled).result.after
        found[json.dumps(after)] = compiled.digest
    assert len(found) == 1
    env = json.loads(next(iter(found)))["spec"]["containers"][0]["env"]
    assert [entry["name"] for entry in env] == ["B", "A", "C"]


def test_an_accelerator_of_the_config_is_in_the_digest(load: Load) -> None:
    text = CHAIN + "accelerators: {mine: {resource: acme.io/gpu, node_selector: {a: b}}}\n"
    override = Override().step("gpu", type="mine", count=1)
    digest = load(text).config.overrides.compile(override).digest
    again = load(text + "# the same\n").config.overrides.compile(override).digest
    other = load(text.replace("a: b", "a: c")).config.overrides.compile(override).digest
    assert digest == again != other


def test_where_no_chain_is_selected_the_override_runs_alone(load: Load) -> None:
    tailor = load(CHAIN + "select: [{chain: null}]\n")
    override = tailor.config.overrides.compile(with_labels(x="1"))
    found = tailor.tailor(POD, "admit", override=override)
    assert labels(found.result) == {"x": "1"}
    assert found.chain is not None
    assert (found.chain.name, found.chain.digest) == ("", "")
    assert tailor.tailor(POD, "admit").chain is None


def test_a_chain_without_an_override_runs_as_it_did(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def refuse(*args: Any) -> Any:
        made.append("an overridden run")

    monkeypatch.setattr(chain_module, "OverriddenRun", refuse)
    assert load().tailor(POD, "admit").result.matched == ()
    assert made == []
    assert vars(OverriddenRun).keys() >= {"_arguments"}
    assert OverriddenRun._step is Run._step


# ---------------------------------------------------------------------------- once, in any phase


def resumed(chain: Chain, obj: Any, kind: Any, first: Result, override: str | None) -> Result:
    start = chain.resumed_at(first.done, override)
    return chain.run(obj, kind, TaskContext("admit"), start=start)


def test_a_run_goes_on_after_the_same_override_alone(load: Load) -> None:
    tailor = load()
    overrides = tailor.config.overrides
    kind = tailor.config.plugins.kinds["", "Pod"]
    plain = tailor.config.chain("default")
    one = overrides.compile(with_labels(x="1"))
    other = overrides.compile(with_labels(x="2"))
    chain = plain.overridden(one)
    first = chain.run(POD, kind, TaskContext("launch"))
    assert first.done == 4

    assert chain.resumed_at(4, one.digest) == 4
    moved = copy.deepcopy(first.after)
    moved["metadata"]["labels"]["x"] = "changed since"
    assert labels(resumed(chain, moved, kind, first, one.digest))["x"] == "changed since"

    # Another one, or one where there was none, runs; the steps below need not again.
    for before in (other.digest, None):
        assert chain.resumed_at(4, before) == 2
        assert labels(resumed(chain, moved, kind, first, before))["x"] == "1"
    assert chain.resumed_at(1, None) == 1
    assert plain.resumed_at(4, one.digest) == 2
    assert plain.resumed_at(3, None) == 3


def test_a_target_that_is_not_known_yet_waits_with_all_after_it(load: Load) -> None:
    tailor = load()
    override = tailor.config.overrides.compile(
        with_labels(x="1").on(node="n0") + with_labels(y="1")
    )
    result = tailor.tailor(POD, "serialize", override=override).result
    assert (result.done, result.deferred, result.until) == (
        2,
        ("labels", "labels-2", "enforce"),
        "launch",
    )
    later = tailor.tailor(POD, "launch", override=override, node="n0").result
    assert (later.done, later.matched) == (5, ("labels", "labels-2"))
    assert override.launch_only == {"labels": ["node"]}
    # At the last phase it is for none.
    last = tailor.tailor(POD, "admit", override=override).result
    assert (last.matched, last.undecided) == (("labels-2",), 1)


# ------------------------------------------------------------------------------------- what it may


def test_what_a_rule_asks_for_is_asked_of_the_object_before_the_override(load: Load) -> None:
    rules = """\
overridable:
- {use: labels}
- {use: env, when: {requests: steps.io/gpu}}
- {use: resources}
- {use: priority_class, when: {requests: acme.io/gpu}}
"""
    step = "    - {use: resources, with: {limits: {steps.io/gpu: 1}}}\n"
    tailor = load(CHAIN.replace("    enforce:", step + "    enforce:") + rules)

    def run(override: Override, **known: Any) -> Any:
        compiled = tailor.config.overrides.compile(override)
        return labels(tailor.tailor(POD, "admit", override=compiled, **known).result)

    run(Override().step("env", set={"A": "1"}))  # the chain's own step has set it
    more = Override().step("resources", limits={"acme.io/gpu": 1})
    cheat = more.step("priority_class", name="high")
    with pytest.raises(OverrideError) as caught:
        run(cheat)
    assert str(caught.value) == (
        "step 2 of the override: step 'priority_class': on Pod p: priority_class may not be "
        'overridden here, only where {"requests": "acme.io/gpu"} '
        f"({tailor.config.file}:15:4)"
    )
    # What does not apply need not be allowed.
    run(cheat.on(task="other"), task="mine")


def test_a_rule_by_role_is_about_every_pod_that_a_step_changes(load: Load) -> None:
    rules = """\
overridable:
- {use: env, when: {role: worker}}
- {use: priority_class, when: {role: worker, requests: other.io/gpu}}
- {use: resources}
"""
    tailor = load(CHAIN + rules)
    job: dict[str, Any] = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": {
            "pytorchReplicaSpecs": {
                role: {"template": {"spec": {"containers": [{"name": "pytorch"}]}}}
                for role in ("Master", "Worker")
            }
        },
    }
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["resources"] = {"limits": {"acme.io/gpu": 1}}

    def run(override: Override) -> Result:
        compiled = tailor.config.overrides.compile(override)
        return tailor.tailor(job, "admit", override=compiled).result

    env = Override().step("env", set={"A": "1"})
    assert run(env.on(role="worker")).matched == ("env",)
    assert run(env.on(requests="acme.io/gpu")).matched == ("env",)
    # A step before it that makes more pods fit its `when` does not help.
    more = Override().step("resources", limits={"acme.io/gpu": 1})
    for override in (env, env.on(role="*"), more + env.on(requests="acme.io/gpu")):
        with pytest.raises(OverrideError, match="env may not be overridden here"):
            run(override)
    with pytest.raises(OverrideError, match="priority_class may not be overridden here"):
        run(Override().step("priority_class", name="a").on(role="worker"))


def test_what_it_may_not_is_never_run(load: Load, tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(
        "from kubetailor.registry import Pod, transformer\n"
        "RAN = []\n"
        "@transformer\n"
        "def act(pod: Pod) -> None:\n    RAN.append(1)\n"
    )
    tailor = load(
        "plugins: [./acme.py]\n" + CHAIN + "overridable: [{use: acme.act, when: {domain: d}}]"
    )
    module = tailor.config.plugins["acme"].module
    override = tailor.config.overrides.compile(Override().step("acme.act"))
    with pytest.raises(OverrideError, match=r"acme\.act may not be overridden here"):
        tailor.tailor(POD, "admit", override=override, domain="e")
    assert vars(module)["RAN"] == []
    tailor.tailor(POD, "admit", override=override, domain="d")
    assert vars(module)["RAN"] == [1]


def test_what_has_no_place_is_an_error_unless_optional(load: Load) -> None:
    tailor = load()
    missing = Override().step("env", set={"A": "1"}, container="other")
    with pytest.raises(StepError, match=r"step 1 of the override: step 'env'.*'other'"):
        tailor.tailor(POD, "admit", override=tailor.config.overrides.compile(missing))
    spark = Override().step("tolerations", add=[{"key": "a"}])
    optional = tailor.config.overrides.compile(missing.optional())
    result = tailor.tailor(POD, "admit", override=optional).result
    assert (result.matched, result.warnings) == (("env",), [])
    kept = tailor.tailor(SPARK, "admit", override=tailor.config.overrides.compile(spark)).result
    assert kept.matched == ("tolerations",)


# ------------------------------------------------------------------------- over a whole execution


def outcome(tailor: Tailor, override: Override, *tasks: dict[str, Any]) -> OverrideOutcome:
    compiled = tailor.config.overrides.compile(override)
    found = OverrideOutcome(compiled)
    kind = tailor.config.plugins.kinds["", "Pod"]
    for known in tasks:
        task = tailor.task("launch", **known)
        result = tailor.tailor(POD, "launch", override=compiled, **known).result
        found.add(task, result, kind)
    return found


TASKS = [
    {"task": "speech.prepare", "node": "n0", "inputs": {"epochs": 3}},
    {"task": "speech.train", "node": "n1", "inputs": {"epochs": 3, "big": True}},
    {"task": "speech.train", "node": "n2.n0", "inputs": {"epochs": 3}},
]


def test_a_step_that_one_task_takes_is_enough(load: Load) -> None:
    override = with_labels(x="1").on(task="*.train", node="n2.*")
    found = outcome(load(), override, *TASKS)
    assert (found.matched, found.changed, found.faults()) == ({"labels"}, {"labels"}, [])
    found.check()


def test_one_that_matches_no_task_says_what_there_is(load: Load) -> None:
    tailor = load()
    for override, message in (
        (
            with_labels(x="1").on(task="speech.trian"),
            'it matches no task: when {"task": "speech.trian"}; did you mean speech.train, '
            "speech.prepare? (tasks: speech.prepare, speech.train); `optional: true` allows it",
        ),
        (
            with_labels(x="1").on(node=["n3", "n4"]),
            'when {"node": ["n3", "n4"]}; nodes: n0, n1, n2.n0; ',
        ),
        (
            with_labels(x="1").on(task="*.train", node="n0"),
            'when {"node": "n0", "task": "*.train"}; `optional: true` allows it',
        ),
        (with_labels(x="1").on(role="worker"), 'when {"role": "worker"}; roles: primary; '),
        (
            with_labels(x="1").when({"any": [{"kind": "Job"}, {"node": "n7"}, {"phase": "admit"}]}),
            "kinds: Pod; nodes: n0, n1, n2.n0; `optional",
        ),
        (with_labels(x="1").on(kind="Job"), 'when {"kind": "Job"}; kinds: Pod; '),
        (with_labels(x="1").on(labels={"a": "b"}), "; labels.a: defaults; `optional"),
        (
            with_labels(x="1").on(labels={"aa": "b"}),
            "; did you mean a? (labels: a, b, c, d); `optional",
        ),
        (with_labels(x="1").when({"labels": {"a": None}}), '{"a": null}}; `optional'),
        (with_labels(x="1").on(annotations={"note": "*"}), "; annotations: none; `optional"),
        (
            with_labels(x="1").on(inputs={"epocs": "3"}),
            "did you mean epochs? (inputs: big, epochs)",
        ),
        (with_labels(x="1").on(inputs={"epochs": ["4"]}), "; inputs.epochs: 3; `optional"),
        (with_labels(x="1").on(inputs={"big": "false"}), "; inputs.big: true; `optional"),
        (with_labels(x="1").when({"inputs": {"epochs": {"a": "3"}}}), '"3"}}}; `optional'),
        (with_labels(x="1").on(requests="nvidia.com/gpu"), "; resources: none; `optional"),
        (
            with_labels(x="1").when({"not": {"task": "*"}}),
            'when {"not": {"task": "*"}}; `optional: true` allows it',
        ),
    ):
        with pytest.raises(OverrideError) as caught:
            outcome(tailor, override, *TASKS).check()
        assert str(caught.value).startswith("step 1 of the override: step 'labels': it matches no")
        assert message in str(caught.value)
        outcome(tailor, override.optional(), *TASKS).check()


def test_one_that_changes_nothing_is_told_apart(load: Load) -> None:
    override = with_labels(b="steps").named("mine")
    with pytest.raises(OverrideError) as caught:
        outcome(load(), override, *TASKS).check()
    assert str(caught.value) == (
        "step 1 of the override: step 'mine': it changes nothing: what it sets is there already, "
        "on every task that it is for; `optional: true` allows it"
    )


def test_why_a_step_did_nothing_that_some_objects_have_no_use_for(load: Load) -> None:
    for override, message in (
        (
            Override().step("gpu", type="nvidia-h100-80gb"),
            "step 'gpu': it changes nothing: what it sets is there already, or no pod asks for an "
            "accelerator, on every task that it is for; `optional: true` allows it",
        ),
        (
            Override().step("retries", retries=3),
            "step 'retries': it matches no task: retries is about Flyte's task templates alone, "
            "of which there is none here; `optional: true` allows it",
        ),
    ):
        with pytest.raises(OverrideError) as caught:
            outcome(load(), override, *TASKS).check()
        assert str(caught.value) == f"step 1 of the override: {message}"


def test_all_idle_steps_are_said_and_one_that_waits_is_not_idle(load: Load) -> None:
    tailor = load()
    override = with_labels(x="1").on(task="a") + with_labels(y="1").on(task="b")
    found = outcome(tailor, override, *TASKS)
    assert len(found.faults()) == 2
    with pytest.raises(OverrideError, match=r"step 1(.|\n)*step 2"):
        found.check()
    waits = with_labels(x="1").on(launch_plan="a")
    assert outcome(tailor, waits, *TASKS).waiting == {"labels"}
    outcome(tailor, waits, *TASKS).check()


def test_an_execution_whose_chain_cannot_be_selected_yet_waits(load: Load) -> None:
    tailor = load(CHAIN + "select: [{when: {launch_plan: a}, chain: default}]\n")
    found = outcome(tailor, with_labels(x="1"), *TASKS)
    assert found.waiting == {"labels"}
    found.check()


def test_what_is_about_task_templates_is_not_judged_at_objects(load: Load) -> None:
    tailor = load()
    override = tailor.config.overrides.compile(Override().step("retries", retries=3))
    result = tailor.tailor(POD, "admit", override=override).result
    assert (result.matched, result.inapplicable) == ((), 1)
    template = tailor.tailor(TEMPLATE, "launch", override=override).result
    assert template.matched == ("retries",)
    assert template.after["metadata"]["retries"] == {"retries": 3}


# -------------------------------------------------------------------------------------- promises


@given(
    pairs=st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"), min_size=1),
    remove=st.lists(st.sampled_from("abcdef"), max_size=3),
)
def test_a_second_run_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, pairs: dict[str, str], remove: list[str]
) -> None:
    tailor = _TAILOR.get("one")
    if tailor is None:
        path = tmp_path_factory.mktemp("config") / "kubetailor.yaml"
        path.write_text(CHAIN)
        tailor = _TAILOR["one"] = Tailor(load_config(path, entry_points=False))
    text = Override().step("labels", set=pairs, remove=remove).annotation()
    override: CompiledOverride = tailor.config.overrides.read(text)
    assert tailor.config.overrides.read(text) is override
    once = tailor.tailor(POD, "admit", override=override).result
    again = tailor.tailor(once.after, "admit", override=override).result
    assert same(once.after, again.after)
    assert again.patch() == []
    assert labels(once)["d"] == "enforce"
    assert {**labels(once), **pairs, "d": "enforce"} == labels(once)


_TAILOR: dict[str, Tailor] = {}


# ------------------------------------------------------------------------------------------ targets


def test_targets_are_the_selectors_of_a_config(load: Load) -> None:
    tailor = load()
    kind = tailor.config.plugins.kinds["", "Pod"]
    task = TaskContext(
        "launch",
        task="speech.train",
        node="n1.n0",
        inputs={"epochs": 3, "big": True, "model": {"lr": 0.1, "name": "large", "opt": {"x": 1}}},
    )
    view = View(task, Workload(POD, kind))
    for when, holds in (
        ({"node": "n1.n0"}, True),
        ({"node": "n1.*"}, True),
        ({"node": "n1"}, False),
        ({"inputs": {"epochs": "3", "big": "true"}}, True),
        ({"inputs": {"model": {"lr": "0.*"}}}, True),
        ({"inputs": {"model": {"lr": "0.*", "name": ["small", "large"]}}}, True),
        ({"inputs": {"model": {"opt": {"x": "1"}}}}, True),
        ({"inputs": {"model": {"opt": {"x": "2"}}}}, False),
        ({"inputs": {"model": {"none": None}}}, True),
        ({"inputs": {"epochs": {"a": "1"}}}, False),
        ({"inputs": {"other": {"a": None}}}, True),
    ):
        assert compile_selector(when).test(view) is holds, when
    assert compile_selector({"inputs": {"a": {"b": "c"}}}).test(
        View(TaskContext("admit"), Workload(POD, kind))
    ) is None  # fmt: skip
    faults: tuple[Any, ...] = ({"labels": {"a": {"b": "c"}}}, {"inputs": {"a": {}}})
    for wrong in faults:
        with pytest.raises(ValueError, match=r"expected a glob|takes a map"):
            compile_selector(wrong)


def test_a_config_with_an_override_of_a_plugin_that_is_gone_says_so(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"no transformer 'acme\.act'"):
        load().config.overrides.compile(Override().step("acme.act"))
