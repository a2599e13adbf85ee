"""Running a chain: layers, deferral, what is kept of defaults, and what can go wrong."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry import ConfigError, Pod, StepError, TaskContext, Workload, transformer
from kubetailor.registry.context import FIELDS, UNKNOWN, parse_task_fields
from kubetailor.registry.errors import DeferError
from kubetailor.registry.fill import additions
from kubetailor.registry.testing import TailorBench
from kubetailor.workloads import InvalidObjectError, UnknownKindError

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "img"}]},
}
SPARK: dict[str, Any] = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {"name": "s"},
    "spec": {"driver": {}, "executor": {"sidecars": [{"name": "side", "image": "x"}]}},
}
TORCH: dict[str, Any] = {
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
TEMPLATE: dict[str, Any] = {
    "type": "pytorch",
    "id": {"name": "t"},
    "custom": {},
    "container": {"image": "img"},
}


def steps(*lines: str, layer: str = "steps", head: str = "") -> str:
    body = "".join(f"    - {line}\n" for line in lines)
    return f"{head}\nchains:\n  default:\n    {layer}:\n{body}"


# ------------------------------------------------------------------------------------- task context


def test_none_is_known_to_be_absent_and_unknown_defers() -> None:
    task = TaskContext("serialize", project="p", workflow=None)
    assert (task.project, task.workflow, task.phase) == ("p", None, "serialize")
    for field in set(FIELDS) - {"project", "workflow"}:
        assert task.peek(field) is UNKNOWN
        with pytest.raises(DeferError, match=field):
            getattr(task, field)
    assert task.labels == task.annotations == {}
    with pytest.raises(TypeError, match="no field domian"):
        TaskContext("admit", domian="x")


def test_fields_from_the_command_line() -> None:
    assert parse_task_fields(["domain=a=b", "node="]) == {"domain": "a=b", "node": ""}
    for pair, message in (
        ("x", "expected key=value"),
        ("inputs=1", "unknown field 'inputs'"),
        ("phase=x", "unknown field"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_task_fields([pair])


# ------------------------------------------------------------------------------------------ deferral

DEFER = steps(
    "{name: a, use: node_selector, with: {set: {a: '1'}}}",
    "{name: b, use: node_selector, with: {set: {b: '1'}}, when: {domain: production}}",
    "{name: c, use: node_selector, with: {set: {c: '1'}}}",
    head="phases: [serialize, launch, admit]",
)


def test_a_step_that_cannot_be_decided_waits_and_all_after_it(tailor: TailorBench) -> None:
    chain = tailor.chain(DEFER)
    outcome = chain.run(POD, "serialize")
    outcome.assert_changes({"spec.nodeSelector": {"a": "1"}})
    result = outcome.result
    assert (result.done, result.deferred, result.until, result.unknown) == (
        1,
        ("b", "c"),
        "launch",
        "domain",
    )
    assert result.undecided == 0
    # What was known, or is by KUBETAILOR_TASK, is decided.
    decided = chain.run(POD, "serialize", domain="production")
    decided.assert_changes({"spec.nodeSelector": {"a": "1", "b": "1", "c": "1"}})
    assert (decided.result.done, decided.deferred, decided.result.until) == (3, (), None)
    chain.run(POD, "serialize", domain="x").assert_changes(
        {"spec.nodeSelector": {"a": "1", "c": "1"}}
    )


def test_the_next_phase_goes_on_where_the_last_one_stopped(tailor: TailorBench) -> None:
    config = tailor.chain(DEFER).config
    chain = config.chain("default")
    kind = config.plugins.kinds["", "Pod"]
    first = chain.run(POD, kind, TaskContext("serialize"))
    second = chain.run(
        first.after, kind, TaskContext("launch", domain="production"), start=first.done
    )
    assert second.done == 3
    whole = chain.run(POD, kind, TaskContext("serialize", domain="production"))
    assert second.after == whole.after
    still = chain.run(first.after, kind, TaskContext("launch"), start=first.done)
    assert (still.done, still.deferred, still.until) == (1, ("b", "c"), "admit")
    assert still.after is first.after


def test_at_the_last_phase_what_is_not_known_does_not_match_and_is_counted(
    tailor: TailorBench,
) -> None:
    outcome = tailor.chain(DEFER).run(POD, "admit")
    outcome.assert_changes({"spec.nodeSelector": {"a": "1", "c": "1"}})
    assert outcome.result.undecided == 1


def test_where_no_later_phase_is_installed_it_is_an_error(tailor: TailorBench) -> None:
    chain = tailor.chain(DEFER.replace("phases: [serialize, launch, admit]", ""))
    with pytest.raises(
        StepError,
        match=r"kubetailor-1.yaml:6:\d+: step 'b'.*it needs domain, .*'serialize' cannot know.*KUBETAILOR_TASK",
    ):
        chain.run(POD, "serialize")
    chain.run(POD, "serialize", domain="x")


def test_a_transformer_that_reads_what_is_not_known_defers_and_leaves_no_half_of_itself(
    tailor: TailorBench, tmp_path: Path
) -> None:
    (tmp_path / "team.py").write_text(
        "from kubetailor.registry import Pod, TaskContext, Workload, transformer\n"
        "@transformer\ndef per_pod(pod: Pod, task: TaskContext) -> None:\n"
        "    pod.tolerate('half')\n    pod.label('of', task.project)\n"
        "@transformer\ndef whole(workload: Workload, task: TaskContext) -> None:\n"
        "    workload.label('half', 'x')\n    workload.label('of', task.project)\n"
    )
    for use in ("team.per_pod", "team.whole"):
        head = "phases: [serialize, admit]\nplugins: [./team.py]"
        chain = tailor.chain(steps("{use: env, with: {set: {A: x}}}", f"{{use: {use}}}", head=head))
        outcome = chain.run(TORCH, "serialize")
        assert outcome.deferred == (use,)
        assert (outcome.result.until, outcome.result.unknown) == ("admit", "project")
        assert "half" not in str(outcome.after)
        assert "'A'" in str(outcome.after)
        assert "of" in str(chain.run(TORCH, "serialize", project="p").after)
        last = chain.run(TORCH, "admit")
        assert last.result.undecided >= 1
        assert "half" not in str(last.after)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["select"], "select waits for the phase admit: domain is not known yet"),
        (["select", "b"], "select, b wait for the phase admit: domain is not known yet"),
    ],
)
def test_steps_that_wait_are_named_whatever_their_name(
    tailor: TailorBench, names: list[str], text: str
) -> None:
    steps = ", ".join(f"{{use: env, name: {name}, when: {{domain: p}}}}" for name in names)
    chain = tailor.chain(f"phases: [serialize, admit]\nchains: {{default: {{steps: [{steps}]}}}}")
    result = chain.run(POD, "serialize").result
    assert (list(result.deferred), result.unselected, result.notice) == (names, False, text)


def test_a_select_that_cannot_be_decided_makes_the_whole_chain_wait(tailor: TailorBench) -> None:
    text = "{}\nchains: {{default: {{steps: [{{use: env, with: {{set: {{A: x}}}}}}]}}}}\nselect: [{{when: {{domain: p}}, chain: default}}]"
    chain = tailor.chain(text.format("phases: [serialize, admit]"))
    outcome = chain.run(POD, "serialize")
    outcome.assert_unchanged()
    assert (outcome.deferred, outcome.result.until, outcome.result.unknown) == (
        (),
        "admit",
        "domain",
    )
    assert outcome.result.unselected
    assert outcome.result.notice == (
        "the whole chain waits for the phase admit: domain is not known yet"
    )
    assert chain.run(POD, "serialize", domain="p").result.changed
    chain.run(POD, "admit").assert_unchanged()
    with pytest.raises(ConfigError, match="`select` needs domain"):
        tailor.chain(text.format("")).run(POD, "serialize")


def test_a_role_that_shares_its_pod_spec_waits_for_admit(tailor: TailorBench) -> None:
    line = "{use: node_selector, with: {set: {a: '1'}}, when: {role: worker}}"
    chain = tailor.chain(steps(line, head="phases: [serialize, admit]"))
    outcome = chain.run(TEMPLATE, "serialize")
    outcome.assert_unchanged()
    assert (outcome.result.until, outcome.result.unknown) == ("admit", "role")
    chain.run(TORCH, "admit").assert_changes(
        {"spec.pytorchReplicaSpecs.Worker.template.spec.nodeSelector": {"a": "1"}}
    )


# ------------------------------------------------------------------------------------------ defaults


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": 2}, {"a": 1}),
        ({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}),
        ({"a": None, "b": "", "c": {}, "d": []}, {"a": 1, "b": "x", "c": {"y": 1}, "d": [1]}, {"a": 1, "b": "x", "c": {"y": 1}, "d": [1]}),
        ({"a": 0, "b": False}, {"a": 1, "b": True}, {"a": 0, "b": False}),
        ({"s": {"a": 1}}, {"s": {"a": 2, "b": 3}}, {"s": {"a": 1, "b": 3}}),
        ({"args": ["a"]}, {"args": ["a", "b"]}, {"args": ["a"]}),
        ({"command": ["a"]}, {"command": ["b"]}, {"command": ["a"]}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b", "effect": "x"}]}, {"tolerations": [{"key": "b", "effect": "x"}, {"key": "a"}]}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, {"tolerations": [{"key": "a"}]}),
        (
            {"env": [{"name": "U", "value": "$(N)"}]},
            {"env": [{"name": "N", "value": "1"}, {"name": "U", "value": "other"}]},
            {"env": [{"name": "N", "value": "1"}, {"name": "U", "value": "$(N)"}]},
        ),
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A", "valueFrom": {}}]}, {"env": [{"name": "A", "value": ""}]}),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumes": [{"name": "v", "hostPath": {}}]}, {"volumes": [{"name": "v", "emptyDir": {}}]}),
        (
            {"containers": [{"name": "gone"}, {"name": "a", "image": "x"}]},
            {"containers": [{"name": "a", "image": "y", "env": [{"name": "E"}]}, {"name": "new"}]},
            {"containers": [{"name": "gone"}, {"name": "a", "image": "x", "env": [{"name": "E"}]}, {"name": "new"}]},
        ),
        (
            {"jobs": [{"spec": {"a": 1}}, {"spec": {}}]},
            {"jobs": [{"spec": {"a": 2, "b": 1}}, {"spec": {"a": 3}}]},
            {"jobs": [{"spec": {"a": 1, "b": 1}}, {"spec": {"a": 3}}]},
        ),
        ({"jobs": [{"a": 1}]}, {"jobs": [{"a": 1}, {"a": 2}]}, {"jobs": [{"a": 1}]}),
        ({"env": [{"key": "A", "value": "1"}]}, {"env": [{"key": "A", "value": "2"}, {"key": "B"}]}, {"env": [{"key": "A", "value": "1"}, {"key": "B"}]}),
        (
            {"requests": [{"name": "CPU", "value": "1"}]},
            {"requests": [{"name": "MEMORY", "value": "1Gi"}, {"name": "CPU", "value": "2"}]},
            {"requests": [{"name": "MEMORY", "value": "1Gi"}, {"name": "CPU", "value": "1"}]},
        ),
    ],
)  # fmt: skip
def test_a_default_only_adds(before: Any, after: Any, kept: Any) -> None:
    given = copy.deepcopy(before), copy.deepcopy(after)
    assert additions(before, after, atomic=False) == kept
    assert (before, after) == given
    whole = additions(before, after, atomic=True)
    assert whole is (after if kept == after else before)
    if kept == before:
        assert additions(before, after, atomic=False) is before
    if kept == after:
        assert additions(before, after, atomic=False) is after


def test_layers_and_precedence(tailor: TailorBench) -> None:
    chain = tailor.chain(
        """
