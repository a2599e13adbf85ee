"""The way back is exact."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from flyteidl.core import tasks_pb2
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.plugins.flyte.messages import read_message, write_message
from kubetailor.plugins.flyte.tailoring import tailor_template
from kubetailor.plugins.flyte.undo import UNDO, undo, with_undo
from kubetailor.registry.load import load_config
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import InvalidObjectError, deep_copy, same

keys = st.text("ab/~.é", max_size=3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(keys | st.sampled_from(["config", "container"]), values, max_size=4)


@given(objects, objects)
def test_any_two_objects(author: dict[str, Any], after: dict[str, Any]) -> None:
    for obj in (author, after):
        if not isinstance(obj.get("config"), dict):
            obj.pop("config", None)
    final = with_undo(after, author)
    assert isinstance(final["config"][UNDO], str)
    back, warnings = undo(final)
    assert same(back, author)
    assert not warnings


@given(objects)
def test_what_has_no_way_back_is_the_authors(author: dict[str, Any]) -> None:
    author.pop("config", None)
    back, warnings = undo(author)
    assert back is author
    assert not warnings


def test_a_place_that_changed_since_is_put_back_with_a_warning() -> None:
    author = {"k8sPod": {"podSpec": {"nodeSelector": {"a": "b"}, "priority": 1}}}
    after = {"k8sPod": {"podSpec": {"nodeSelector": {"a": "c"}}}}
    final = with_undo(after, author)
    changed = deep_copy(final)
    changed["k8sPod"]["podSpec"]["nodeSelector"]["a"] = "d"
    changed["k8sPod"]["podSpec"]["priority"] = 2
    back, warnings = undo(changed)
    assert back == author
    assert len(warnings) == 2
    assert "/k8sPod/podSpec/nodeSelector/a" in warnings[0]
    assert "/k8sPod/podSpec/priority" in warnings[1]


def test_what_was_added_beside_stays() -> None:
    final = with_undo({"config": {"a": "1"}, "metadata": {"x": 1}}, {"metadata": {}, "config": {}})
    final["metadata"]["later"] = True
    final["config"]["later"] = "yes"
    assert undo(final) == ({"metadata": {"later": True}, "config": {"later": "yes"}}, [])


def test_defaults_of_flyteadmin_are_replaced_without_a_word() -> None:
    author = {"container": {"resources": {"requests": [{"name": "CPU", "value": "1"}]}}}
    after = {"container": {"resources": {"requests": [{"name": "CPU", "value": "2"}]}}}
    final = with_undo(after, author)
    final["container"]["resources"]["requests"].append({"name": "MEMORY", "value": "1Gi"})
    assert undo(final) == (author, [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nonsense",
        '{"/a": 1}',
        "null",
        # What Python reads and others do not
        '{"/a": {"old": NaN}}',
        '{"/a": {"old": 1e999}}',
        f'{{"/a": {{"old": {"9" * 30}}}}}',
        f'{{"/a": {{"old": {"9" * 5000}}}}}',
        '{"/a": {"old": "\\ud800"}}',
        '{"/\\ud800": {"old": 1}}',
        # No places of a map, or more than there could be
        '{"": {"old": {}}}',
        '{"a/b": {"old": 1}}',
        f'{{"{"/a" * 101}": {{"old": 1}}}}',
        f'{{"/{"a" * 5000}": {{"old": 1}}}}',
        f'{{"/a": {{"old": {"[" * 200}{"]" * 200}}}}}',
        "[" * 100_000,
        # One within another: each of many would be compared with all of a large object
        '{"/a": {"old": {}}, "/a/b": {"old": 1}}',
        '{"/a": {}, "/a-b": {}, "/a/b/c": {}}',
        '{"/a~1b": {}, "/a~1b/c": {}}',
    ],
)
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(InvalidObjectError, match=r"kubetailor\.dev"):
        undo({"config": {UNDO: text}})


@pytest.mark.parametrize("place", ["/id", "/id/project", "/id/name", "/id/a/b", "/type"])
def test_it_leads_nowhere_where_no_chain_goes(place: str) -> None:
    """With the id of another project's task, its cache would be written."""
    text = json.dumps({place: {"old": "another"}})
    with pytest.raises(InvalidObjectError, match="which no chain does"):
        undo({"config": {UNDO: text}, "id": {"project": "own"}})


def test_a_neighbour_of_such_a_place_is_none() -> None:
    text = json.dumps({"/ids": {}, "/types": {}})
    assert undo({"config": {UNDO: text}, "ids": 1, "types": 2})[0]["config"] == {UNDO: text}


def test_the_text_is_the_same_whatever_the_order_of_maps() -> None:
    first = with_undo(
        {"a": {"x": 1, "y": {"p": 1, "q": 2}}}, {"a": {"x": 2, "z": {"r": 1, "s": 2}}}
    )
    second = with_undo(
        {"a": {"y": {"q": 2, "p": 1}, "x": 1}}, {"a": {"z": {"s": 2, "r": 1}, "x": 2}}
    )
    assert first["config"][UNDO] == second["config"][UNDO]


# chains over task templates ----------------------------------------------------------------------

STEPS: dict[str, dict[str, Any]] = {
    "tolerations": {"add": [{"key": "a", "operator": "Exists"}]},
    "node_selector": {"set": {"a": "b"}, "remove": ["x"]},
    "labels": {"set": {"team": "speech"}, "remove": ["old"]},
    "annotations": {"set": {"note": ""}},
    "env": {"set": {"NEW": "", "A": "2"}},
    "image": {"image": "example.com/other:2"},
    "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}},
    "priority_class": {"name": "high"},
    "shared_memory": {"size_limit": "1Gi"},
    "kueue": {"queue": "q"},
    "patch": {"pod": {"hostNetwork": False, "terminationGracePeriodSeconds": 3.0}},
}


