"""What `gpu` takes off, what it puts on, and what it refuses."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubetailor.registry import Catalogue, Chain, Result, Step, StepError, TaskContext
from kubetailor.registry.context import Phase
from kubetailor.registry.flyte_settings import FlyteSettings
from kubetailor.registry.parameters import ParameterError, read_parameters
from kubetailor.registry.selectors import compile_selector
from kubetailor.registry.step import Layer
from kubetailor.registry.transformer import Transformer, options_of
from kubetailor.transformers import gpu
from kubetailor.workloads import BUILTIN_KINDS, KindTable

GKE = "cloud.google.com/gke-accelerator"
PARTITION = "cloud.google.com/gke-gpu-partition-size"
KINDS = KindTable(BUILTIN_KINDS)
TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
H100_TAINT = {
    "key": "pool.example.com/h100",
    "operator": "Equal",
    "value": "true",
    "effect": "NoSchedule",
}
AMD_TAINT = {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
ENTRIES: dict[str, dict[str, Any]] = {
    "a100-40": {
        "resource": "nvidia.com/gpu",
        "device": "nvidia-tesla-a100",
        "node_selector": {GKE: "nvidia-tesla-a100"},
        "tolerations": [TAINT],
    },
    "h100-80": {
        "resource": "nvidia.com/gpu",
        "node_selector": {GKE: "nvidia-h100-80gb"},
        "tolerations": [TAINT, H100_TAINT],
    },
    "a100-mig-1g10": {
        "resource": "nvidia.com/mig-1g.10gb",
        "node_selector": {"pool.example.com/mig": "mixed"},
        "tolerations": [TAINT],
    },
    "mi300x": {
        "resource": "amd.com/gpu",
        "node_selector": {"pool.example.com/gpu": "mi300x"},
        "tolerations": [AMD_TAINT],
    },
    "l4": {
        "resource": "nvidia.com/gpu",
        "node_selector": {GKE: "nvidia-l4"},
        "tolerations": [TAINT],
    },
    # Placed by FlytePropeller alone, on a cluster whose device label is GKE's.
    "t4": {
        "resource": "nvidia.com/gpu",
        "device": "nvidia-tesla-t4",
        "node_selector": {GKE: "nvidia-tesla-t4"},
    },
    "v100": {
        "resource": "nvidia.com/gpu",
        "device": "nvidia-tesla-v100",
        "node_selector": {GKE: "nvidia-tesla-v100"},
    },
    "p100-slice": {
        "resource": "nvidia.com/gpu",
        "device": "nvidia-tesla-p100",
        "partition": "1g.5gb",
        "node_selector": {GKE: "nvidia-tesla-p100", PARTITION: "1g.5gb"},
    },
    "required": {
        "resource": "nvidia.com/gpu",
        "runtime_class": "team",
        "node_requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4", "p5"]}
        ],
    },
    "machine": {
        "resource": "nvidia.com/gpu",
        "node_selector": {"node.kubernetes.io/instance-type": "a2-highgpu-{count}g"},
        "tolerations": [{"key": "machine", "value": "a2-highgpu-{count}g", "effect": "NoSchedule"}],
        "per_gpu": {"cpu": "12", "memory": "85G"},
        "by_count": {8: {"requests": {"cpu": "95"}, "node_selector": {"acme.io/whole": "true"}}},
    },
}
CATALOGUE = Catalogue(ENTRIES, FlyteSettings(GKE, PARTITION))


def run(
    obj: dict[str, Any],
    *,
    when: Any = None,
    phase: Phase | None = None,
    layer: Layer = "enforce",
    catalogue: Catalogue = CATALOGUE,
    **given: Any,
) -> Result:
    """One step `gpu` over an object; a second run changes nothing, and the input stays."""
    options = options_of(gpu)
    assert options is not None
    transformer = Transformer.of(gpu, name="gpu", plugin="kubetailor", options=options)
    arguments = read_parameters(transformer, given, catalogue)
    step = Step("gpu", layer, transformer, arguments, compile_selector(when))
    chain = Chain("test", (step,), catalogue=catalogue, phases=("serialize", "admit"))
    kind = KINDS.of(obj)
    assert kind is not None
    task = TaskContext(phase or ("admit" if "kind" in obj else "serialize"))
    before = copy.deepcopy(obj)
    result = chain.run(obj, kind, task)
    assert obj == before
    if result.until is None:
        assert chain.run(result.after, kind, task).patch() == []
    return result


def pod(**spec: Any) -> dict[str, Any]:
    containers = spec.pop("containers", None) or [main(1)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train"},
        "spec": {**spec, "containers": containers},
    }


def main(gpus: Any, resource: str = "nvidia.com/gpu", **more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "img", "resources": {"limits": {resource: gpus}}, **more}


def terms(*found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": term} for term in found]
            }
        }
    }


def is_in(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


ZONE_A, ZONE_B = is_in("zone", "a"), is_in("zone", "b")


# the cases ---------------------------------------------------------------------------------------


def test_c10_another_type_and_number_and_back() -> None:
    given = pod(
        nodeSelector={GKE: "nvidia-tesla-a100", "topology": "rack1"},
        tolerations=[TAINT, {"key": "team", "operator": "Exists"}],
        containers=[
            {
                "name": "main",
                "image": "img",
                "resources": {
                    "requests": {"cpu": "88", "memory": "600Gi", "nvidia.com/gpu": "8"},
                    "limits": {"cpu": "96", "memory": "600Gi", "nvidia.com/gpu": "8"},
                },
            }
        ],
    )
    result = run(given, type="h100-80", count=4)
    spec = result.after["spec"]
    assert spec["nodeSelector"] == {GKE: "nvidia-h100-80gb", "topology": "rack1"}
    assert spec["tolerations"] == [TAINT, {"key": "team", "operator": "Exists"}, H100_TAINT]
    assert spec["containers"][0]["resources"] == {
        "requests": {"cpu": "88", "memory": "600Gi", "nvidia.com/gpu": "4"},
        "limits": {"cpu": "96", "memory": "600Gi", "nvidia.com/gpu": "4"},
    }
    assert result.warnings == []
    assert run(result.after, type="a100-40", count=8).after == given


def test_c12_a_slice_has_its_own_resource() -> None:
    given = pod(nodeSelector={GKE: "nvidia-tesla-a100"}, tolerations=[TAINT])
    spec = run(given, type="a100-mig-1g10", count=1).after["spec"]
    assert spec["nodeSelector"] == {"pool.example.com/mig": "mixed"}
    assert spec["containers"][0]["resources"] == {"limits": {"nvidia.com/mig-1g.10gb": "1"}}


def test_c13_another_vendor_takes_the_runtime_class_and_says_so() -> None:
    resources = {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}
    given = pod(
        runtimeClassName="nvidia",
        overhead={"podFixed": {"cpu": "250m"}},
        nodeSelector={GKE: "nvidia-l4"},
        tolerations=[TAINT],
        containers=[{"name": "main", "image": "img", "resources": resources}],
    )
    result = run(given, type="mi300x", count=2)
    assert result.after["spec"] == {
        "nodeSelector": {"pool.example.com/gpu": "mi300x"},
        "tolerations": [AMD_TAINT],
        "containers": [
            {
                "name": "main",
                "image": "img",
                "resources": {"requests": {"amd.com/gpu": "2"}, "limits": {"amd.com/gpu": "2"}},
            }
        ],
    }
    assert any("image may not run on the new vendor" in str(w) for w in result.warnings)


@pytest.mark.parametrize("limits", [{"cpu": "1"}, {"nvidia.com/gpu": "0"}])
def test_c15_a_pod_without_gpus_is_left_alone(limits: dict[str, str]) -> None:
    container = {"name": "main", "image": "img", "resources": {"limits": limits}}
    assert run(pod(containers=[container]), type="h100-80").patch() == []


def test_c16_requests_and_limits_of_gpus_stay_equal() -> None:
    resources = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    given = pod(containers=[{"name": "main", "image": "img", "resources": resources}])
    found = run(given, type="l4", count=4).after["spec"]["containers"][0]["resources"]
    assert found == {"requests": {"nvidia.com/gpu": "4"}, "limits": {"nvidia.com/gpu": "4"}}


@pytest.mark.parametrize("when", [{"role": "worker"}, None])
def test_c45_the_launcher_of_an_mpi_job_gets_no_gpu(when: Any) -> None:
    launcher = {"name": "l", "image": "img", "resources": {"limits": {"cpu": "1"}}}
    worker = {"name": "w", "image": "img", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    given = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "m"},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}},
                "Worker": {"replicas": 2, "template": {"spec": {"containers": [worker]}}},
            }
        },
    }
    replicas = run(given, type="h100-80", count=8, when=when).after["spec"]["mpiReplicaSpecs"]
    assert replicas["Launcher"]["template"]["spec"] == {"containers": [launcher]}
    assert replicas["Worker"]["template"]["spec"] == {
        "containers": [{**worker, "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        "nodeSelector": {GKE: "nvidia-h100-80gb"},
        "tolerations": [TAINT, H100_TAINT],
    }


def test_c47_spark_has_a_gpu_of_its_own_form() -> None:
    given = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
        "spec": {
            "driver": {"cores": 1, "memory": "2g"},
            "executor": {
                "cores": 4,
                "memory": "16g",
                "tolerations": [{"key": "ml", "operator": "Exists"}],
                "gpu": {"name": "nvidia.com/gpu", "quantity": 1},
            },
        },
    }
    for when in (None, {"role": "executor"}):
        spec = run(given, type="mi300x", count=2, when=when).after["spec"]
        assert spec["driver"] == {"cores": 1, "memory": "2g"}
        assert spec["executor"] == {
            "cores": 4,
            "memory": "16g",
            "gpu": {"name": "amd.com/gpu", "quantity": 2},
            "nodeSelector": {"pool.example.com/gpu": "mi300x"},
            "tolerations": [{"key": "ml", "operator": "Exists"}, AMD_TAINT],
        }


# which pods --------------------------------------------------------------------------------------


def test_the_only_pod_gets_gpus_where_a_count_is_given() -> None:
    container = {"name": "main", "image": "img"}
    spec = run(pod(containers=[container]), type="l4", count=2).after["spec"]
    assert spec["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert spec["nodeSelector"] == {GKE: "nvidia-l4"}


def job(**gpus: Any) -> dict[str, Any]:
    def replica(number: Any) -> dict[str, Any]:
        resources = {} if number is None else {"resources": {"limits": {"nvidia.com/gpu": number}}}
        container = {"name": "pytorch", "image": "img", **resources}
        return {"replicas": 1, "template": {"spec": {"containers": [container]}}}

    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": {"pytorchReplicaSpecs": {name: replica(n) for name, n in gpus.items()}},
    }


def test_a_role_that_asks_for_none_gets_gpus_if_when_names_it() -> None:
    result = run(job(Master=None, Worker=None), type="l4", count=2, when={"role": "worker"})
    replicas = result.after["spec"]["pytorchReplicaSpecs"]
    assert "nodeSelector" not in replicas["Master"]["template"]["spec"]
    assert replicas["Worker"]["template"]["spec"]["nodeSelector"] == {GKE: "nvidia-l4"}


def test_only_the_roles_that_ask_change_where_none_is_named() -> None:
    replicas = run(job(Master=None, Worker=1), type="l4", count=2).after["spec"][
        "pytorchReplicaSpecs"
    ]
    assert "nodeSelector" not in replicas["Master"]["template"]["spec"]
    worker = replicas["Worker"]["template"]["spec"]["containers"][0]
    assert worker["resources"] == {"limits": {"nvidia.com/gpu": "2"}}


def test_which_of_several_pods_gets_its_first_gpus_must_be_said() -> None:
    with pytest.raises(StepError, match=r"no pod asks for a GPU.*when.*role.*master, worker"):
        run(job(Master=None, Worker=None), type="l4", count=2)
    result = run(job(Master=None, Worker=None), type="l4", count=2, layer="steps")
    assert result.patch() == []
    assert "no pod asks for a GPU" in str(result.warnings[0])


def test_more_than_one_container_that_asks_must_be_told_apart() -> None:
    given = pod(containers=[main(1), {**main(1), "name": "other"}])
    with pytest.raises(StepError, match=r"more than one container.*main, other.*`container`"):
        run(given, type="h100-80")
    found = run(given, type="h100-80", count=4, container="other").after["spec"]["containers"]
    assert [c["resources"]["limits"]["nvidia.com/gpu"] for c in found] == [1, "4"]


def test_a_container_that_asks_for_none_beside_one_that_does_is_refused() -> None:
    given = pod(containers=[main(1), {"name": "side", "image": "img"}])
    with pytest.raises(StepError, match=r"container 'side' asks for no GPU; main does"):
        run(given, type="h100-80", container="side")


def test_a_container_that_is_not_there_is_refused() -> None:
    with pytest.raises(StepError, match=r"no container 'nope'; the containers are main"):
        run(pod(), type="h100-80", container="nope")


def test_no_container_keeps_gpus_that_the_new_nodes_lack() -> None:
    given = pod(initContainers=[{**main(1), "name": "check"}])
    with pytest.raises(StepError, match=r"container 'check' asks for nvidia.com/gpu.*mi300x"):
        run(given, type="mi300x")
    assert run(given, type="h100-80").changed


def test_a_fault_in_one_pod_leaves_all_as_they_were() -> None:
    given = job(Master=1, Worker=1)
    worker = given["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["affinity"] = terms([is_in(GKE, "nvidia-tesla-a100", "unheard-of")])
    with pytest.raises(StepError):
        run(given, type="h100-80")
    worker["containers"].append({**worker["containers"][0], "name": "second"})
    del worker["affinity"]
    with pytest.raises(StepError):
        run(given, type="h100-80")


# which number ------------------------------------------------------------------------------------


def test_the_number_stays_as_it_was_written() -> None:
    found = run(pod(containers=[main(3)]), type="h100-80").after["spec"]["containers"][0]
    assert found["resources"] == {"limits": {"nvidia.com/gpu": 3}}


@pytest.mark.parametrize(
    ("given", "new"),
    [
        (pod(nodeSelector={GKE: "nvidia-tesla-a100"}), "a100-mig-1g10"),
        (pod(containers=[main(1, "nvidia.com/mig-1g.10gb")]), "h100-80"),
        (pod(nodeSelector={GKE: "nvidia-tesla-p100", PARTITION: "1g.5gb"}), "h100-80"),
        (pod(nodeSelector={GKE: "nvidia-l4"}), "p100-slice"),
    ],
)
def test_between_whole_gpus_and_slices_the_number_must_be_given(
    given: dict[str, Any], new: str
) -> None:
    with pytest.raises(StepError, match=rf"`count` must be given.*{new} is another kind"):
        run(given, type=new)
    assert run(given, type=new, count=1).changed


def test_shares_are_multiplied_and_overlays_laid_over_them() -> None:
    resources = run(pod(containers=[main(4)]), type="machine").after["spec"]["containers"][0][
        "resources"
    ]
    assert resources["requests"] == {"cpu": "48", "memory": "340G"}
    assert resources["limits"] == {"nvidia.com/gpu": 4, "cpu": "48", "memory": "340G"}
    spec = run(pod(containers=[main(8)]), type="machine").after["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "95", "memory": "680G"}
    assert spec["nodeSelector"] == {
        "node.kubernetes.io/instance-type": "a2-highgpu-8g",
        "acme.io/whole": "true",
    }
    four = run({**pod(), "spec": spec}, type="machine", count=4).after["spec"]
    assert four["nodeSelector"] == {"node.kubernetes.io/instance-type": "a2-highgpu-4g"}
    assert [t["value"] for t in four["tolerations"]] == ["a2-highgpu-4g"]


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_the_a100_machine_of_flyte_475(gpus: int) -> None:
    machine = "beta.kubernetes.io/instance-type"
    entry = {
        "resource": "nvidia.com/gpu",
        "device": "nvidia-tesla-a100",
        "node_selector": {GKE: "nvidia-tesla-a100", machine: "a2-highgpu-{count}g"},
        "tolerations": [
            {"key": GKE, "operator": "Equal", "value": "nvidia-tesla-a100", "effect": "NoSchedule"},
            {
                "key": machine,
                "operator": "Equal",
                "value": "a2-highgpu-{count}g",
                "effect": "NoSchedule",
            },
        ],
        "per_gpu": {"cpu": 12},
        "by_count": {
            n: {
                "requests": {"cpu": 12 * n - 1, "memory": f"{85 * n - 5}G"},
                "limits": {"memory": f"{85 * n - 5}G"},
            }
            for n in (1, 2, 4, 8)
        },
    }
    catalogue = Catalogue({**ENTRIES, "nvidia-a100-40gb-a2": entry}, FlyteSettings(GKE, PARTITION))
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}
    given = pod(containers=[{"name": "main", "image": "img", "resources": resources}])
    spec = run(given, type="nvidia-a100-40gb-a2", catalogue=catalogue).after["spec"]
    memory = f"{85 * gpus - 5}G"
    assert spec["containers"][0]["resources"] == {
        "requests": {"cpu": str(12 * gpus - 1), "memory": memory, "nvidia.com/gpu": str(gpus)},
        "limits": {"cpu": str(12 * gpus), "memory": memory, "nvidia.com/gpu": str(gpus)},
    }
    assert spec["nodeSelector"] == {GKE: "nvidia-tesla-a100", machine: f"a2-highgpu-{gpus}g"}
    assert [t["value"] for t in spec["tolerations"]] == ["nvidia-tesla-a100", f"a2-highgpu-{gpus}g"]


# what is taken off -------------------------------------------------------------------------------


def test_what_an_unknown_accelerator_left_stays() -> None:
    given = pod(nodeSelector={"team/gpu": "k80"}, tolerations=[TAINT], runtimeClassName="nvidia")
    spec = run(given, type="l4").after["spec"]
    assert spec["nodeSelector"] == {"team/gpu": "k80", GKE: "nvidia-l4"}
    assert spec["tolerations"] == [TAINT]
    assert spec["runtimeClassName"] == "nvidia"


def test_a_resource_of_one_accelerator_alone_is_a_mark() -> None:
    given = pod(tolerations=[AMD_TAINT], containers=[main(1, "amd.com/gpu")])
    assert run(given, type="l4").after["spec"]["tolerations"] == [TAINT]


def test_the_accelerator_with_most_marks_is_on_the_pod() -> None:
    catalogue = Catalogue(
        {
            **ENTRIES,
            "one": {
                "resource": "nvidia.com/gpu",
                "node_selector": {"a": "1"},
                "tolerations": [TAINT],
            },
            "two": {
                "resource": "nvidia.com/gpu",
                "node_selector": {"a": "1", "b": "2"},
                "tolerations": [H100_TAINT],
            },
        }
    )
    both = pod(nodeSelector={"a": "1", "b": "2"}, tolerations=[TAINT, H100_TAINT])
    spec = run(both, type="t4", catalogue=catalogue).after["spec"]
    assert spec["tolerations"] == [TAINT]
    assert spec["nodeSelector"] == {GKE: "nvidia-tesla-t4"}
    tie = pod(nodeSelector={"a": "1"}, tolerations=[TAINT, H100_TAINT])
    spec = run(tie, type="t4", catalogue=catalogue).after["spec"]
    assert "tolerations" not in spec
    assert spec["nodeSelector"] == {GKE: "nvidia-tesla-t4"}


def test_new_tolerations_take_the_places_of_the_old() -> None:
    first, last = {"key": "x", "operator": "Exists"}, {"key": "y", "operator": "Exists"}
    given = pod(nodeSelector={GKE: "nvidia-l4"}, tolerations=[first, TAINT, last])
    assert run(given, type="mi300x").after["spec"]["tolerations"] == [first, AMD_TAINT, last]


def test_an_equal_toleration_is_kept_as_it_is() -> None:
    there = {"effect": "NoSchedule", "operator": "Exists", "key": "nvidia.com/gpu"}
    given = pod(nodeSelector={GKE: "nvidia-l4"}, tolerations=[there])
    assert run(given, type="a100-40").after["spec"]["tolerations"] == [there]


def test_values_of_one_key_change_in_every_term() -> None:
    given = pod(
        affinity=terms(
            [ZONE_A, is_in(GKE, "nvidia-tesla-a100")],
            [is_in(GKE, "nvidia-tesla-a100", "nvidia-l4"), ZONE_B],
        )
    )
    spec = run(given, type="h100-80").after["spec"]
    new = is_in(GKE, "nvidia-h100-80gb")
    assert spec["affinity"] == terms([ZONE_A, new], [new, ZONE_B])
    assert "nodeSelector" not in spec  # every term says it


def test_another_key_takes_the_place_in_its_term() -> None:
    given = pod(affinity=terms([is_in(GKE, "nvidia-l4"), ZONE_A]))
    spec = run(given, type="mi300x").after["spec"]
    assert spec["affinity"] == terms([is_in("pool.example.com/gpu", "mi300x"), ZONE_A])
    assert (
        run({**given, "spec": spec}, type="l4").after["spec"]["affinity"]
        == given["spec"]["affinity"]
    )


def test_a_term_that_says_nothing_of_gpus_stays_and_the_selector_holds_for_it() -> None:
    given = pod(affinity=terms([is_in(GKE, "nvidia-l4")], [ZONE_B]))
    spec = run(given, type="h100-80").after["spec"]
    assert spec["affinity"] == terms([is_in(GKE, "nvidia-h100-80gb")], [ZONE_B])
    assert spec["nodeSelector"] == {GKE: "nvidia-h100-80gb"}


def test_requirements_go_into_every_term_and_come_off_again() -> None:
    own = is_in("node.kubernetes.io/instance-type", "p4", "p5")
    given = pod(
        nodeSelector={GKE: "nvidia-l4"}, tolerations=[TAINT], affinity=terms([ZONE_A], [ZONE_B])
    )
    spec = run(given, type="required").after["spec"]
    assert spec["affinity"] == terms([ZONE_A, own], [ZONE_B, own])
    assert spec["runtimeClassName"] == "team"
    assert "nodeSelector" not in spec
    assert run({**given, "spec": spec}, type="l4").after == given


def test_a_requirement_makes_and_takes_its_own_affinity() -> None:
    given = pod(nodeSelector={GKE: "nvidia-l4"}, tolerations=[TAINT])
    there = run(given, type="required").after
    assert there["spec"]["affinity"] == terms(
        [is_in("node.kubernetes.io/instance-type", "p4", "p5")]
    )
    assert run(there, type="l4").after == given


def test_preferred_terms_and_foreign_keys_stay() -> None:
    affinity = terms(
        [is_in("topology.kubernetes.io/zone", "a"), {"key": GKE, "operator": "Exists"}]
    )
    preferred = [{"weight": 1, "preference": {"matchExpressions": [is_in(GKE, "nvidia-l4")]}}]
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    given = pod(nodeSelector={GKE: "nvidia-l4"}, affinity=affinity)
    assert run(given, type="h100-80").after["spec"]["affinity"] == affinity


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (is_in(GKE, "nvidia-l4", "k80"), r"In \[nvidia-l4, k80\] is no accelerator's for k80"),
        (is_in(GKE, "k80"), r"In \[k80\] is no accelerator's for k80.*h100-80"),
        (
            {"key": GKE, "operator": "NotIn", "values": ["nvidia-h100-80gb"]},
            r"NotIn \[nvidia-h100-80gb\] rules out h100-80",
        ),
        ({"key": GKE, "operator": "DoesNotExist"}, r"DoesNotExist rules out h100-80"),
    ],
)
def test_an_affinity_that_rules_the_new_one_out_is_refused(
    expression: dict[str, Any], message: str
) -> None:
    for layer in ("enforce", "steps"):
        with pytest.raises(StepError, match=message) as caught:
            run(pod(affinity=terms([expression])), type="h100-80", layer=layer)
        assert "spec.affinity" in str(caught.value)


def test_a_term_that_would_say_nothing_is_refused() -> None:
    bare = {"anything": {"resource": "nvidia.com/gpu"}, **ENTRIES}
    given = pod(affinity=terms([is_in(GKE, "nvidia-l4")], [ZONE_A]))
    with pytest.raises(StepError, match=r"about the accelerator alone, and anything has nothing"):
        run(given, type="anything", catalogue=Catalogue(bare))


def test_the_runtime_class_of_the_old_one_goes_and_another_stays() -> None:
    old = pod(
        affinity=terms([is_in("node.kubernetes.io/instance-type", "p4")]), runtimeClassName="team"
    )
    assert "runtimeClassName" not in run(old, type="l4").after["spec"]
    old["spec"]["runtimeClassName"] = "gvisor"
    assert run(old, type="l4").after["spec"]["runtimeClassName"] == "gvisor"


def test_what_an_old_one_set_besides_goes_if_it_is_a_device() -> None:
    entries = {
        **ENTRIES,
        "efa": {
            "resource": "nvidia.com/gpu",
            "node_selector": {"pool": "efa"},
            "limits": {"vpc.amazonaws.com/efa": "4", "memory": "1Ti"},
        },
    }
    catalogue = Catalogue(entries)
    there = run(pod(), type="efa", catalogue=catalogue).after
    limits = there["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": "4", "memory": "1Ti"}
    back = run(there, type="l4", catalogue=catalogue).after["spec"]["containers"][0]["resources"]
    assert back["limits"] == {"nvidia.com/gpu": 1, "memory": "1Ti"}


# Flyte -------------------------------------------------------------------------------------------


def task(kind: str = "python-task", gpus: Any = "1", **more: Any) -> dict[str, Any]:
    requests = [{"name": "GPU", "value": gpus}] if gpus else []
    resources = {"requests": requests, "limits": requests}
    return {
        "id": {"name": "pipeline.train"},
        "type": kind,
        "container": {"image": "img", "args": ["run"], "resources": resources},
        **more,
    }


def device(name: str, **more: Any) -> dict[str, Any]:
    return {"gpuAccelerator": {"device": name, **more}}


def test_a_task_that_flyte_places_keeps_its_container() -> None:
    given = task(extendedResources=device("nvidia-tesla-t4"))
    result = run(given, type="v100", count=2)
    assert result.after["extendedResources"] == device("nvidia-tesla-v100")
    two = [{"name": "GPU", "value": "2"}]
    assert result.after["container"]["resources"] == {"requests": two, "limits": two}
    assert "k8sPod" not in result.after
    assert run(result.after, type="t4", count=1).after == given


def test_a_task_without_an_accelerator_gets_one() -> None:
    assert run(task(), type="v100").after == {
        **task(),
        "extendedResources": device("nvidia-tesla-v100"),
    }


def test_a_whole_gpu_that_must_be_whole_stays_so() -> None:
    given = task(extendedResources=device("nvidia-tesla-t4", unpartitioned=True))
    found = run(given, type="v100").after["extendedResources"]
    assert found == device("nvidia-tesla-v100", unpartitioned=True)


def test_a_slice_is_a_partition_of_the_device() -> None:
    given = task(extendedResources=device("nvidia-tesla-t4", unpartitioned=True))
    with pytest.raises(StepError, match="`count` must be given"):
        run(given, type="p100-slice")
    there = run(given, type="p100-slice", count=1).after
    assert there["extendedResources"] == device("nvidia-tesla-p100", partitionSize="1g.5gb")
    with pytest.raises(StepError, match="`count` must be given"):
        run(there, type="v100")
    assert run(there, type="v100", count=1).after["extendedResources"] == device(
        "nvidia-tesla-v100"
    )


def test_a_task_that_flyte_cannot_place_becomes_a_pod_and_leaves_flyte_nothing_to_place() -> None:
    shared = {"sharedMemory": {"mountPath": "/dev/shm"}}
    given = task(extendedResources={**device("nvidia-tesla-a100"), **shared})
    after = run(given, type="h100-80").after
    assert after["extendedResources"] == shared
    spec = after["k8sPod"]["podSpec"]
    assert spec["nodeSelector"] == {GKE: "nvidia-h100-80gb"}
    assert spec["tolerations"] == [TAINT, H100_TAINT]
    alone = run(task(extendedResources=device("nvidia-tesla-a100")), type="h100-80").after
    assert "extendedResources" not in alone


def test_the_default_device_label_is_not_gkes() -> None:
    after = run(task(), type="v100", catalogue=Catalogue(ENTRIES)).after
    assert "extendedResources" not in after
    assert after["k8sPod"]["podSpec"]["nodeSelector"] == {GKE: "nvidia-tesla-v100"}


def test_what_flyte_places_is_taken_off_the_pod() -> None:
    container = {"name": "primary", "image": "img", "resources": {"limits": {"gpu": "1"}}}
    spec = {
        "containers": [container],
        "nodeSelector": {GKE: "nvidia-h100-80gb"},
        "tolerations": [TAINT, H100_TAINT],
        "affinity": terms([ZONE_A, is_in(GKE, "nvidia-h100-80gb")]),
    }
    given = {"id": {"name": "t"}, "type": "python-task", "k8sPod": {"podSpec": spec}}
    after = run(given, type="v100").after
    assert after["extendedResources"] == device("nvidia-tesla-v100")
    container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    assert after["k8sPod"]["podSpec"] == {"containers": [container], "affinity": terms([ZONE_A])}


def test_flytekits_name_of_the_resource_is_read_and_the_full_one_written() -> None:
    container = {
        "name": "primary",
        "image": "img",
        "resources": {"requests": {"gpu": "1"}, "limits": {"gpu": "1"}},
    }
    given = {"type": "python-task", "k8sPod": {"podSpec": {"containers": [container]}}}
    found = run(given, type="l4", count=2).after["k8sPod"]["podSpec"]["containers"][0]["resources"]
    assert found == {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}
    found = run(given, type="mi300x").after["k8sPod"]["podSpec"]["containers"][0]["resources"]
    assert found == {"requests": {"amd.com/gpu": "1"}, "limits": {"amd.com/gpu": "1"}}


def test_what_flyte_put_on_a_pod_is_recognised_at_admission() -> None:
    def placed(name: str) -> dict[str, Any]:
        return pod(
            affinity=terms([is_in(GKE, name), {"key": PARTITION, "operator": "DoesNotExist"}]),
            tolerations=[{"key": GKE, "operator": "Equal", "value": name, "effect": "NoSchedule"}],
        )

    there = run(placed("nvidia-tesla-t4"), type="v100").after
    assert there == placed("nvidia-tesla-v100")
    own = run(there, type="mi300x").after["spec"]
    assert own["affinity"] == terms(
        [is_in("pool.example.com/gpu", "mi300x"), {"key": PARTITION, "operator": "DoesNotExist"}]
    )
    assert own["tolerations"] == [AMD_TAINT]


def test_a_slice_that_flyte_placed_is_taken_off_at_admission() -> None:
    size = {"key": PARTITION, "operator": "Equal", "value": "2g.10gb", "effect": "NoSchedule"}
    given = pod(
        affinity=terms([is_in(GKE, "nvidia-tesla-t4"), is_in(PARTITION, "2g.10gb")]),
        tolerations=[size],
    )
    spec = run(given, type="h100-80", count=1).after["spec"]
    assert spec["affinity"] == terms([is_in(GKE, "nvidia-h100-80gb")])
    assert spec["tolerations"] == [TAINT, H100_TAINT]
    slices = run(given, type="p100-slice", count=1).after["spec"]
    assert slices["affinity"] == terms(
        [is_in(GKE, "nvidia-tesla-p100"), is_in(PARTITION, "1g.5gb")]
    )


# the roles of a task -----------------------------------------------------------------------------


def replica(**resources: str) -> dict[str, Any]:
    entries = [{"name": name, "value": value} for name, value in resources.items()]
    return {"replicas": 1, "resources": {"requests": entries, "limits": entries}}


def test_roles_that_share_a_pod_spec_are_placed_together_if_all_ask() -> None:
    custom = {"masterReplicas": replica(GPU="1"), "workerReplicas": replica(GPU="2")}
    after = run(task("pytorch", gpus=None, custom=custom), type="h100-80").after
    assert after["k8sPod"]["podSpec"]["nodeSelector"] == {GKE: "nvidia-h100-80gb"}
    assert after["custom"] == custom


def test_the_numbers_of_replicas_are_set_where_they_stand() -> None:
    custom = {"masterReplicas": {"replicas": 1}, "workerReplicas": replica(GPU="2")}
    after = run(task("pytorch", gpus="1", custom=custom), type="h100-80", count=8).after
    worker = after["custom"]["workerReplicas"]["resources"]
    assert worker == {part: [{"name": "GPU", "value": "8"}] for part in ("requests", "limits")}
    assert after["custom"]["masterReplicas"] == {"replicas": 1}
    limits = after["k8sPod"]["podSpec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "8"}


@pytest.mark.parametrize(
    ("gpus", "custom"),
    [
        (None, {"launcherReplicas": replica(CPU="1"), "workerReplicas": replica(GPU="1")}),
        ("1", {"launcherReplicas": replica(CPU="1"), "workerReplicas": {"replicas": 2}}),
    ],
)
def test_roles_of_which_only_some_ask_wait_for_admission(gpus: Any, custom: dict[str, Any]) -> None:
    given = task("mpi", gpus=gpus, custom=custom)
    result = run(given, type="h100-80")
    assert result.until == "admit"
    assert result.deferred == ("gpu",)
    assert result.after == given


def test_flyte_places_each_role_of_kubeflow_by_its_own_resources() -> None:
    custom = {"launcherReplicas": replica(CPU="1"), "workerReplicas": replica(GPU="1")}
    given = task("mpi", gpus=None, custom=custom, extendedResources=device("nvidia-tesla-t4"))
    after = run(given, type="v100").after
    assert after == {**given, "extendedResources": device("nvidia-tesla-v100")}


def test_roles_whose_numbers_lead_to_different_machines_wait_for_admission() -> None:
    custom = {"masterReplicas": replica(GPU="1"), "workerReplicas": replica(GPU="2")}
    assert run(task("pytorch", gpus=None, custom=custom), type="machine").until == "admit"


def test_a_replica_cannot_ask_for_another_resource() -> None:
    custom = {"masterReplicas": replica(GPU="1"), "workerReplicas": replica(GPU="2")}
    with pytest.raises(StepError, match=r"a replica of a task template cannot ask for amd.com/gpu"):
        run(task("pytorch", gpus=None, custom=custom), type="mi300x")


# Ray ---------------------------------------------------------------------------------------------


def ray_task(*, gpus: Any, group: Any = None, head: Any = "1", **spec: Any) -> dict[str, Any]:
    worker: dict[str, Any] = {"groupName": "g", "rayStartParams": {"num-gpus": "1"}}
    if group is not None:
        container = {"name": "ray-worker", "resources": {"limits": {"nvidia.com/gpu": group}}}
        worker["k8sPod"] = {"podSpec": {"containers": [container], **spec}}
    cluster = {"headGroupSpec": {"rayStartParams": {"num-gpus": head}}, "workerGroupSpec": [worker]}
    return task("ray", gpus=gpus, custom={"rayCluster": cluster})


def test_rays_own_numbers_follow_where_they_are_set() -> None:
    cluster = run(ray_task(gpus="1"), type="l4", count=4).after["custom"]["rayCluster"]
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-gpus": "4"}
    assert cluster["workerGroupSpec"][0]["rayStartParams"] == {"num-gpus": "4"}
    unset = ray_task(gpus="1", head="0")
    unset["custom"]["rayCluster"]["workerGroupSpec"][0]["rayStartParams"] = {"block": "true"}
    cluster = run(unset, type="l4", count=4).after["custom"]["rayCluster"]
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-gpus": "0"}
    assert cluster["workerGroupSpec"][0]["rayStartParams"] == {"block": "true"}


def test_a_group_alone_is_placed_in_its_own_pod() -> None:
    given = ray_task(gpus=None, group="1", nodeSelector={GKE: "nvidia-tesla-t4"})
    after = run(given, type="v100", count=2).after
    assert "extendedResources" not in after  # FlytePropeller looks at the task's own pod alone
    assert after["container"] == given["container"]
    group = after["custom"]["rayCluster"]["workerGroupSpec"][0]
    assert group["k8sPod"]["podSpec"]["nodeSelector"] == {GKE: "nvidia-tesla-v100"}
    assert group["rayStartParams"] == {"num-gpus": "2"}
    assert after["custom"]["rayCluster"]["headGroupSpec"]["rayStartParams"] == {"num-gpus": "1"}


def test_a_group_has_its_placement_from_the_pod_below_it() -> None:
    given = ray_task(gpus="1", group="2", nodeSelector={GKE: "nvidia-tesla-t4"})
    after = run(given, type="h100-80").after
    assert after["k8sPod"]["podSpec"]["nodeSelector"] == {GKE: "nvidia-h100-80gb"}
    group = after["custom"]["rayCluster"]["workerGroupSpec"][0]["k8sPod"]["podSpec"]
    assert "nodeSelector" not in group
    assert group["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    placed = run(given, type="v100").after
    assert placed["extendedResources"] == device("nvidia-tesla-v100")
    assert "k8sPod" not in placed
    group = placed["custom"]["rayCluster"]["workerGroupSpec"][0]["k8sPod"]["podSpec"]
    assert "nodeSelector" not in group


def test_what_a_group_has_from_a_pod_that_does_not_change_waits_for_admission() -> None:
    given = ray_task(gpus=None, group="1")
    container = given.pop("container")
    spec = {
        "containers": [{"name": "primary", "image": container["image"]}],
        "nodeSelector": {GKE: "nvidia-tesla-t4"},
    }
    given["k8sPod"] = {"podSpec": spec}
    assert run(given, type="h100-80").until == "admit"
    spec["nodeSelector"] = {GKE: "nvidia-h100-80gb"}
    assert run(given, type="h100-80").until is None


def test_the_numbers_of_a_ray_job() -> None:
    def group(**more: Any) -> dict[str, Any]:
        return {
            "rayStartParams": {"num-gpus": "1"},
            "template": {"spec": {"containers": [main(1)]}},
            **more,
        }

    given = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "r"},
        "spec": {
            "rayClusterSpec": {
                "headGroupSpec": group(),
                "workerGroupSpecs": [group(groupName="big"), group(groupName="small")],
            }
        },
    }
    result = run(given, type="l4", count=4, when={"role": "worker:big"})
    cluster = result.after["spec"]["rayClusterSpec"]
    params = [g["rayStartParams"]["num-gpus"] for g in cluster["workerGroupSpecs"]]
    assert params == ["4", "1"]
    assert cluster["headGroupSpec"] == group()


# the parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "h100-8"}, r"type: no accelerator 'h100-8'; did you mean h100-80"),
        ({}, r"the parameter 'type' is required"),
        ({"type": "l4", "count": 0}, r"count: .*greater than or equal to 1"),
        ({"type": "l4", "count": "many"}, r"count: .*integer"),
        ({"type": "l4", "number": 1}, r"no parameter 'number'.*count"),
    ],
)
def test_parameters_are_checked_when_they_are_read(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        run(pod(), **given)


def test_as_a_default_it_is_kept_whole_or_not_at_all() -> None:
    assert run(pod(), type="l4", layer="defaults").after["spec"]["nodeSelector"] == {
        GKE: "nvidia-l4"
    }
    given = pod(nodeSelector={GKE: "nvidia-tesla-t4"})
    assert run(given, type="l4", layer="defaults").patch() == []