chains:
  default:
    enforce: [{use: labels, with: {set: {c: enforced}}}]
    steps: [{use: labels, with: {set: {b: step, c: step}}}]
    defaults: [{use: labels, with: {set: {a: default, author: default, b: default, c: default}}}]
"""
    )
    pod = {**POD, "metadata": {"name": "p", "labels": {"author": "x", "b": "author"}}}
    outcome = chain.prove(pod)
    outcome.assert_changes(
        {"metadata.labels": {"author": "x", "a": "default", "b": "step", "c": "enforced"}}
    )
    assert outcome.warnings == [], "layers that differ are as they are meant to be"


def test_of_two_defaults_the_first_wins_and_says_nothing(tailor: TailorBench) -> None:
    chain = tailor.chain(
        steps(
            "{use: priority_class, name: x, with: {name: a}}",
            "{use: priority_class, name: y, with: {name: b}}",
            layer="defaults",
        )
    )
    outcome = chain.prove(POD)
    outcome.assert_changes({"spec.priorityClassName": "a"})
    assert outcome.warnings == []


def test_an_atomic_default_is_kept_whole_or_not_at_all(tailor: TailorBench) -> None:
    chain = tailor.chain(steps("{use: shared_memory, with: {size_limit: 1Gi}}", layer="defaults"))
    chain.prove(POD)
    spec = {
        "containers": [{"name": "main", "volumeMounts": [{"name": "v", "mountPath": "/dev/shm"}]}]
    }
    own = {**POD, "spec": {**spec, "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "5Gi"}}]}}
    chain.prove(own).assert_unchanged()


def test_defaults_do_not_change_what_steps_or_the_author_set_in_a_task(tailor: TailorBench) -> None:
    chain = tailor.chain(
        steps(
            "{use: env, with: {set: {A: default, B: default}}}",
            "{use: tolerations, with: {add: [{key: t, operator: Exists}]}}",
            layer="defaults",
        )
    )
    template = {**TEMPLATE, "container": {"image": "img", "env": [{"key": "A", "value": "own"}]}}
    outcome = chain.prove(template, "serialize")
    assert outcome["k8sPod.podSpec.containers[primary].env"] == [
        {"name": "A", "value": "own"},
        {"name": "B", "value": "default"},
    ]


# -------------------------------------------------------------------------------- two steps, one field


def test_the_later_of_two_steps_wins_and_both_are_named(tailor: TailorBench) -> None:
    text = steps(
        "{name: first, use: node_selector, with: {set: {z: a}}}",
        "{name: second, use: node_selector, with: {set: {z: b}}}",
    )
    chain = tailor.chain(text)
    outcomes = [chain.run(POD) for _ in range(1000)]
    assert all(outcome.after == outcomes[0].after for outcome in outcomes)
    assert outcomes[0]["spec.nodeSelector"] == {"z": "b"}
    assert outcomes[0].warnings == [
        "step 'second': z: step 'second' sets 'b', where 'first' set 'a'; the later one wins (spec.nodeSelector.z)"
    ]
    assert [(c.step, c.op, c.old, c.new) for c in outcomes[0].changes] == [
        ("first", "add", None, {"z": "a"}),
        ("second", "replace", "a", "b"),
    ]
    with pytest.raises(
        StepError,
        match=r":6:\d+: step 'second' \(plugin kubetailor\) on Pod p: spec.nodeSelector.z: z: .*'first'",
    ):
        tailor.chain("strict: true\n" + text.lstrip()).run(POD)


# ------------------------------------------------------------------------------------------- explain


def test_every_change_has_its_step_plugin_and_place(tailor: TailorBench) -> None:
    chain = tailor.chain(
        steps(
            "{name: drop, use: env, with: {remove: [A, B]}}",
            "{name: add, use: env, with: {set: {NEW: x}, container: side}}",
            "{use: labels, with: {set: {example.com/l: v}, on: [object]}}",
        )
    )
    env = [{"name": name, "value": "1"} for name in "ABC"]
    pod = {**POD, "spec": {"containers": [{"name": "main", "env": env}, {"name": "side"}]}}
    changes = chain.run(pod).changes
    assert [(c.field, c.op, c.step, c.layer, c.transformer, c.plugin) for c in changes] == [
        ("spec.containers[main].env[A]", "remove", "drop", "steps", "env", "kubetailor"),
        ("spec.containers[main].env[B]", "remove", "drop", "steps", "env", "kubetailor"),
        ("spec.containers[side].env", "add", "add", "steps", "env", "kubetailor"),
        ("metadata.labels", "add", "labels", "steps", "labels", "kubetailor"),
    ]
    assert [c.place.rpartition("yaml:")[2] for c in changes] == ["5:20", "5:20", "6:19", "7:8"]
    assert changes[0].as_json()["old"] == {"name": "A", "value": "1"}


def test_explain_shows_no_conversion_of_the_task(tailor: TailorBench) -> None:
    chain = tailor.chain(steps("{use: tolerations, with: {add: [{key: t, operator: Exists}]}}"))
    outcome = chain.run(TEMPLATE, "serialize")
    assert [change.field for change in outcome.changes] == ["k8sPod.podSpec.tolerations"]
    assert outcome.diff == ['+ k8sPod.podSpec.tolerations = [{"key": "t", "operator": "Exists"}]']


# --------------------------------------------------------------------- what cannot be done, and faults

MISSING = "{use: env, with: {set: {A: x}, container: nope}%s}"


def test_a_missing_container_is_a_warning_in_steps_and_an_error_in_enforce(
    tailor: TailorBench,
) -> None:
    for layer in ("defaults", "steps"):
        outcome = tailor.chain(steps(MISSING % "", layer=layer)).prove(POD)
        outcome.assert_unchanged()
        assert outcome.warnings == [
            "step 'env': spec.containers: no container 'nope'; the containers are main"
        ]
    for layer, head in (("enforce", ""), ("steps", "strict: true"), ("defaults", "strict: true")):
        with pytest.raises(StepError, match="no container 'nope'; the containers are main"):
            tailor.chain(steps(MISSING % "", layer=layer, head=head)).run(POD)
        silent = tailor.chain(steps(MISSING % ", optional: true", layer=layer, head=head)).run(POD)
        silent.assert_unchanged()
        assert silent.warnings == []


def test_a_pod_that_cannot_be_changed_leaves_the_others_changed(tailor: TailorBench) -> None:
    line = "{use: image, with: {image: new, container: side}}"
    outcome = tailor.chain(steps(line)).prove(SPARK)
    outcome.assert_changes({"spec.executor.sidecars[side].image": "new"})
    assert len(outcome.warnings) == 1
    assert "no container 'side'; the containers are spark-kubernetes-driver" in outcome.warnings[0]


def test_an_atomic_transformer_changes_all_pods_or_none(tailor: TailorBench) -> None:
    @transformer(atomic=True)
    def side(pod: Pod) -> None:
        pod.tolerate("half")
        pod.container("side").set_image("new")

    outcome = tailor.transform(side, SPARK)
    outcome.assert_unchanged()
    assert len(outcome.warnings) == 1


ROLE = "{use: node_selector, with: {set: {a: b}}, when: {%s}%s}"


def test_a_missing_role_is_a_warning_in_steps_and_an_error_in_enforce(tailor: TailorBench) -> None:
    for when in ("role: chief", "role: chief, kind: PyTorchJob", "role: chief, not: {kind: Pod}"):
        outcome = tailor.chain(steps(ROLE % (when, ""))).run(TORCH)
        outcome.assert_unchanged()
        (warning,) = outcome.warnings
        assert "no pod has the role that `when` names; roles present: master, worker" in warning
        with pytest.raises(StepError, match="roles present: master, worker"):
            tailor.chain(steps(ROLE % (when, ""), layer="enforce")).run(TORCH)
        assert (
            not tailor.chain(steps(ROLE % (when, ", optional: true"), layer="enforce"))
            .run(TORCH)
            .warnings
        )
    for when in (
        "role: chief, kind: Job",
        "role: worker, requests: nvidia.com/gpu",
        "requests: x",
        "kind: Job",
    ):
        chain = tailor.chain(steps(ROLE % (when, ""), layer="enforce"))
        assert not chain.run(TORCH).warnings, "another condition does not hold"


def test_what_kubernetes_refuses_names_the_step_that_did_it(tailor: TailorBench) -> None:
    chain = tailor.chain(
        steps(
            "{use: node_selector, with: {set: {a: b}}}",
            "{name: bad, use: patch, with: {pod: {tolerations: [{key: a, operator: exists}]}}}",
            "{use: env, with: {set: {A: x}}}",
        )
    )
    with pytest.raises(StepError) as caught:
        chain.run(POD)
    error = caught.value
    assert (error.step, error.plugin, error.obj) == ("bad", "kubetailor", "Pod p")
    assert error.field == "spec.tolerations[0]"
    assert str(error).endswith(
        "kubetailor-1.yaml:6:19: step 'bad' (plugin kubetailor) on Pod p: spec.tolerations[0]: operator "
        "'exists': must be Equal or Exists"
    )


def test_flytes_own_labels_are_safe_from_patches_too(tailor: TailorBench) -> None:
    chain = tailor.chain(
        steps("{use: patch, with: {object: {metadata: {labels: {execution-id: null}}}}}")
    )
    with pytest.raises(StepError, match="label 'execution-id' is Flyte's own"):
        chain.run({**POD, "metadata": {"name": "p", "labels": {"execution-id": "e", "a": "b"}}})


def test_bad_transformers_are_named_with_their_line(tailor: TailorBench) -> None:
    def raises(pod: Pod) -> None:
        raise KeyError("nope")

    def returns(pod: Pod) -> Any:
        return pod.tolerations

    def other(workload: Workload) -> Any:
        return {"kind": "Pod"}

    def text(obj: dict[str, Any]) -> Any:
        return "x"

    for function, message in (
        (raises, rf"KeyError: 'nope' \({__file__}:\d+\)"),
        (returns, "TypeError: it returned list; a transformer returns the Pod or None"),
        (other, "it returned dict; a transformer returns the Workload or None"),
        (text, "it returned str; a transformer returns a dict or None"),
    ):
        with pytest.raises(StepError, match=message) as caught:
            tailor.transform(function, POD)
        assert caught.value.step == function.__name__


def test_an_author_who_returns_the_argument_is_welcome(tailor: TailorBench) -> None:
    def same_pod(pod: Pod) -> Pod:
        pod.tolerate("a")
        return pod

    def same_dict(obj: dict[str, Any]) -> dict[str, Any]:
        obj["spec"]["hostname"] = "h"
        return obj

    def in_place(obj: dict[str, Any]) -> None:
        obj["spec"]["hostname"] = "h"

    tailor.prove(same_pod, POD).assert_changes(
        {"spec.tolerations": [{"key": "a", "operator": "Exists"}]}
    )
    for function in (same_dict, in_place):
        outcome = tailor.prove(function, POD)
        outcome.assert_changes({"spec.hostname": "h"})
        assert outcome.after["spec"]["containers"] is POD["spec"]["containers"], (
            "only the difference is written"
        )


# ---------------------------------------------------------------------------------------- validators


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return ['no team'] if 'team' not in workload.labels else None", "no team"),
        ("return 'one fault'", "one fault"),
        ("yield 'from a generator'", "from a generator"),
        ("raise ValueError('broken')", "ValueError: broken"),
    ],
)
def test_validate_of_a_plugin_fails_the_chain(
    tailor: TailorBench, tmp_path: Path, body: str, message: str
) -> None:
    (tmp_path / "strict_team.py").write_text(
        f"from kubetailor.registry import hookimpl\n@hookimpl\ndef validate(workload):\n    {body}\n"
    )
    text = steps("{use: env, with: {set: {A: x}}}", head="plugins: [./strict_team.py]")
    with pytest.raises(
        StepError, match=rf"step 'env' .*{message} \(validate of plugin strict_team\)"
    ):
        tailor.chain(text).run(POD)
    unchanged = steps(
        "{use: env, with: {set: {A: x}}, when: {kind: Job}}", head="plugins: [./strict_team.py]"
    )
    tailor.chain(unchanged).run(POD).assert_unchanged()


# ------------------------------------------------------------------------------------ the front door


def test_an_object_of_no_known_kind_passes_unless_it_holds_containers(tailor: TailorBench) -> None:
    chain = tailor.chain(steps("{use: labels, with: {set: {a: b}}}"))
    chain.run({"apiVersion": "v1", "kind": "Service", "spec": {"x": [1]}}).assert_unchanged()
    unknown = {
        "apiVersion": "acme.io/v1",
        "kind": "Run",
        "spec": {"parts": [{"template": {"containers": []}}]},
    }
    with pytest.raises(
        UnknownKindError,
        match=r"kind Run of acme.io/v1 is not known, and it holds containers.*register_kinds",
    ):
        chain.run(unknown)
    execution = {**unknown, "apiVersion": "flyte.lyft.com/v1alpha1", "kind": "FlyteWorkflow"}
    with pytest.raises(UnknownKindError, match="its tasks one by one at `launch`; `kubetailor fly"):
        chain.run(execution)
    with pytest.raises(InvalidObjectError, match="needs `apiVersion` and `kind`"):
        chain.run({"spec": {}})


def test_a_child_takes_no_queue_label(tailor: TailorBench) -> None:
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "controller": True}
    pod = {**POD, "metadata": {"name": "p", "ownerReferences": [owner]}}
    chain = tailor.chain(steps("{use: kueue, with: {queue: q}}"))
    outcome = chain.run(pod)
    outcome.assert_unchanged()
    assert "its owner carries the queue" in outcome.warnings[0]
    chain.run(POD).assert_changes({"metadata.labels": {"kueue.x-k8s.io/queue-name": "q"}})