@st.composite
def chains(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(STEPS)), max_size=6, unique=True))
    layers: dict[str, list[Any]] = {"defaults": [], "steps": [], "enforce": []}
    for name in names:
        layer = draw(st.sampled_from(["defaults", "steps", "enforce"]))
        layers[layer].append({"use": name, "with": STEPS[name], "optional": True})
    if draw(st.booleans()):
        layers["steps"].append(
            {"use": "labels", "name": "late", "with": {"set": {"l": "l"}}, "when": {"node": "n"}}
        )
    config = {"phases": ["serialize", "launch"], "chains": {"default": layers}}
    return json.dumps(config)


maps = st.dictionaries(
    st.sampled_from(["team", "old", "x"]), st.sampled_from(["1", ""]), max_size=2
)
metadata = st.fixed_dictionaries({}, optional={"labels": maps, "annotations": maps})
env = st.lists(
    st.sampled_from(["A", "B", "NEW"]).map(lambda name: {"key": name, "value": "1"}),
    max_size=2,
    unique_by=lambda entry: entry["key"],
)
entries = st.lists(
    st.sampled_from([{"name": "CPU", "value": "1"}, {"name": "MEMORY", "value": "1Gi"}]),
    max_size=2,
    unique_by=lambda entry: entry["name"],
)
containers = st.fixed_dictionaries(
    {
        "image": st.just("i:1"),
        "resources": st.fixed_dictionaries({}, optional={"requests": entries}),
    },
    optional={"command": st.just(["a"]), "args": st.just(["b", ""]), "env": env},
)
specs = st.fixed_dictionaries(
    {"containers": st.just([{"name": "main", "image": "i", "env": [{"name": "A", "value": ""}]}])},
    optional={
        "tolerations": st.just([{"key": "a", "operator": "Exists"}]),
        "nodeSelector": maps,
        "hostNetwork": st.booleans(),
        "terminationGracePeriodSeconds": st.integers(0, 9),
        "unknownField": st.just({"deep": [1, 2.5, None, {}]}),
    },
)
pods = st.fixed_dictionaries({"podSpec": specs}, optional={"metadata": metadata})
ids = st.fixed_dictionaries({"name": st.just("m.t"), "resourceType": st.just("TASK")})
group = st.fixed_dictionaries({}, optional={"k8sPod": pods, "rayStartParams": maps})
ray = st.fixed_dictionaries(
    {
        "rayCluster": st.fixed_dictionaries(
            {
                "headGroupSpec": group,
                "workerGroupSpec": st.lists(
                    st.builds(lambda spec: {"groupName": "g", "replicas": 2, **spec}, group),
                    max_size=2,
                ),
            }
        )
    }
)
spark = st.fixed_dictionaries(
    {"mainApplicationFile": st.just("local:///app.py")},
    optional={"driverPod": pods, "executorPod": pods, "sparkConf": maps},
)
customs: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "python-task": st.just({}),
    "pytorch": st.just({"workerReplicas": {"replicas": 2, "image": "w:1"}}),
    "mpi": st.just({}),
    "container_array": st.just({"parallelism": 2}),
    "ray": ray,
    "spark": spark,
}
kinds = st.sampled_from(sorted(customs)).flatmap(
    lambda kind: customs[kind].map(
        lambda custom: {"type": kind, **({"custom": custom} if custom else {})}
    )
)
heads = st.fixed_dictionaries(
    {
        "id": ids,
        "metadata": st.fixed_dictionaries(
            {"retries": st.just({}), "generatesDeck": st.booleans()},
            optional={"metadata": metadata},
        ),
    },
    optional={"taskTypeVersion": st.just(1), "config": st.sampled_from([{"a": "b"}])},
)
templates = st.tuples(
    st.builds(lambda head, kind: {**head, **kind}, heads, kinds),
    containers.map(lambda it: {"container": it})
    | pods.map(lambda it: {"k8sPod": it, "config": {"primary_container_name": "main"}}),
).map(lambda parts: {**parts[0], **parts[1]})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("undo") / "kubetailor.yaml"


@given(template=templates, chain=chains())
def test_any_template_and_chain(path: Any, template: dict[str, Any], chain: str) -> None:
    path.write_text(chain)
    tailor = Tailor(load_config(path, entry_points=False))
    given_ = deep_copy(template)
    outcome = tailor_template(tailor, template)
    assert template == given_, "the author's was changed"
    back, warnings = undo(outcome.after)
    assert same(back, template)
    assert not warnings
    # Once more gives the same, and starts from the author's.
    again = tailor_template(tailor, outcome.after)
    assert same(again.after, outcome.after)
    assert same(again.author, template)
    # And so it is once protobuf has had it.
    message = tasks_pb2.TaskTemplate()
    write_message(message, {}, template)
    author = read_message(message)
    write_message(message, author, tailor_template(tailor, author).after)
    message = tasks_pb2.TaskTemplate.FromString(message.SerializeToString())
    back, warnings = undo(read_message(message))
    assert back == author
    assert not warnings


def test_the_zoo(flyte: Any, zoo: ModuleType, configure: Any) -> None:
    path = configure(flyte.CONFIG)
    before = flyte.templates(flyte.serialize(zoo.everything))
    path.unlink()
    authors = flyte.templates(flyte.serialize(zoo.everything))
    assert before.keys() == authors.keys()
    for name, template in before.items():
        read = read_message(template)
        assert UNDO in read["config"], name
        back, warnings = undo(read)
        assert back == read_message(authors[name])
        assert not warnings
