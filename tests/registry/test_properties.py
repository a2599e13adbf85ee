"""What holds for every workload and every chain of built-ins."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.registry import Catalogue, Chain, Result, Step, StepError, TaskContext
from kubetailor.registry.explain import Change, readable
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import compile_selector
from kubetailor.registry.testing.promises import parts_of, patched
from kubetailor.workloads import Op, Workload, apply_ops, diff, same
from kubetailor.workloads.task_target import as_pod_task

PLUGINS = Plugins.load(entry_points=False)
CATALOGUE = Catalogue(
    {
        name: {
            "resource": resource,
            "node_selector": {"example.com/accelerator": name},
            "tolerations": [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}],
        }
        for name, resource in (("one", "nvidia.com/gpu"), ("other", "amd.com/gpu"))
    },
    FlyteSettings("example.com/device", "example.com/partition"),
)

WORDS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["x", "y", ""])
QUANTITIES = st.sampled_from(["1", "2", "500m", "0.5"])
ODD = st.sampled_from([None, [1, None, {"deep": 1.0}], {"camelCase": True}, "8080", 0])


def maps(values: Any = VALUES) -> Any:
    return st.dictionaries(WORDS, values, max_size=3)


TOLERATIONS = st.fixed_dictionaries(
    {"key": WORDS, "operator": st.just("Exists")},
    optional={"effect": st.sampled_from(["NoSchedule", "NoExecute"])},
)
ENV = st.fixed_dictionaries({"name": WORDS, "value": st.sampled_from(["1", "$(a)", "$$(b)"])})


@st.composite
def containers(draw: Any, name: str) -> Any:
    found: Any = {"name": name, "image": draw(VALUES)}
    if draw(st.booleans()):
        found["env"] = draw(st.none() | st.lists(ENV, max_size=3, unique_by=lambda e: e["name"]))
    if draw(st.booleans()):
        amounts = draw(
            st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.just(1))
        )
        found["resources"] = {"limits": amounts, "requests": dict(amounts)}
    if draw(st.booleans()):
        found["volumeMounts"] = [
            {"name": "own", "mountPath": draw(st.sampled_from(["/dev/shm", "/own/"]))}
        ]
    if draw(st.booleans()):
        found["x-unknown"] = draw(ODD)
    return found


@st.composite
def pod_specs(draw: Any, primary: str = "main") -> Any:
    names = [primary, *draw(st.sampled_from([[], ["istio-proxy"]]))]
    found: Any = {"containers": [draw(containers(name)) for name in names]}
    optional = {
        "tolerations": st.none() | st.lists(TOLERATIONS, max_size=3),
        "nodeSelector": st.none() | maps(),
        "priorityClassName": VALUES,
        "futureField": ODD,
        "affinity": st.sampled_from([None, {}, {"nodeAffinity": {"futureField": [1]}}]),
    }
    for field, values in optional.items():
        if draw(st.booleans()):
            found[field] = draw(values)
    found["volumes"] = [
        {"name": "own", "emptyDir": draw(st.sampled_from([{}, {"medium": "Memory"}]))}
    ]
    return found


@st.composite
def templates(draw: Any, primary: str = "main") -> Any:
    found = {"spec": draw(pod_specs(primary))}
    if draw(st.booleans()):
        found["metadata"] = draw(st.none() | st.fixed_dictionaries({"labels": st.none() | maps()}))
    return found


def object_of(version: str, kind: str, spec: Any) -> Any:
    return st.builds(
        lambda body, labels, odd: {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "w", "labels": labels},
            "spec": body,
            "status": odd,
        },
        spec,
        st.none() | maps(),
        ODD,
    )


def task_templates() -> Any:
    container: Any = st.fixed_dictionaries(
        {
            "image": st.just("img"),
            "args": st.just(["pyflyte-execute"]),
            "env": st.lists(
                st.fixed_dictionaries({"key": WORDS, "value": VALUES}),
                max_size=3,
                unique_by=lambda e: e["key"],
            ),
            "resources": st.sampled_from(
                [
                    {},
                    {
                        "requests": [{"name": "CPU", "value": "1"}],
                        "limits": [{"name": "GPU", "value": "1"}],
                    },
                ]
            ),
        }
    )
    common: dict[str, Any] = {
        "id": st.just({"name": "t"}),
        "metadata": st.sampled_from([{}, {"retries": {}}, {"metadata": {"labels": {"a": "x"}}}]),
        "type": st.sampled_from(["python-task", "pytorch", "dask", "container_array"]),
        "custom": st.sampled_from([{}, {"workerReplicas": {"replicas": 2, "image": "w"}}]),
    }
    pod: Any = st.fixed_dictionaries(
        {"podSpec": pod_specs("primary")}, optional={"metadata": st.just({})}
    )
    return st.fixed_dictionaries({**common, "container": container}) | st.fixed_dictionaries(
        {**common, "k8sPod": pod, "config": st.just({"primary_container_name": "primary"})}
    )


def templated(**values: Any) -> Any:
    return st.fixed_dictionaries(values)


def replicas(field: str, container: str, *roles: str) -> Any:
    """A Kubeflow job's spec."""
    replica = templated(template=templates(container))
    return templated(**{field: st.dictionaries(st.sampled_from(roles), replica, max_size=2)})


