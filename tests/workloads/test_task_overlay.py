"""Groups of Ray and Spark, whose lists Flyte puts after those of the task's own pod."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.workloads import BUILTIN_KINDS, CannotChangeError, KindTable, Pod, Workload, same
from kubetailor.workloads.identity import IDENTITY
from kubetailor.workloads.task_target import container_as_pod

TABLE = KindTable(BUILTIN_KINDS)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def task(group: dict[str, Any], **base: Any) -> dict[str, Any]:
    """A Ray task with one group of workers, whose own pod spec is `group`."""
    container = {"image": "i", "command": ["c"], "args": [], "env": [{"key": "A", "value": "1"}]}
    worker = {"groupName": "gpu", "k8sPod": {"podSpec": group}}
    return {
        "id": {"name": "ray"},
        "type": "ray",
        "custom": {"rayCluster": {"headGroupSpec": {}, "workerGroupSpec": [worker]}},
        **({"k8sPod": base["pod"]} if base else {"container": container}),
    }


def group_of(template: Any) -> Any:
    return template["custom"]["rayCluster"]["workerGroupSpec"][0]["k8sPod"]["podSpec"]


def spec_of(template: Any) -> Any:
    pod = template.get("k8sPod") or container_as_pod(template)
    return pod["podSpec"]


def laid_over(template: Any) -> Any:
    """What FlytePropeller makes of it: mergo with `WithOverride` and `WithAppendSlice`."""

    def merge(base: Any, upper: Any) -> Any:
        if isinstance(base, dict) and isinstance(upper, dict):
            keys = dict.fromkeys([*base, *upper])
            return {k: merge(base.get(k), upper.get(k)) for k in keys}
        if isinstance(base, list) and isinstance(upper, list):
            return [*base, *upper]
        return base if upper is None else upper

    base, upper = copy.deepcopy(spec_of(template)), copy.deepcopy(group_of(template))
    own = {c["name"]: c for c in upper.pop("containers", [])}
    for container in base["containers"]:
        if container["name"] == "primary":  # the plugin renames it
            container["name"] = "ray-worker"
    base["containers"] = [merge(c, own.get(c["name"])) for c in base["containers"]]
    return {
        **merge({k: v for k, v in base.items() if k != "containers"}, upper),
        "containers": base["containers"],
    }


def run(template: Any, *steps: Callable[[Pod], None]) -> Any:
    kind = TABLE.of(template)
    assert kind is not None
    workload = Workload(template, kind)
    for step in steps:
        for pod in workload.pods():
            step(pod)
        workload.commit()
    return workload.commit()


def mounted(pod: Pod) -> None:
    pod.add_volume("shm", {"emptyDir": {"medium": "Memory"}})
    pod.mount("shm", "/dev/shm")


VERBS: dict[str, Callable[[Pod], None]] = {
    "env": lambda pod: pod.set_env("TEAM", "audio"),
    "another env": lambda pod: pod.set_env("A", "2"),
    "toleration": lambda pod: pod.tolerate("gpu"),
    "selector": lambda pod: pod.select_node("pool", "gpu"),
    "requirement": lambda pod: pod.require_node("zone", "In", ["a"]),
    "volume and mount": mounted,
    "secret": lambda pod: pod.merge({"imagePullSecrets": [{"name": "s"}]}),
    "gate": lambda pod: pod.merge({"schedulingGates": [{"name": "g"}]}),
}
GROUPS = st.fixed_dictionaries(
    {"containers": st.just([{"name": "ray-worker", "resources": {"limits": {"gpu": "1"}}}])},
    optional={
        "tolerations": st.just([{"key": "own", "operator": "Exists"}]),
        "nodeSelector": st.just({"own": "x"}),
        "volumes": st.just([{"name": "own", "emptyDir": {}}]),
        "affinity": st.sampled_from(
            [
                {
                    "nodeAffinity": {
                        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
                    }
                }
                for expression in (
                    {"key": "own", "operator": "Exists"},
                    {"key": "zone", "operator": "In", "values": ["a"]},
                )
            ]
        ),
    },
)


def doubled(spec: Any) -> list[Any]:
    """Entries that are there twice, anywhere."""
    found: list[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if key in IDENTITY and isinstance(item, list):
                    names = [IDENTITY[key](entry) for entry in item]
                    found.extend(n for n in names if names.count(n) > 1)
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(spec)
    return found


@given(
    group=GROUPS,
    steps=st.lists(st.sampled_from(sorted(VERBS)), min_size=1, max_size=4),
)
def test_nothing_is_in_a_group_twice_once_flyte_laid_it_over(group: Any, steps: list[str]) -> None:
    template = task(group)
    if "requirement" in steps and "own" in str(group.get("affinity")):
        with pytest.raises(CannotChangeError, match="alternatives"):
            run(template, *(VERBS[name] for name in steps))
        return
    after = run(template, *(VERBS[name] for name in steps))
    made = laid_over(after)
    assert not doubled(made)
    # As if the group's pod had been whole, and the verbs had been used on that.
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": laid_over(template)}
    assert canonical(made) == canonical(run(whole, *(VERBS[name] for name in steps))["spec"])
    # A second run changes nothing.
    assert same(run(after, *(VERBS[name] for name in steps)), after)


def canonical(spec: Any) -> Any:
    """Without the order of lists that have none, and without equal node selector terms."""
    found = copy.deepcopy(spec)
    for container in found["containers"]:
        container.get("env", []).sort(key=str)
    for key in ("tolerations", "volumes"):
        found.get(key, []).sort(key=str)
    required = found.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    if required:
        terms = required["nodeSelectorTerms"]
        unlike = {str(term): term for term in terms}.values()
        required["nodeSelectorTerms"] = list(unlike)
    return found


def test_what_the_author_has_in_both_stays() -> None:
    own = {"name": "ray-worker", "env": [{"name": "A", "value": "1"}]}
    template = task({"containers": [own]})
    assert run(template, VERBS["selector"])["k8sPod"]
    assert group_of(run(template, VERBS["env"]))["containers"] == [own]


def test_a_group_cannot_have_an_entry_of_the_tasks_own_pod_another_way() -> None:
    template = task({"containers": [{"name": "ray-worker"}]})
    kind = TABLE.of(template)
    assert kind is not None
    workload = Workload(template, kind)
    (group,) = workload.pods("worker:gpu")[1:]
    group.set_env("A", "of the group alone")
    with pytest.raises(CannotChangeError, match=r"another entry of env with the identity \('A',\)"):
        workload.commit()


def test_a_requirement_of_the_task_is_not_loosened_by_its_groups_own_copy() -> None:
    """A second term would be an alternative to the first."""
    base = {
        "podSpec": {
            "containers": [{"name": "primary"}],
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "own", "operator": "Exists"}]}
                        ]
                    }
                }
            },
        }
    }
    template = task({"containers": [{"name": "ray-worker"}]}, pod=base)
    after = run(template, VERBS["requirement"])
    assert group_of(after) == {"containers": [{"name": "ray-worker"}]}
    (term,) = spec_of(after)["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [expression["key"] for expression in term["matchExpressions"]] == ["own", "zone"]
