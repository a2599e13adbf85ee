"""There and back: another accelerator and the old one again give the pod that there was."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kubetailor.registry import Accelerator, Catalogue, Chain, Step, TaskContext
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.selectors import ALWAYS
from kubetailor.registry.transformer import Transformer, options_of
from kubetailor.transformers import gpu
from kubetailor.workloads import BUILTIN_KINDS, KindTable, parse_quantity
from kubetailor.workloads.identity import toleration_key

KINDS = KindTable(BUILTIN_KINDS)
FLYTE = FlyteSettings("flyte/device", "flyte/partition")
KEYS = ["a/type", "b/machine", "c/pool", "flyte/device"]
TAINTS = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in ("x", "y", "z")]
RESOURCES = ["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb"]


def entries(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Entries whose values are their own, of keys that they share with others."""
    value = st.sampled_from([name, f"{name}-{{count}}g"])
    return st.fixed_dictionaries(
        {
            "resource": st.sampled_from(RESOURCES),
            "node_selector": st.dictionaries(st.sampled_from(KEYS), value, min_size=1),
            "tolerations": st.lists(st.sampled_from(TAINTS), unique_by=toleration_key),
            "node_requirements": st.lists(
                st.builds(
                    lambda key, value: {"key": key, "operator": "In", "values": [value]},
                    st.sampled_from(["d/class", "e/rack"]),
                    value,
                ),
                unique_by=toleration_key,
                max_size=2,
            ),
            "runtime_class": st.sampled_from([None, f"rc-{name}"]),
            "device": st.sampled_from([None, name]),
        }
    )


CATALOGUES = st.builds(
    lambda **given: Catalogue(given, FLYTE), A=entries("A"), B=entries("B"), C=entries("C")
)
CLASSLESS = st.builds(
    lambda **given: Catalogue(
        {name: {**entry, "runtime_class": None} for name, entry in given.items()}, FLYTE
    ),
    A=entries("A"),
    B=entries("B"),
)
"""For operators that have no place for a runtime class."""

FOREIGN = st.sampled_from(
    [
        {"key": "zone", "operator": "In", "values": ["a"]},
        {"key": "zone", "operator": "NotIn", "values": ["b"]},
        {"key": "disk", "operator": "Exists"},
    ]
)


@st.composite
def pods(draw: st.DrawFn, new: Accelerator | None = None) -> dict[str, Any]:
    """Pods that ask for a GPU; with `new`, placed by it by requirements in some terms."""
    placed: list[dict[str, Any]] = []
    if new is not None:
        placed = [{"key": k, "operator": "In", "values": [v]} for k, v in new.node_selector.items()]
    expressions = st.lists(FOREIGN, unique_by=repr, min_size=1)
    terms = draw(
        st.lists(
            st.builds(
                lambda own, by: {"matchExpressions": [*own, *(placed if by else [])]},
                expressions,
                st.booleans(),
            ),
            max_size=3,
        )
    )
    extra = draw(st.lists(st.sampled_from(TAINTS), unique_by=toleration_key))
    resource = new.resource if new is not None else draw(st.sampled_from(RESOURCES))
    count = draw(st.sampled_from(["1", 2, "4", "8"]))
    limits = {"cpu": "4", resource: count}
    resources: dict[str, Any] = {"limits": limits}
    if draw(st.booleans()):
        resources["requests"] = {resource: count, "memory": "1Gi"}
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "img", "resources": resources}],
        "futureField": {"kept": [1, None]},
    }
    if draw(st.booleans()):
        spec["nodeSelector"] = {"disk": "ssd"}
    if terms:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    if extra:
        spec["tolerations"] = extra
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def run(obj: dict[str, Any], catalogue: Catalogue, **given: Any) -> dict[str, Any]:
    options = options_of(gpu)
    assert options is not None
    transformer = Transformer.of(gpu, name="gpu", plugin="kubetailor", options=options)
    arguments = read_parameters(transformer, given, catalogue)
    chain = Chain(
        "test", (Step("gpu", "enforce", transformer, arguments, ALWAYS),), catalogue=catalogue
    )
    kind = KINDS.of(obj)
    assert kind is not None
    return chain.run(obj, kind, TaskContext("admit")).after


@dataclass(frozen=True)
class Host:
    """A kind of workload that holds the drawn pod.

    Attributes:
        wrap: the pod, and its number of GPUs -> the workload.
        spec: the workload -> where the pod's fields are.
        classes: whether it has a runtime class.
    """

    wrap: Callable[[dict[str, Any], int], dict[str, Any]]
    spec: Callable[[dict[str, Any]], dict[str, Any]]
    classes: bool = True


def job(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": spec}


def without_gpus(name: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, "image": "img"}], "nodeSelector": {"a": "b"}}}


