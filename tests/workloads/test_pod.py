"""The verbs of pods, containers and workloads, and the merge rules that they carry."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kubetailor.workloads import (
    BUILTIN_KINDS,
    CannotChangeError,
    ConflictError,
    InvalidObjectError,
    KindTable,
    Pod,
    Workload,
)

KINDS = KindTable(BUILTIN_KINDS)


def workload_of(obj: Any) -> Workload:
    kind = KINDS.of(obj)
    assert kind is not None
    return Workload(obj, kind)


def pod_with(spec: Any = None, *containers: Any, metadata: Any = None) -> Pod:
    entries = list(containers) or [{"name": "main", "image": "img"}]
    obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata if metadata is not None else {"name": "p"},
        "spec": {"containers": entries, **(spec or {})},
    }
    (pod,) = workload_of(obj).pods()
    return pod


def spec_of(pod: Pod) -> Any:
    return pod.workload.commit()["spec"]


# ------------------------------------------------------------------------------------------- pairs

PAIRS: list[tuple[str, Callable[[Pod], None], Callable[[Pod], None]]] = [
    ("tolerate", lambda p: p.tolerate("k", effect="NoSchedule"), lambda p: p.untolerate("k")),
    ("select_node", lambda p: p.select_node("k", "v"), lambda p: p.deselect_node("k")),
    ("require_node", lambda p: p.require_node("k", "In", ["v"]), lambda p: p.unrequire_node("k")),
    (
        "spread",
        lambda p: p.spread(
            {"topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}
        ),
        lambda p: p.unspread("k"),
    ),
    ("label", lambda p: p.label("k", "v"), lambda p: p.unlabel("k")),
    ("annotate", lambda p: p.annotate("k", "v"), lambda p: p.unannotate("k")),
    ("set_env", lambda p: p.set_env("K", "v"), lambda p: p.remove_env("K")),
    ("mount", lambda p: p.mount("v", "/k"), lambda p: p.unmount("/k/")),
    (
        "add_mount",
        lambda p: p.primary.add_mount({"name": "v", "mountPath": "/k", "subPathExpr": "$(A)"}),
        lambda p: p.unmount("/k"),
    ),
    ("add_volume", lambda p: p.add_volume("v", {"emptyDir": {}}), lambda p: p.remove_volume("v")),
    (
        "add_container",
        lambda p: p.add_container({"name": "c", "image": "i"}),
        lambda p: p.remove_container("c"),
    ),
    (
        "add_container, init",
        lambda p: p.add_container({"name": "c", "image": "i"}, init=True),
        lambda p: p.remove_container("c"),
    ),
    ("set_field", lambda p: p.set_field("k", 1), lambda p: p.set_field("k", None)),
    ("workload.label", lambda p: p.workload.label("k", "v"), lambda p: p.workload.unlabel("k")),
    (
        "workload.annotate",
        lambda p: p.workload.annotate("k", "v"),
        lambda p: p.workload.unannotate("k"),
    ),
]

FULL: dict[str, Any] = {
    "tolerations": [{"key": "own", "operator": "Exists"}],
    "nodeSelector": {"own": "x"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "own", "operator": "Exists"}]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                ]
            }
        }
    },
    "topologySpreadConstraints": [{"topologyKey": "own", "whenUnsatisfiable": "ScheduleAnyway"}],
    "volumes": [{"name": "own", "emptyDir": {}}],
}
CONTAINER: dict[str, Any] = {
    "name": "main",
    "env": [{"name": "OWN", "value": "x"}],
    "volumeMounts": [{"name": "own", "mountPath": "/own"}],
}
PODS = {
    "bare": pod_with,
    "full": lambda: pod_with(
        copy.deepcopy(FULL),
        copy.deepcopy(CONTAINER),
        metadata={"labels": {"own": "x"}, "annotations": {"own": "x"}},
    ),
}


@pytest.mark.parametrize("start", PODS)
@pytest.mark.parametrize(("name", "do", "undo"), PAIRS, ids=[name for name, _, _ in PAIRS])
def test_verbs_in_pairs(name: str, do: Any, undo: Any, start: str) -> None:
    pod = PODS[start]()
    before = copy.deepcopy(pod.workload.commit())
    undo(pod)
    assert pod.workload.commit() == before, "to take off what is not there changes nothing"
    do(pod)
    once = copy.deepcopy(pod.workload.commit())
    assert once != before
    do(pod)
    assert pod.workload.commit() == once, "a second time changes nothing"
    undo(pod)
    assert pod.workload.commit() == before, "and it goes without a trace"


@pytest.mark.parametrize("start", PODS)
@pytest.mark.parametrize(("name", "do", "undo"), PAIRS, ids=[name for name, _, _ in PAIRS])
def test_a_verb_that_finds_nothing_to_do_makes_no_new_version(
    name: str, do: Any, undo: Any, start: str
) -> None:
    pod = PODS[start]()
    do(pod)
    version = pod.workload.commit()
    do(pod)
    assert pod.workload.commit() is version


def test_reads_give_copies() -> None:
    pod = PODS["full"]()
    before = copy.deepcopy(pod.workload.commit())
    pod.tolerations.clear()
    pod.tolerations[0]["key"] = "x"
    pod.node_selector["x"] = "y"
    pod.labels["x"] = "y"
    pod.annotations["x"] = "y"
    pod.volumes[0]["name"] = "x"
    pod.get("affinity")["nodeAffinity"] = None
    pod.primary.env[0]["value"] = "other"
    pod.primary.resources["limits"] = {}
    pod.workload.get("metadata")["labels"] = None
    pod.workload.labels["x"] = "y"
    assert pod.workload.commit() == before


# -------------------------------------------------------------------------------------- tolerations


def test_a_toleration_without_a_value_exists() -> None:
    pod = pod_with()
    pod.tolerate("a")
    pod.tolerate("b", value="x", effect="NoExecute", toleration_seconds=5)
    pod.tolerate()
    assert pod.tolerations == [
        {"key": "a", "operator": "Exists"},
        {
            "key": "b",
            "operator": "Equal",
            "value": "x",
            "effect": "NoExecute",
            "tolerationSeconds": 5,
        },
        {"operator": "Exists"},
    ]


@pytest.mark.parametrize(
    ("match", "kept"),
    [
        ({"key": "a"}, ["b"]),
        ({"key": "a", "effect": "NoExecute"}, ["a", "b"]),
        ({"operator": "Exists"}, ["b"]),
        ({"value": "v"}, ["a"]),
        ({"operator": "Equal"}, ["a"]),
        ({"key": "c"}, ["a", "b"]),
    ],
)
def test_untolerate_takes_what_agrees_in_all_that_is_given(match: Any, kept: list[str]) -> None:
    pod = pod_with(
        {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "v"}]}
    )
    pod.untolerate(**match)
    assert [entry["key"] for entry in pod.tolerations] == kept


def test_a_topology_spread_constraint_takes_the_place_of_the_one_with_its_identity() -> None:
    def of(key: str, when: str = "DoNotSchedule", skew: int = 1) -> dict[str, Any]:
        return {"topologyKey": key, "whenUnsatisfiable": when, "maxSkew": skew}

    pod = pod_with({"topologySpreadConstraints": [{**of("a"), "minDomains": 2}, of("b"), None]})
    pod.spread(of("a", skew=5))
    pod.spread(of("a", "ScheduleAnyway"))
    found = [of("a", skew=5), of("b"), None, of("a", "ScheduleAnyway")]
    assert spec_of(pod)["topologySpreadConstraints"] == found
    given = of("c")
    pod.spread(given)
    given["maxSkew"] = 9
    assert spec_of(pod)["topologySpreadConstraints"][-1] == of("c")
    pod.unspread("a", when_unsatisfiable="ScheduleAnyway")
    pod.unspread(when_unsatisfiable="ScheduleAnyway")
    assert spec_of(pod)["topologySpreadConstraints"] == [of("a", skew=5), of("b"), None, of("c")]


def test_the_toleration_that_is_there_is_kept_and_a_difference_is_told() -> None:
    there = {"key": "t", "value": "v", "effect": "NoExecute", "tolerationSeconds": 300}
    pod = pod_with({"tolerations": [there]})
    pod.tolerate("t", value="v", effect="NoExecute", toleration_seconds=60)
    assert pod.tolerations == [there]
    (note,) = pod.workload.notes
    assert "tolerationSeconds 300" in note.text


# ------------------------------------------------------------------------------------- node affinity


def test_a_requirement_goes_into_every_term() -> None:
    pod = PODS["full"]()
    pod.require_node("pool", "In", ["a"])
    terms = pod.get(
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    )
    wanted = {"key": "pool", "operator": "In", "values": ["a"]}
    assert [term["matchExpressions"][-1] for term in terms] == [wanted, wanted]
    pod.require_node("pool", "In", ["b"])
    assert pod.get(
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    )[1]["matchExpressions"] == [{"key": "pool", "operator": "In", "values": ["b"]}]


def test_other_affinity_stays_when_a_requirement_goes() -> None:
    pod = pod_with({"affinity": {"podAntiAffinity": {"x": []}}})
    pod.require_node("k", "Exists")
    pod.unrequire_node("k")
    assert pod.get("affinity") == {"podAntiAffinity": {"x": []}}


def test_unrequire_takes_one_operator_or_all() -> None:
    pod = pod_with()
    pod.require_node("k", "In", ["a"])
    pod.require_node("k", "NotIn", ["b"])
    pod.unrequire_node("k", "In")
    assert "NotIn" in str(spec_of(pod))
    pod.unrequire_node("k")
    assert "affinity" not in spec_of(pod)


# ---------------------------------------------------------------------------------------- containers


@pytest.mark.parametrize(
    ("names", "metadata", "primary"),
    [
        (["only"], {}, "only"),
        (["istio-proxy", "train"], {}, "train"),
        (["a", "main"], {}, "main"),
        (["a", "primary", "main"], {}, "primary"),
        (["a", "b"], {"annotations": {"primary_container_name": "b"}}, "b"),
        (["a", "b"], {"annotations": {"kubectl.kubernetes.io/default-container": "a"}}, "a"),
    ],
)
def test_the_primary_container(names: list[str], metadata: Any, primary: str) -> None:
    pod = pod_with(None, *({"name": name} for name in names), metadata=metadata)
    assert pod.primary.name == primary


def test_a_primary_container_that_cannot_be_told_is_asked_for() -> None:
    pod = pod_with(None, {"name": "a"}, {"name": "b"})
    with pytest.raises(
        CannotChangeError, match=r"primary container of a, b\?.*primary_container_name"
    ):
        pod.set_env("A", "1")


def test_a_container_by_name_is_an_init_container_too() -> None:
    pod = pod_with({"initContainers": [{"name": "warm"}]})
    pod.container("warm").set_env("A", "1")
    assert spec_of(pod)["initContainers"] == [
        {"name": "warm", "env": [{"name": "A", "value": "1"}]}
    ]
    with pytest.raises(CannotChangeError, match="no container 'x'; the containers are main, warm"):
        pod.container("x")


# ----------------------------------------------------------------------------------------------- env


@pytest.mark.parametrize(
    ("env", "name", "value", "expected"),
    [
        ("A=1 B=2", "A", "3", "A=3 B=2"),
        ("A=1", "B", "2", "A=1 B=2"),
        ("F=1 U=$(N) V=$(N)", "N", "x", "F=1 N=x U=$(N) V=$(N)"),
        ("R=$$(N)", "N", "x", "R=$$(N) N=x"),
        ("A=1 O=x A=2", "A", "3", "A=3 O=x"),
        ("", "E", "", "E="),
    ],
)
def test_env_keeps_its_order(env: str, name: str, value: str, expected: str) -> None:
    def entries(text: str) -> list[Any]:
        pairs = (part.split("=", 1) for part in text.split())
        return [{"name": key, "value": item} for key, item in pairs]

    pod = pod_with(None, {"name": "main", "env": entries(env)})
    pod.set_env(name, value)
    assert pod.primary.env == entries(expected)


def test_an_env_entry_is_a_union() -> None:
    source = {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}
    pod = pod_with(None, {"name": "main", "env": [{"name": "PW", "value": "plain"}]})
    pod.set_env("PW", value_from=source)
    assert pod.primary.env == [{"name": "PW", "valueFrom": source}]
    pod.set_env("PW", "plain")
    assert pod.primary.env == [{"name": "PW", "value": "plain"}]


def test_duplicates_with_a_user_between_them_are_refused() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "U", "value": "$(A)"},
        {"name": "A", "value": "2"},
    ]
    pod = pod_with(None, {"name": "main", "env": env})
    with pytest.raises(ConflictError, match="A is there 2 times and U between them"):
        pod.set_env("A", "3")


def test_duplicates_are_collapsed_with_a_warning() -> None:
    pod = pod_with(None, {"name": "main", "env": [{"name": "A", "value": "1"}] * 2})
    pod.set_env("A", "1")
    assert pod.primary.env == [{"name": "A", "value": "1"}]
    assert [note.text for note in pod.workload.notes] == ["duplicate env A: one entry is kept"]


# -------------------------------------------------------------------------------- mounts and volumes


def test_a_mount_is_known_by_its_path_in_normal_form() -> None:
    mount = {"name": "v", "mountPath": "/dev/shm/", "mountPropagation": "None"}
    pod = pod_with(None, {"name": "main", "volumeMounts": [mount]})
    pod.mount("v", "/dev/shm")
    assert spec_of(pod)["containers"][0]["volumeMounts"] == [mount]
    assert pod.primary.mounted("/dev//shm") == "v"


@pytest.mark.parametrize(
    "other", [{"volume": "w"}, {"volume": "v", "sub_path": "x"}, {"volume": "v", "read_only": True}]
)
def test_something_else_at_the_path_is_a_conflict_unless_replace_is_asked_for(other: Any) -> None:
    pod = pod_with()
    pod.mount("v", "/data")
    with pytest.raises(ConflictError, match="/data is the mount of volume 'v' already"):
        pod.mount(path="/data", **other)
    pod.mount(path="/data", **other, replace=True)
    (mount,) = spec_of(pod)["containers"][0]["volumeMounts"]
    assert mount != {"name": "v", "mountPath": "/data"}


def test_a_volume_of_the_name_with_another_source_is_a_conflict() -> None:
    pod = pod_with()
    pod.add_volume("v", {"emptyDir": {}})
    with pytest.raises(ConflictError, match="'v' is there with another source"):
        pod.add_volume("v", {"hostPath": {"path": "/"}})
    pod.add_volume("v", {"hostPath": {"path": "/"}}, replace=True)
    assert pod.volumes == [{"name": "v", "hostPath": {"path": "/"}}], "a union is replaced whole"
    with pytest.raises(InvalidObjectError, match="volume 'V_1'"):
        pod.add_volume("V_1", {})


def test_a_volume_goes_with_its_mounts_in_every_container() -> None:
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]
    pod = pod_with(
        {
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
            "initContainers": [{"name": "init", "volumeMounts": list(mounts)}],
        },
        {"name": "main", "volumeMounts": list(mounts)},
        {"name": "side", "volumeMounts": [mounts[0], {"name": "v", "mountPath": "/again"}]},
    )
    pod.remove_volume("v")
    spec = spec_of(pod)
    assert spec["volumes"] == [{"name": "w", "emptyDir": {}}]
    assert spec["initContainers"] == [{"name": "init", "volumeMounts": [mounts[1]]}]
    assert spec["containers"] == [{"name": "main", "volumeMounts": [mounts[1]]}, {"name": "side"}]


# ----------------------------------------------------------------------------------------- resources


def resources(requests: Any = None, limits: Any = None) -> Any:
    found = {"requests": requests, "limits": limits}
    return {"name": "main", "resources": {k: v for k, v in found.items() if v is not None}}


@pytest.mark.parametrize(
    ("before", "verb", "after"),
    [
        pytest.param(({}, {}), {"requests": {"cpu": 1}}, ({"cpu": "1"}, {}), id="a number"),
        pytest.param(
            ({"cpu": "0.5"}, None), {"requests": {"cpu": "500m"}}, ({"cpu": "0.5"}, None), id="same"
        ),
        pytest.param(
            ({"cpu": "1", "x": "2"}, None),
            {"requests": {"cpu": None}},
            ({"x": "2"}, None),
            id="none",
        ),
        pytest.param(
            (None, {"nvidia.com/gpu": 1}),
            {"limits": {"nvidia.com/gpu": 4}},
            (None, {"nvidia.com/gpu": "4"}),
            id="a limit alone stays alone",
        ),
        pytest.param(
            ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}),
            {"limits": {"nvidia.com/gpu": 4}},
            ({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "4"}),
            id="both",
        ),
        pytest.param(
            (None, None),
            {"requests": {"nvidia.com/gpu": 4}},
            ({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "4"}),
            id="a request needs its limit",
        ),
        pytest.param(
            ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1", "cpu": "1"}),
            {"limits": {"nvidia.com/gpu": None}},
            (None, {"cpu": "1"}),
            id="both go",
        ),
        pytest.param(
            ({"cpu": "1"}, {"cpu": "2"}),
            {"requests": {"cpu": "3"}, "raise_limits": True},
            ({"cpu": "3"}, {"cpu": "3"}),
            id="raised",
        ),
        pytest.param(
            ({"cpu": "1"}, {"cpu": "4"}),
            {"requests": {"cpu": "3"}, "raise_limits": True},
            ({"cpu": "3"}, {"cpu": "4"}),
            id="not lowered",
        ),
    ],
)
def test_requests_and_limits(before: Any, verb: Any, after: Any) -> None:
    pod = pod_with(None, resources(*before))
    pod.set_resources(**verb)
    assert spec_of(pod)["containers"] == [resources(*after)]
    version = pod.workload.commit()
    pod.set_resources(**verb)
    assert pod.workload.commit() is version


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nvidia.com/gpu", "0.5", "nvidia.com/gpu must be a whole number, found 0.5"),
        ("memory", "1g", "write 1G or 1Gi"),
        ("cpu", True, "True is not a quantity"),
    ],
)
def test_quantities_that_kubernetes_refuses(name: str, value: Any, message: str) -> None:
    pod = pod_with()
    with pytest.raises(InvalidObjectError, match=message) as caught:
        pod.set_resources(limits={name: value})
    assert caught.value.field.startswith("spec.containers[0].resources.limits")


def test_milli_bytes_are_told() -> None:
    pod = pod_with()
    pod.set_resources(limits={"memory": "100m", "cpu": "100m"})
    assert [note.text for note in pod.workload.notes] == ["memory 100m is in milli-bytes"]


@pytest.mark.parametrize(
    ("resource", "amount", "asks"),
    [
        ("nvidia.com/gpu", "1", True),
        ("nvidia.com/gpu", 0, False),
        ("x", "1", False),
        ("b", "x", False),
    ],
)
def test_asking_for_a_resource_is_asking_for_more_than_none(
    resource: str, amount: Any, asks: bool
) -> None:
    pod = pod_with(None, {"name": "a"}, resources({"nvidia.com/gpu": amount, "b": "x"}))
    assert pod.requests(resource) is asks


# ----------------------------------------------------------------------------------- all else


def test_edit_is_for_what_no_verb_does() -> None:
    pod = pod_with({"tolerations": [{"key": "a"}], "securityContext": {"sysctls": [{"name": "x"}]}})
    before = copy.deepcopy(pod.workload.commit())
    pod.edit("tolerations").append({"key": "b"})
    pod.edit("securityContext")["sysctls"][0]["name"] = "y"
    pod.edit("dnsConfig", "options", empty=list).append({"name": "z"})
    pod.primary.edit("securityContext")["privileged"] = False
    pod.workload.edit("metadata")["finalizers"] = []
    assert before == {
        **before,
        "spec": {
            **before["spec"],
            "tolerations": [{"key": "a"}],
            "securityContext": {"sysctls": [{"name": "x"}]},
        },
    }
    assert spec_of(pod) == {
        "containers": [{"name": "main", "image": "img", "securityContext": {"privileged": False}}],
        "tolerations": [{"key": "a"}, {"key": "b"}],
        "securityContext": {"sysctls": [{"name": "y"}]},
        "dnsConfig": {"options": [{"name": "z"}]},
    }


@pytest.mark.parametrize(
    "verb",
    [
        lambda w: w.label("execution-id", "x"),
        lambda w: w.unlabel("execution-id"),
        lambda w: w.pods()[0].label("execution-id", "x"),
        lambda w: w.pods()[0].unlabel("execution-id"),
    ],
)
def test_flytes_own_labels_are_neither_written_nor_removed(verb: Any) -> None:
    pod = pod_with(metadata={"labels": {"execution-id": "e"}})
    with pytest.raises(
        InvalidObjectError, match=r"metadata.labels: label 'execution-id' is Flyte's own"
    ):
        verb(pod.workload)
    pod.workload.annotate("execution-id", "x")  # an annotation of the name is nobody's


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (lambda p: p.label("a b", "x"), r"metadata.labels: key 'a b': the name must consist"),
        (lambda p: p.label("a", "x y"), r"metadata.labels: label a: the value 'x y' must consist"),
        (
            lambda p: p.annotate("a", 1),
            r"metadata.annotations: annotation a: the value must be a string",
        ),
        (lambda p: p.select_node("a", "x y"), r"spec.nodeSelector: label a: the value 'x y'"),
        (lambda p: p.set_env("A=B", "x"), r"env name 'A=B'"),
    ],
)
def test_what_kubernetes_refuses_is_refused_at_once(verb: Any, message: str) -> None:
    with pytest.raises(InvalidObjectError, match=message):
        verb(pod_with())


def test_two_writers_of_one_scalar_are_told_and_one_that_was_taken_back_is_not() -> None:
    pod = pod_with({"nodeSelector": {"zone": "author"}})
    workload = pod.workload
    before = workload.commit()
    workload.writer = ("steps", "first", 1)
    pod.select_node("zone", "a")
    workload.reset(before)
    (pod,) = workload.pods()
    workload.writer = ("steps", "second", 2)
    pod.select_node("zone", "b")
    assert workload.notes == [], "the first one's value is not there"
    workload.writer = ("steps", "third", 3)
    pod.select_node("zone", "c")
    workload.writer = ("enforce", "fourth", 4)
    pod.select_node("zone", "d")
    (note,) = workload.notes
    assert note.text == "zone: step 'third' sets 'c', where 'second' set 'b'; the later one wins"
    assert note.field == "spec.nodeSelector.zone"