RAY_CLUSTER = templated(
    headGroupSpec=templated(template=templates("ray-head")),
    workerGroupSpecs=st.lists(
        templated(groupName=WORDS, template=templates("ray-worker")), max_size=2
    ),
)
DASK_CLUSTER = templated(
    scheduler=templated(spec=pod_specs("scheduler"), service=ODD),
    worker=templated(spec=pod_specs("worker"), replicas=st.just(2)),
)
SPARK_PART = st.fixed_dictionaries(
    {"cores": st.just(1)},
    optional={"tolerations": st.lists(TOLERATIONS, max_size=2), "labels": maps()},
)
KINDS: list[tuple[str, str, Any]] = [
    ("v1", "Pod", pod_specs()),
    ("batch/v1", "Job", templated(template=templates(), completions=st.just(2))),
    ("kubeflow.org/v1", "PyTorchJob", replicas("pytorchReplicaSpecs", "pytorch", "Master", "Worker")),
    ("kubeflow.org/v1", "TFJob", replicas("tfReplicaSpecs", "tensorflow", "Chief", "PS", "Worker")),
    ("kubeflow.org/v1", "MPIJob", replicas("mpiReplicaSpecs", "mpi", "Launcher", "Worker")),
    ("ray.io/v1", "RayJob", templated(rayClusterSpec=RAY_CLUSTER)),
    ("ray.io/v1", "RayCluster", RAY_CLUSTER),
    ("kubernetes.dask.org/v1", "DaskCluster", DASK_CLUSTER),
    (
        "kubernetes.dask.org/v1",
        "DaskJob",
        templated(job=templated(spec=pod_specs("job")), cluster=templated(spec=DASK_CLUSTER)),
    ),
    (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        templated(
            replicatedJobs=st.lists(
                templated(name=WORDS, template=templated(spec=templated(template=templates()))),
                max_size=2,
                unique_by=lambda entry: entry["name"],
            )
        ),
    ),
    (
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        templated(driver=SPARK_PART, executor=SPARK_PART),
    ),
]  # fmt: skip
WORKLOADS = st.one_of(
    *(object_of(*row) for row in KINDS),
    templates().map(
        lambda template: {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "w"},
            "template": template,
        }
    ),
    task_templates(),
)

STEPS = st.one_of(
    st.tuples(
        st.just("tolerations"),
        st.fixed_dictionaries({}, optional={"add": st.lists(TOLERATIONS, max_size=2), "remove": st.just([{"key": "c"}])}),
    ),
    *(
        st.tuples(
            st.just(name),
            st.fixed_dictionaries({}, optional={"set": maps(), "remove": st.lists(st.just("d"), max_size=1)}),
        )
        for name in ("labels", "annotations", "node_selector")
    ),
    st.tuples(st.just("env"), st.fixed_dictionaries({"set": maps(st.sampled_from(["1", "$(a)"]))})),
    st.tuples(
        st.just("resources"),
        st.builds(lambda requests: {"requests": requests, "raise_limits": True}, st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES, max_size=2)),
    ),
    st.tuples(st.just("shared_memory"), st.fixed_dictionaries({}, optional={"size_limit": QUANTITIES})),
    st.tuples(
        st.just("gpu"),
        st.fixed_dictionaries({"type": st.sampled_from(["one", "other"])}, optional={"count": st.sampled_from([1, 4])}),
    ),
    st.tuples(st.just("priority_class"), st.fixed_dictionaries({"name": WORDS})),
    st.tuples(st.just("kueue"), st.fixed_dictionaries({"queue": WORDS})),
    st.tuples(st.just("image"), st.fixed_dictionaries({"image": WORDS})),
    st.tuples(
        st.just("node_affinity"),
        st.fixed_dictionaries(
            {"require": st.lists(st.builds(lambda v: {"key": "k", "operator": "In", "values": [v]}, WORDS), max_size=2)}
        ),
    ),
    st.tuples(
        st.just("patch"),
        st.fixed_dictionaries({"pod": st.sampled_from([{"hostNetwork": True}, {"dnsConfig": {"nameservers": ["1"]}}])}),
    ),
)  # fmt: skip
WHENS = st.sampled_from(
    [None, {"kind": "Pod"}, {"requests": "nvidia.com/gpu"}, {"role": ["worker", "primary"]}, {"not": {"labels": {"a": "x"}}}]
)  # fmt: skip