def pytorch_job(pod: dict[str, Any], count: int) -> dict[str, Any]:
    containers = [{**container, "name": "pytorch"} for container in pod["spec"]["containers"]]
    replicas = {
        "Master": {"replicas": 1, "template": without_gpus("pytorch")},
        "Worker": {
            "replicas": 2,
            "template": {"spec": {**pod["spec"], "containers": containers}},
        },
    }
    return job("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})


def ray_job(pod: dict[str, Any], count: int) -> dict[str, Any]:
    group = {
        "groupName": "gpu",
        "rayStartParams": {"num-gpus": str(count)},
        "template": {"spec": pod["spec"]},
    }
    cluster = {"headGroupSpec": {"template": without_gpus("ray-head")}, "workerGroupSpecs": [group]}
    return job("ray.io/v1", "RayJob", {"rayClusterSpec": cluster})


def spark_application(pod: dict[str, Any], count: int) -> dict[str, Any]:
    spec = dict(pod["spec"])
    limits = spec.pop("containers")[0]["resources"]["limits"]
    del spec["futureField"]  # its operator reads only what it knows
    (resource,) = limits.keys() - {"cpu"}
    spec |= {"cores": 4, "memory": "8g", "gpu": {"name": resource, "quantity": count}}
    return job("sparkoperator.k8s.io/v1beta2", "SparkApplication", {"driver": {}, "executor": spec})


def task_template(pod: dict[str, Any], count: int) -> dict[str, Any]:
    return {
        "id": {"name": "t"},
        "type": "python-task",
        "metadata": {},
        "k8sPod": {"metadata": {}, "podSpec": pod["spec"]},
        "config": {"primary_container_name": "main"},
    }


HOSTS = {
    "Pod": Host(lambda pod, count: pod, lambda obj: obj["spec"]),
    "PyTorchJob": Host(
        pytorch_job, lambda obj: obj["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    ),
    "RayJob": Host(
        ray_job,
        lambda obj: obj["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"],
    ),
    "SparkApplication": Host(spark_application, lambda obj: obj["spec"]["executor"], classes=False),
    "TaskTemplate": Host(task_template, lambda obj: obj["k8sPod"]["podSpec"]),
}


def terms_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    found = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[dict[str, Any]] = found.get("nodeSelectorTerms") or []
    return terms


def canonical(obj: dict[str, Any], host: Host) -> dict[str, Any]:
    """Quantities by value, tolerations and match expressions in any order."""
    found = copy.deepcopy(obj)
    spec = host.spec(found)
    for container in spec.get("containers", ()):
        for part in container["resources"].values():
            part.update({name: parse_quantity(value) for name, value in part.items()})
    spec.get("tolerations", []).sort(key=toleration_key)
    for term in terms_of(spec):
        term["matchExpressions"].sort(key=lambda e: (e["key"], e["operator"]))
    return found


def gpus_in(spec: dict[str, Any]) -> dict[str, int]:
    """The GPUs that a pod asks for, by resource."""
    if "gpu" in spec:
        return {spec["gpu"]["name"]: spec["gpu"]["quantity"]}
    limits = spec["containers"][0]["resources"]["limits"]
    return {name: int(value) for name, value in limits.items() if name in RESOURCES}


def said(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The (node label, value) by which a pod is placed."""
    yield from (spec.get("nodeSelector") or {}).items()
    for term in terms_of(spec):
        for expression in term["matchExpressions"]:
            for value in expression.get("values", ()):
                yield expression["key"], value


@pytest.mark.parametrize("kind", HOSTS)
@given(data=st.data())
def test_there_and_back(kind: str, data: st.DataObject) -> None:
    host = HOSTS[kind]
    catalogue = data.draw(CATALOGUES if host.classes else CLASSLESS)
    plain = data.draw(pods(catalogue["A"]))
    ((_, count),) = gpus_in(plain["spec"]).items()
    counted = catalogue.at("A", count)
    there = data.draw(pods(counted))
    there["spec"]["containers"] = plain["spec"]["containers"]
    there = run(host.wrap(there, count), catalogue, type="A", count=count)
    assert run(there, catalogue, type="A", count=count) == there
    other = catalogue.at("B", count)
    # The pod holds nothing of B.
    assume(
        not set(map(toleration_key, host.spec(there).get("tolerations", [])))
        & set(map(toleration_key, other.tolerations))
    )
    away = run(there, catalogue, type="B", count=count)
    assert gpus_in(host.spec(away)) == {other.resource: count}
    back = run(away, catalogue, type="A", count=count)
    if "extendedResources" in away:
        # Flyte's device says it all, and nothing tells whether a selector or an affinity did.
        assert set(said(host.spec(back))) == set(said(host.spec(there)))
        for placed in (there, back):
            for field in ("nodeSelector", "affinity"):
                host.spec(placed).pop(field, None)
    assert canonical(back, host) == canonical(there, host)


@given(catalogue=CATALOGUES, data=st.data(), name=st.sampled_from("ABC"))
def test_once_is_as_good_as_twice(catalogue: Catalogue, data: st.DataObject, name: str) -> None:
    once = run(data.draw(pods()), catalogue, type=name, count=2)
    assert run(once, catalogue, type=name, count=2) == once


@given(catalogue=CATALOGUES, data=st.data())
def test_nothing_of_the_old_one_is_left_and_all_of_the_new_one_is_there(
    catalogue: Catalogue, data: st.DataObject
) -> None:
    there = run(data.draw(pods()), catalogue, type="A", count=2)
    away = run(there, catalogue, type="B", count=2)["spec"]
    old, new = catalogue.at("A", 2), catalogue.at("B", 2)
    stated = set(new.node_selector.items())
    stated |= {(r["key"], v) for r in new.node_requirements for v in r["values"]}
    left = set(old.node_selector.items())
    left |= {(r["key"], v) for r in old.node_requirements for v in r["values"]}
    found = set(said(away))
    assert stated <= found
    assert not left & found
    assert {toleration_key(t) for t in new.tolerations} <= {
        toleration_key(t) for t in away.get("tolerations", [])
    }
    assert away["futureField"] == {"kept": [1, None]}
    foreign = {pair for pair in said(there["spec"]) if pair[0] in ("zone", "disk")}
    assert foreign == {pair for pair in found if pair[0] in ("zone", "disk")}
