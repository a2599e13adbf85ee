"""Nodes of subworkflows, in each of their uses."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.plugins.execution.instances import MOST, Instances
from kubetailor.plugins.execution.tailored_execution import MOST_WORK, TailoredExecution
from kubetailor.registry import OverrideError
from kubetailor.registry.overrides.document import Override
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import InvalidObjectError, deep_copy

Obj = dict[str, Any]
TailorOf = Callable[[str], Tailor]

LABELS = "{use: labels, with: {set: {here: 'yes'}}"


@pytest.fixture
def tailor_of(tmp_path: Path) -> TailorOf:
    """Makes a config of the steps of its chain."""

    def make(steps: str) -> Tailor:
        path = tmp_path / "kubetailor.yaml"
        path.write_text(f"phases: [launch, admit]\nchains: {{default: {{steps: [{steps}]}}}}\n")
        found = Tailor.find(path, environ={})
        assert found is not None
        return found

    return make


def task(name: str = "t") -> Obj:
    return {
        "id": {"name": name},
        "type": "python-task",
        "metadata": {},
        "container": {"image": "i"},
    }


def runs(key: str = "t", **more: Any) -> Obj:
    return {"kind": "task", "task": key, **more}


def uses(key: str) -> Obj:
    return {"kind": "workflow", "workflow": {"subWorkflowRef": key}}


def graph(**nodes: Obj) -> Obj:
    return {"nodes": {name: {"id": name, **spec} for name, spec in nodes.items()}}


def execution(main: Obj, tasks: Obj | None = None, **subworkflows: Obj) -> Obj:
    return {
        "apiVersion": "flyte.lyft.com/v1alpha1",
        "kind": "FlyteWorkflow",
        "metadata": {"name": "x"},
        "spec": main,
        "subWorkflows": subworkflows,
        "tasks": tasks or {"t": task()},
    }


NESTED = execution(
    graph(n0=uses("outer"), n1=uses("outer"), n2=runs()),
    outer=graph(n0=uses("inner"), n1=runs()),
    inner=graph(n0=runs(retry={"minAttempts": 1}), n1=runs()),
)
"""`inner` is there twice, as n0.n0 and n1.n0."""


def labels_at(obj: Obj) -> dict[str, Any]:
    """The label `here` of the task of every node, as the engine walks the graphs."""
    found: dict[str, Any] = {}

    def walk(graph: Obj, prefix: str) -> None:
        for name, node in graph["nodes"].items():
            if "task" in node:
                metadata = obj["tasks"][node["task"]]["metadata"].get("metadata", {})
                found[prefix + name] = metadata.get("labels", {}).get("here")
            else:
                walk(obj["subWorkflows"][node["workflow"]["subWorkflowRef"]], f"{prefix}{name}.")

    walk(obj["spec"], "")
    return found


def labelled(obj: Obj) -> set[str]:
    return {node for node, label in labels_at(obj).items() if label}


@pytest.mark.parametrize(
    ("node", "expected", "graphs"),
    [
        ("n2", {"n2"}, 2),
        ("n1", set[str](), 2),
        ("n0.n0.n0", {"n0.n0.n0"}, 4),
        ("n1.n1", {"n1.n1"}, 3),
        ("*.n0", {"n0.n0.n0", "n1.n0.n0"}, 2),
        ("*n0", {"n0.n0.n0", "n1.n0.n0"}, 2),
        ("n1.*", {"n1.n0.n0", "n1.n0.n1", "n1.n1"}, 4),
        ("[n0.n1, n1.n0.n1]", {"n0.n1", "n1.n0.n1"}, 4),
    ],
)
def test_a_node_is_known_by_the_path_of_its_ids(
    tailor_of: TailorOf, node: str, expected: set[str], graphs: int
) -> None:
    # Quoted, as a glob may begin with what YAML takes for something else.
    value = node if node.startswith("[") else f"'{node}'"
    tailor = tailor_of(f"{LABELS}, when: {{node: {value}}}}}")
    before = deep_copy(NESTED)
    after = TailoredExecution(NESTED, tailor).tailored()
    assert labelled(after) == expected
    assert labels_at(after).keys() == labels_at(NESTED).keys()
    assert before == NESTED
    # Uses that come out the same stay one graph.
    assert len(after["subWorkflows"]) == graphs
    again = TailoredExecution(after, tailor).tailored()
    assert again == after


def test_what_is_compiled_into_a_node_is_changed_in_its_own_copy(tailor_of: TailorOf) -> None:
    tailor = tailor_of("{use: retries, with: {retries: 4}, when: {node: n1.n0.n0}}")
    after = TailoredExecution(NESTED, tailor).tailored()
    outer = after["subWorkflows"][after["spec"]["nodes"]["n1"]["workflow"]["subWorkflowRef"]]
    inner = after["subWorkflows"][outer["nodes"]["n0"]["workflow"]["subWorkflowRef"]]
    assert inner["nodes"]["n0"]["retry"] == {"minAttempts": 5}
    assert after["subWorkflows"]["inner"] == NESTED["subWorkflows"]["inner"]
    assert after["spec"]["nodes"]["n0"] == NESTED["spec"]["nodes"]["n0"]
    assert set(after["subWorkflows"]) == {"outer", "inner", "outer copy:1", "inner copy:1"}


def test_a_map_in_a_subworkflow_and_a_failure_node_have_nested_ids(tailor_of: TailorOf) -> None:
    obj = execution(
        {**graph(n0=uses("sub")), "onFailure": {"id": "fn0", **uses("sub")}},
        sub=graph(n3={"kind": "array", "array": {"SubNodeSpec": {"id": "x", **runs()}}}),
    )
    found = TailoredExecution(obj, tailor_of(f"{LABELS}, when: {{node: fn0.n3}}}}"))
    after = found.tailored()
    assert {node.id for node in found.nodes()} == {"n0.n3", "fn0.n3"}
    key = after["spec"]["onFailure"]["workflow"]["subWorkflowRef"]
    inner = after["subWorkflows"][key]["nodes"]["n3"]["array"]["SubNodeSpec"]
    assert after["tasks"][inner["task"]]["metadata"]["metadata"]["labels"] == {"here": "yes"}
    assert after["subWorkflows"]["sub"] == obj["subWorkflows"]["sub"]


def test_messages_say_the_nested_id(tailor_of: TailorOf) -> None:
    step = "{use: shared_memory, with: {container: nobody}, when: {node: n1.n0.n1}}"
    found = TailoredExecution(NESTED, tailor_of(step))
    found.tailored()
    (warning,) = found.warnings
    assert warning.startswith("task t at node n1.n0.n1: step 'shared_memory': ")
    warned = {node.id: node.warnings for node in found.nodes()}
    assert [node for node, said in warned.items() if said] == ["n1.n0.n1"]


# how many there are ------------------------------------------------------------------------------


def doubling(depth: int) -> Obj:
    """Each subworkflow uses the next one twice."""
    chain = {f"g{i}": graph(n0=uses(f"g{i + 1}"), n1=uses(f"g{i + 1}")) for i in range(depth)}
    return execution(graph(n0=uses("g0")), **chain, **{f"g{depth}": graph(n0=runs())})


def test_uses_are_counted_and_not_listed_where_no_step_tells_them_apart(
    tailor_of: TailorOf,
) -> None:
    obj = doubling(200)
    start = time.process_time()
    execution = TailoredExecution(obj, tailor_of(f"{LABELS}, when: {{task: t}}}}"))
    after = execution.tailored()
    assert time.process_time() - start < 1
    assert execution.instances.count("g200") == 2**200
    assert [node.id for node in execution.nodes()] == [".".join(["n0"] * 202)]
    assert after["tasks"]["t"]["metadata"]["metadata"]["labels"] == {"here": "yes"}
    assert after["subWorkflows"] == obj["subWorkflows"]


def test_more_than_can_be_told_apart_are_refused(tailor_of: TailorOf) -> None:
    tailor = tailor_of(f"{LABELS}, when: {{node: n0}}}}")
    start = time.process_time()
    with pytest.raises(InvalidObjectError, match=rf"more than {MOST} nodes.*asks for `node`"):
        TailoredExecution(doubling(60), tailor).tailored()
    assert time.process_time() - start < 1


def test_as_many_as_can_be_are_told_apart(tailor_of: TailorOf) -> None:
    obj = doubling(8)
    chosen = "n0" + ".n1" * 8 + ".n0"
    after = TailoredExecution(obj, tailor_of(f"{LABELS}, when: {{node: {chosen}}}}}")).tailored()
    assert labelled(after) == {chosen}
    assert len(after["subWorkflows"]) == 1 + 2 * 8  # all but the first, which is used once


def many(nodes: int) -> Obj:
    return execution(graph(**{f"n{number}": runs() for number in range(nodes)}))


def variables(steps: int, each: int) -> Override:
    found = Override()
    for step in range(steps):
        found = found.step("env", set={f"V{step}_{number}": "1" for number in range(each)})
    return found


@pytest.mark.parametrize(
    ("obj", "override", "nodes"),
    [
        (many(3000), variables(32, 20), 3000),
        (doubling(12), variables(32, 20).on(node="n0*"), 2**12),
    ],
    ids=["nodes", "uses"],
)
def test_an_override_that_is_too_much_for_so_many_nodes_is_refused_at_once(
    obj: Obj, override: Override, nodes: int
) -> None:
    tailor = Tailor.built_in()
    compiled = tailor.config.overrides.compile(override)
    start = time.process_time()
    with pytest.raises(OverrideError) as caught:
        TailoredExecution(obj, tailor).tailored(compiled)
    assert time.process_time() - start < 1
    assert str(caught.value) == (
        f"32 steps with 640 values in all are too much for the {nodes} nodes of this execution: "
        f"steps times values times nodes is {32 * 640 * nodes}, at most {MOST_WORK}; say the same "
        "in fewer steps, or in the chain of the config"
    )


@pytest.mark.parametrize(
    ("nodes", "override"),
    [
        (
            10_000,
            Override()
            .step("gpu", type="nvidia-h100-80gb", count=4)
            .step("labels", set={f"l{number}": "a" for number in range(20)})
            .step("env", set={f"V{number}": "a" for number in range(20)}),
        ),
        (2000, sum((variables(1, 4).on(node=f"n{number}") for number in range(32)), Override())),
    ],
    ids=["everywhere", "a step for each of some nodes"],
)
def test_one_for_a_large_workflow_is_not(
    nodes: int, override: Override, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TailoredExecution, "_run", lambda _: set())  # which takes its time
    tailor = Tailor.built_in()
    found = TailoredExecution(many(nodes), tailor)
    found.tailored(tailor.config.overrides.compile(override))


def test_a_subworkflow_that_runs_itself_does_not(tailor_of: TailorOf) -> None:
    obj = execution(graph(n0=uses("a")), a=graph(n0=uses("b"), n1=runs()), b=graph(n0=uses("a")))
    after = TailoredExecution(obj, tailor_of(f"{LABELS}, when: {{node: n0.n1}}}}")).tailored()
    assert after["tasks"][after["subWorkflows"]["a"]["nodes"]["n1"]["task"]]["metadata"] != {}


def test_what_no_node_uses_is_tailored_all_the_same(tailor_of: TailorOf) -> None:
    obj = execution(graph(), unused=graph(n0=uses("below")), below=graph(n0=runs()), other=graph())
    found = TailoredExecution(obj, tailor_of(f"{LABELS}, when: {{node: 'n0.*'}}}}"))
    after = found.tailored()
    assert after["tasks"]["t"]["metadata"]["metadata"]["labels"] == {"here": "yes"}


@pytest.mark.parametrize(
    "junk", [None, [], "x", {"a": None}, {"a": {"nodes": []}}, {"": graph(n0=runs())}]
)
def test_subworkflows_of_any_form_get_an_answer(junk: Any, tailor_of: TailorOf) -> None:
    obj = {**execution(graph(n0=uses("a"), n1=runs())), "subWorkflows": junk}
    found = TailoredExecution(obj, tailor_of(f"{LABELS}, when: {{node: n1}}}}"))
    after = found.tailored()
    assert after["subWorkflows"] == junk
    assert Instances(obj).count("") == 1


# whatever the graphs are -------------------------------------------------------------------------

IDS = ["n0", "n1", "n2"]
PATTERNS = ["n0", "*n0", "*.n1", "n1.*", "n0.n1.*", "*.*.n2", "n[01].n1"]


@st.composite
def executions(draw: st.DrawFn) -> Obj:
    """Graphs that use those after them, each node a task or a use."""
    depth = draw(st.integers(1, 4))
    graphs: list[Obj] = []
    for level in range(depth):
        later = [f"g{number}" for number in range(level + 1, depth)]
        choices = st.sampled_from([*later, "t", "u"])
        nodes = draw(st.dictionaries(st.sampled_from(IDS), choices, min_size=1))
        graphs.append(
            graph(**{name: uses(to) if to in later else runs(to) for name, to in nodes.items()})
        )
    subworkflows = {f"g{number}": each for number, each in enumerate(graphs) if number}
    return execution(graphs[0], {"t": task("t"), "u": task("u")}, **subworkflows)


@given(obj=executions(), patterns=st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3))
def test_every_use_of_every_node_is_as_its_id_says(obj: Obj, patterns: list[str]) -> None:
    tailor = Tailor.built_in()
    before = deep_copy(obj)
    override = tailor.config.overrides.compile(
        Override().step("labels", set={"here": "yes"}).on(node=patterns)
    )
    found = TailoredExecution(obj, tailor)
    after = found.tailored(override)
    ids = set(labels_at(obj))
    matching = {id_ for id_ in ids if any(fnmatch.fnmatchcase(id_, each) for each in patterns)}
    assert labelled(after) == matching
    assert ids <= {node.id for node in found.nodes()}
    assert obj == before
    # Nothing is there that no node runs, and a second pass finds nothing to do.
    assert TailoredExecution(after, tailor).tailored(override) == after
    outcome = found.outcome
    assert outcome is not None
    unused = {node.id for node in found.nodes()} - ids
    if not unused:
        assert bool(outcome.matched) is bool(matching)