@st.composite
def chains(draw: Any, layers: Any = ("defaults", "steps", "enforce"), whens: Any = WHENS) -> Chain:
    found = []
    for layer in layers:
        for number, (use, parameters) in enumerate(draw(st.lists(STEPS, max_size=3))):
            transformer = PLUGINS.transformers[use]
            found.append(
                Step(
                    f"{layer}-{number}",
                    layer,
                    transformer,
                    read_parameters(transformer, parameters, CATALOGUE),
                    compile_selector(draw(whens)),
                    optional=True,
                )
            )
    phases: Any = ("serialize", "launch", "admit")
    return Chain("test", tuple(found), phases=phases, catalogue=CATALOGUE)


def run(chain: Chain, obj: Any) -> Result:
    kind = PLUGINS.kinds.of(obj)
    assert kind is not None
    phase: Any = "admit" if "apiVersion" in obj else "serialize"
    return chain.run(obj, kind, TaskContext(phase))


REFUSALS = ("raise_limits", "is more than", "no emptyDir", "other content", "asks for a GPU")
"""What a step may say of an author's object."""


def ran(chain: Chain, obj: Any) -> Result | None:
    """The result, or None where the author's object cannot be changed so."""
    try:
        return run(chain, obj)
    except StepError as error:
        if not any(part in str(error) for part in REFUSALS):
            raise
        return None


@given(WORKLOADS)
def test_an_empty_chain_is_the_identity(obj: Any) -> None:
    result = run(Chain("empty", ()), obj)
    assert result.after is obj
    assert not result.changed
    assert not result.patch()
    assert not result.changes()


@given(WORKLOADS, chains())
def test_the_input_stays_and_the_patch_leads_to_the_output(obj: Any, chain: Chain) -> None:
    before = copy.deepcopy(obj)
    result = ran(chain, obj)
    assert same(obj, before), "the input is not changed"
    if result is None:
        return
    assert same(jsonpatch.apply_patch(copy.deepcopy(obj), result.patch()), result.after)
    assert same(patched(copy.deepcopy(obj), result.patch()), result.after)
    assert result.changed is bool(result.patch())
    if not result.patch():
        assert result.after is obj, "no change, no new version"


@given(WORKLOADS, chains(whens=st.none()))
def test_a_second_run_changes_nothing(obj: Any, chain: Chain) -> None:
    # Without a `when` that reads what a later step writes, and as far as no two steps disagree.
    result = ran(chain, obj)
    if result is None or result.warnings:
        return
    settled = ran(chain, result.after)
    if settled is not None and not _disagree(chain):
        assert settled.patch() == []


def _disagree(chain: Chain) -> bool:
    """Whether a step takes off, or another turns, what one adds."""
    written: dict[Any, Any] = {}
    removes = any(step.arguments.get("remove") for step in chain.steps)
    if (
        removes
        and len([step for step in chain.steps if step.transformer.name == "tolerations"]) > 1
    ):
        return True
    for step in chain.steps:
        for part, values in step.arguments.items():
            if part == "remove":
                continue
            for key, value in (
                values.items() if isinstance(values, dict) else [(part, repr(values))]
            ):
                place = (step.transformer.name, part, key)
                if written.setdefault(place, value) != value:
                    return True
    return False


@given(WORKLOADS, chains())
def test_two_results_share_nothing_that_can_be_changed(obj: Any, chain: Chain) -> None:
    first, second = ran(chain, obj), ran(chain, copy.deepcopy(obj))
    if first is None or second is None:
        return
    assert same(first.after, second.after)
    assert not parts_of(first.after) & parts_of(second.after)
    assert first.warnings == second.warnings


@given(WORKLOADS, chains())
def test_every_change_is_explained_by_its_step(obj: Any, chain: Chain) -> None:
    result = ran(chain, obj)
    if result is None:
        return
    # What is explained of a step is all that it did: it leads from the version before to the next.
    explained = iter(result.changes())
    version = obj
    for before, step, after in result.versions():
        assert same(version, before), "no change between two steps"
        shown = as_pod_task(before, after)
        ops = diff(shown, after)
        changes = list(itertools.islice(explained, len(ops)))
        assert {change.step for change in changes} <= {step.name}
        assert step in chain.steps
        told = []
        for change, (op, path, old, new) in zip(changes, ops, strict=True):
            assert change.field == readable(path, after, old if op == "remove" else new)
            told.append(op_of(change, path))
        rebuilt = apply_ops(shown, told)
        assert same(rebuilt, after)
        version = after
    assert next(explained, None) is None
    assert same(version, result.after)


def op_of(change: Change, path: Any) -> Op:
    """A change as what it stands for."""
    op: Any = change.op
    return Op(op, path, change.old, change.new)


@given(WORKLOADS, chains(layers=("defaults",)))
def test_defaults_only_add(obj: Any, chain: Chain) -> None:
    result = ran(chain, obj)
    if result is not None:
        _only_adds(as_pod_task(obj, result.after), result.after, ())


def _only_adds(before: Any, after: Any, path: Any) -> None:
    if before is None or before in ({}, [], ""):
        return
    if isinstance(before, dict):
        for key, value in before.items():
            # flytekit's short name of a resource is the same as the full one, which is written.
            short = key == "gpu" and key not in after and path[-1] in ("requests", "limits")
            name = "nvidia.com/gpu" if short else key
            assert name in after, (*path, name)
            _only_adds(value, after[name], (*path, key))
    elif isinstance(before, list) and before and isinstance(before[0], dict):
        if path[-1] in ("workerGroupSpecs", "replicatedJobs"):
            for old, new in zip(before, after, strict=True):
                _only_adds(old, new, path)
            return
        places = {entry.get("name"): entry for entry in after}
        for entry in before:
            if path[-1] == "containers":
                _only_adds(entry, places[entry["name"]], path)
            else:
                assert entry in after or "matchExpressions" in str(path), path
    else:
        assert same(before, after), path


CONFLICTS: list[tuple[str, Callable[[str], Any], Callable[[Any], Any]]] = [
    ("node_selector", lambda v: {"set": {"k": v}}, lambda s: s["nodeSelector"]["k"]),
    ("priority_class", lambda v: {"name": v}, lambda s: s["priorityClassName"]),
    ("image", lambda v: {"image": v}, lambda s: s["containers"][0]["image"]),
    ("env", lambda v: {"set": {"K": v}}, lambda s: s["containers"][0]["env"][0]["value"]),
    ("patch", lambda v: {"pod": {"hostname": v}}, lambda s: s["hostname"]),
]


@pytest.mark.parametrize(
    ("use", "parameters", "read"), CONFLICTS, ids=[row[0] for row in CONFLICTS]
)
def test_reversing_two_steps_reverses_the_result(use: str, parameters: Any, read: Any) -> None:
    obj = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main"}]}}
    transformer = PLUGINS.transformers[use]
    steps = [
        Step(
            value,
            "steps",
            transformer,
            read_parameters(transformer, parameters(value)),
            compile_selector(None),
        )
        for value in ("a", "b")
    ]
    assert read(run(Chain("c", tuple(steps)), obj).after["spec"]) == "b"
    assert read(run(Chain("c", tuple(reversed(steps))), obj).after["spec"]) == "a"


@given(WORKLOADS)
def test_reading_a_workload_in_every_way_changes_nothing(obj: Any) -> None:
    kind = PLUGINS.kinds.of(obj)
    assert kind is not None
    before = copy.deepcopy(obj)
    workload = Workload(obj, kind)
    for pod in workload.pods():
        _ = (
            pod.labels,
            pod.annotations,
            pod.tolerations,
            pod.node_selector,
            pod.volumes,
            pod.roles,
        )
        _ = (pod.get(), pod.where(), repr(pod), pod.is_object)
        for container in pod.containers:
            _ = (
                container.env,
                container.resources,
                container.image,
                container.requests("cpu"),
                repr(container),
            )
    _ = (workload.labels, workload.annotations, workload.name, workload.namespace, repr(workload))
    assert workload.commit() is obj
    assert same(obj, before)
