"""What flytekit serializes under a chain is what an author would have written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from flytekit import ContainerTask, PodTemplate, dynamic, kwtypes, map_task, task
from flytekit.extras.accelerators import A100, L4, T4, V100
from flytekitplugins.dask import Dask, Scheduler, WorkerGroup
from flytekitplugins.kfmpi import Launcher, MPIJob
from flytekitplugins.kfmpi import Worker as MPIWorker
from flytekitplugins.kfpytorch import Elastic, Master, PyTorch, Worker
from flytekitplugins.kftensorflow import PS, Chief, TfJob
from flytekitplugins.kftensorflow import Worker as TFWorker
from flytekitplugins.ray import HeadNodeConfig, RayJobConfig, WorkerNodeConfig
from flytekitplugins.spark import Spark
from kubernetes.client import V1Container, V1PodSpec, V1Toleration

from kubetailor.plugins.flyte.messages import as_json
from kubetailor.plugins.flyte.serialization import SerializationError
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.undo import UNDO

JOBS = {"pytorch", "tensorflow", "mpi", "ray", "spark", "dask"}
"""Task types whose pods have labels of their own."""


LEFT_EMPTY = ("annotations", "config")
"""Where stamp and way back are."""


def bare(template: Any) -> dict[str, Any]:
    """A template without stamp and way back, and without what these leave empty."""
    found = as_json(template)

    def strip(node: Any) -> Any:
        if isinstance(node, list):
            return [strip(item) for item in node]
        if not isinstance(node, dict):
            return node
        kept = {key: strip(item) for key, item in node.items() if key not in (STAMP, UNDO)}
        return {key: item for key, item in kept.items() if item or key not in LEFT_EMPTY}

    return dict(strip(found))


def stamp_at(template: Any, *path: str) -> dict[str, Any]:
    node: Any = as_json(template)
    for key in (*path, "annotations", STAMP):
        node = node[key]
    return dict(json.loads(node))


# no config, no change ----------------------------------------------------------------------------


@pytest.mark.parametrize("config", [None, "chains: {}", "chains: {default: {steps: []}}"])
def test_without_a_chain_the_protobufs_are_flytekits_own(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any], config: str | None
) -> None:
    from kubetailor.plugins.flyte.install import left_alone

    if config is not None:
        configure(config)
    with left_alone():
        expected = flyte.protobufs(flyte.serialize(zoo.everything, zoo.overridden))
        expected_fast = flyte.protobufs(flyte.serialize(zoo.everything, fast=True))
    assert flyte.protobufs(flyte.serialize(zoo.everything, zoo.overridden)) == expected
    assert flyte.protobufs(flyte.serialize(zoo.everything, fast=True)) == expected_fast


@pytest.mark.parametrize("condition", ["{domain: production}", "{requests: amd.com/gpu}"])
def test_a_chain_of_which_no_step_applies_changes_nothing(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any], condition: str
) -> None:
    expected = flyte.protobufs(flyte.serialize(zoo.everything, zoo.overridden))
    configure(f"""
        chains:
          default:
            steps: [{{use: priority_class, with: {{name: x}}, when: {condition}}}]
    """)
    assert flyte.protobufs(flyte.serialize(zoo.everything, zoo.overridden)) == expected


# as if written by hand ---------------------------------------------------------------------------


def work(x: int) -> int:
    return x


def shard(i: int) -> int:
    return i


IMAGE = "example.com/train:1"
GROUP = WorkerNodeConfig(group_name="gpu", replicas=2)
CONFIGS: dict[str, Callable[[], Any]] = {
    "python": lambda: None,
    "pytorch": lambda: PyTorch(
        master=Master(), worker=Worker(replicas=3), increase_shared_mem=False
    ),
    "elastic-1": lambda: Elastic(nnodes=1, increase_shared_mem=False),
    "elastic-4": lambda: Elastic(nnodes=4, increase_shared_mem=False),
    "mpi": lambda: MPIJob(launcher=Launcher(replicas=1), worker=MPIWorker(replicas=2)),
    "tensorflow": lambda: TfJob(
        chief=Chief(replicas=1), ps=PS(replicas=1), worker=TFWorker(replicas=2)
    ),
    "ray": lambda: RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params={"n": "1"}), worker_node_config=[GROUP]
    ),
    "dask": lambda: Dask(scheduler=Scheduler(), workers=WorkerGroup(number_of_workers=2)),
    "spark": lambda: Spark(spark_conf={"spark.executor.instances": "2"}),
}


def by_hand(task_type: str) -> PodTemplate:
    # FlytePropeller sets it on containers of its own alone, so an author who turns one into a pod
    # has to say it, or the error of a failed task loses the end of its log. Spark has no place.
    said = {} if task_type == "spark" else {"termination_message_policy": "FallbackToLogsOnError"}
    return PodTemplate(
        labels={"team": "speech"} if task_type in JOBS else None,
        pod_spec=V1PodSpec(
            containers=[V1Container(name="primary", **said)],
            tolerations=[
                V1Toleration(key="example.com/spot", operator="Exists", effect="NoSchedule")
            ],
            node_selector={"example.com/pool": "spot"},
            priority_class_name="batch-low",
        ),
    )


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_task_of_every_kind(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any], kind: str
) -> None:
    common: dict[str, Any] = {**zoo.GPU, "container_image": IMAGE, "accelerator": T4}

    def make(**arguments: Any) -> Any:
        with zoo.torch_can_be_imported():
            return task(task_config=CONFIGS[kind](), **{**common, **arguments})(work)

    author = make(environment={"A": "1"})
    own_labels = author.task_type in JOBS
    expected = flyte.template_of(
        make(
            environment={"A": "1", "NEW": "2"},
            labels={"team": "speech"},
            pod_template=by_hand(author.task_type),
        )
    )
    configure(flyte.CONFIG)
    found = flyte.template_of(author)
    assert bare(found) == bare(expected)
    assert found.HasField("k8s_pod")
    stamp = stamp_at(found, "metadata", "metadata")
    if own_labels:
        assert stamp_at(found, "k8sPod", "metadata") == stamp
    assert stamp["task"] == found.id.name
    assert stamp["digest"].startswith("sha256:")
    rest = {key: value for key, value in stamp.items() if key not in ("task", "digest")}
    assert rest == {
        "chain": "default",
        "version": "v1",
        "override": None,
        "done": 5,
        "deferred": [],
    }


DEVICES: list[tuple[str, Any]] = [
    ("nvidia-a100-40gb", A100),
    ("nvidia-l4", L4),
    ("nvidia-t4", T4),
    ("nvidia-a100-40gb-2g.10gb", A100.partition_2g_10gb),
    ("mine", V100),
]
"""Accelerators whose whole placement Propeller makes where it is set as `PROPELLER` says."""

PROPELLER = """
flyte:
  device_label: cloud.google.com/gke-accelerator
  partition_label: cloud.google.com/gke-gpu-partition-size
accelerators:
  mine: {extends: nvidia-v100, tolerations: []}
chains: {default: {steps: [{use: gpu, with: {type: %s, count: 2}}]}}
"""


@pytest.mark.parametrize("author", [None, T4, A100.partition_1g_5gb])
@pytest.mark.parametrize(("entry", "accelerator"), DEVICES, ids=[row[0] for row in DEVICES])
def test_gpu_is_flytekits_accelerator_where_propeller_places_it(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    entry: str,
    accelerator: Any,
    author: Any,
) -> None:
    def make(accelerator: Any) -> Any:
        return task(container_image=IMAGE, accelerator=accelerator, **zoo.GPU)(work)

    expected = flyte.template_of(make(accelerator))
    configure(PROPELLER % entry)
    found = flyte.template_of(make(author))
    assert bare(found) == bare(expected)
    assert found.HasField("container"), "all else is left to Propeller"
    assert found.extended_resources == expected.extended_resources


def test_an_author_who_wants_no_slice_gets_none_of_another_gpu_either(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    configure(PROPELLER % "nvidia-l4")
    author = task(container_image=IMAGE, accelerator=A100.unpartitioned, **zoo.GPU)(work)
    device = as_json(flyte.template_of(author))["extendedResources"]["gpuAccelerator"]
    assert device == {"device": "nvidia-l4", "unpartitioned": True}


@pytest.mark.parametrize("container", [True, False], ids=["container", "pod template"])
def test_annotations_are_flytekits_annotations(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any], container: bool
) -> None:
    pod = {} if container else {"pod_template": zoo.sidecar_template()}

    def make(**annotations: str) -> Any:
        return task(container_image=IMAGE, annotations=annotations, **zoo.CPU, **pod)(work)

    expected = flyte.template_of(make(mine="1", note="new", empty=""))
    configure(
        "chains: {default: {steps: [{use: annotations, with: {set: {note: new, empty: ''}}}]}}"
    )
    found = flyte.template_of(make(mine="1", note="old"))
    assert bare(found) == bare(expected)


def test_a_map_task_and_a_dynamic_task(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    def make(**arguments: Any) -> list[Any]:
        common: dict[str, Any] = {**zoo.CPU, "container_image": IMAGE, **arguments}
        return [map_task(task(**common)(shard)), dynamic(**common)(work)]

    authors = make()
    hand = make(
        environment={"NEW": "2"}, labels={"team": "speech"}, pod_template=by_hand("python-task")
    )
    expected = [flyte.template_of(entity) for entity in hand]
    configure(flyte.CONFIG)
    found = [flyte.template_of(entity) for entity in authors]
    assert "pyflyte-map-execute" in str(found[0])
    assert bare(found[0]) == bare(expected[0])
    # A dynamic task's environment has the whole settings; flytekit has them before the task's own
    # variables, and a pod template's variables before both.
    by_author, ours = bare(expected[1]), bare(found[1])
    assert [entry["name"] for entry in primary_env(ours)] == ["_F_SS_C", "NEW"]
    primary_env(by_author).sort(key=lambda entry: entry["name"] == "NEW")
    assert ours == by_author


def primary_env(template: dict[str, Any]) -> list[Any]:
    found: list[Any] = template["k8sPod"]["podSpec"]["containers"][0]["env"]
    return found


def test_a_container_task_keeps_its_data(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    def make(**arguments: Any) -> Any:
        return ContainerTask(
            name="raw",
            image="example.com/raw:1",
            input_data_dir="/in",
            output_data_dir="/out",
            inputs=kwtypes(x=int),
            outputs=kwtypes(y=int),
            command=["sh", "-c", "echo {{.inputs.x}}"],
            **zoo.CPU,
            **arguments,
        )

    hand = make(environment={"NEW": "2"}, pod_template=by_hand("raw-container"))
    expected = bare(flyte.template_of(hand))
    expected["metadata"]["metadata"] = {"labels": {"team": "speech"}}  # it takes no labels
    configure(flyte.CONFIG)
    found = flyte.template_of(make())
    assert bare(found) == expected
    assert found.k8s_pod.data_config.input_path == "/in"


def test_an_authors_pod_template_and_the_pod_plugin(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    before = {
        name: as_json(flyte.template_of(entity))
        for name, entity in (("t", zoo.with_sidecar), ("p", zoo.pod_plugin))
    }
    configure(flyte.CONFIG)
    for name, entity in (("t", zoo.with_sidecar), ("p", zoo.pod_plugin)):
        found, expected = bare(flyte.template_of(entity)), before[name]
        spec = expected["k8sPod"]["podSpec"]
        spec["tolerations"] = [
            *spec.get("tolerations", []),
            {"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"},
        ]
        spec["nodeSelector"] = {"example.com/pool": "spot"}
        spec["priorityClassName"] = "batch-low"
        env = spec["containers"][0].setdefault("env", [])
        env.append({"name": "NEW", "value": "2"})
        expected["metadata"]["metadata"] = {"labels": {"team": "speech"}}
        assert found == expected


def test_what_only_a_container_needs_leaves_it_a_container(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    configure("""
        chains:
          default:
            steps:
              - {use: env, with: {set: {A: "2"}}}
              - {use: kueue, with: {queue: q}}
              - {use: resources, with: {limits: {cpu: "2"}}}
    """)
    found = as_json(flyte.template_of(zoo.prepare))
    assert found["container"]["env"] == [
        {"key": "A", "value": "2"},
        {"key": "EMPTY"},
    ]
    assert found["container"]["resources"]["limits"] == [{"name": "CPU", "value": "2"}]
    assert found["metadata"]["metadata"]["labels"] == {
        "team": "vision",
        "kueue.x-k8s.io/queue-name": "q",
    }
    # The stamp needs no pod either: what Propeller makes of a container has the object's metadata.
    assert "k8sPod" not in found


def test_pod_template_name_and_the_rest_of_the_metadata_stay(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    before = as_json(flyte.template_of(zoo.named_template))
    configure(flyte.CONFIG)
    after = as_json(flyte.template_of(zoo.named_template))
    assert after["metadata"]["podTemplateName"] == "team-template"
    assert after["extendedResources"] == before["extendedResources"]
    for metadata in (before["metadata"], after["metadata"]):
        del metadata["metadata"]
    assert after["metadata"] == before["metadata"]


def test_groups_of_ray_and_spark_are_stamped(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    template = PodTemplate(
        primary_container_name="ray-head",
        pod_spec=V1PodSpec(containers=[V1Container(name="ray-head")], priority=3),
    )
    ray = task(
        container_image=IMAGE,
        task_config=RayJobConfig(
            head_node_config=HeadNodeConfig(pod_template=template), worker_node_config=[GROUP]
        ),
    )(work)
    spark = task(
        container_image=IMAGE,
        task_config=Spark(
            driver_pod=PodTemplate(
                primary_container_name="primary",
                labels={"team": "mine"},
                pod_spec=V1PodSpec(containers=[]),
            )
        ),
    )(work)
    configure(flyte.CONFIG)
    found = flyte.template_of(ray)
    head = ("custom", "rayCluster", "headGroupSpec", "k8sPod", "metadata")
    assert stamp_at(found, *head) == stamp_at(found, "metadata", "metadata")
    spec = as_json(found)["custom"]["rayCluster"]["headGroupSpec"]["k8sPod"]["podSpec"]
    assert spec["priority"] == 3
    assert type(spec["priority"]) is int
    found = flyte.template_of(spark)
    assert stamp_at(found, "custom", "driverPod", "metadata")["chain"] == "default"
    assert "executorPod" not in as_json(found)["custom"]
    # A group's own label would beat the execution's.
    assert "labels" not in as_json(found)["custom"]["driverPod"]["metadata"]


# fast registration, isolation, order --------------------------------------------------------------


def test_fast_registration_runs_the_chain_once_over_what_is_registered(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    configure(flyte.CONFIG)
    found = flyte.templates(flyte.serialize(zoo.train, zoo.with_sidecar, fast=True))
    for template in found.values():
        spec = as_json(template)["k8sPod"]["podSpec"]
        assert spec["containers"][0]["args"][0] == "pyflyte-fast-execute"
        keys = [entry["key"] for entry in spec["tolerations"]]
        assert keys.count("example.com/spot") == 1


def test_tasks_share_nothing(flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]) -> None:
    shared = zoo.sidecar_template()
    common: dict[str, Any] = {"container_image": IMAGE, "pod_template": shared}
    one, other = task(**common)(work), task(**common)(shard)
    before = flyte.template_of(other)
    configure(f"""
        chains:
          default:
            steps:
              - {{use: env, with: {{set: {{NEW: "2"}}}}, when: {{task: "{one.name}"}}}}
    """)
    assert "NEW" in str(flyte.template_of(one))
    assert flyte.template_of(other) == before


def test_the_order_is_the_configs(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    steps = [
        f"{{use: node_selector, with: {{set: {{pool: {name}}}}}}}" for name in ("first", "second")
    ]
    for order in (steps, steps[::-1]):
        configure(f"chains: {{default: {{steps: [{', '.join(order)}]}}}}")
        spec = as_json(flyte.template_of(zoo.prepare))["k8sPod"]["podSpec"]
        assert spec["nodeSelector"] == {"pool": "second" if order is steps else "first"}


# what is not known yet ----------------------------------------------------------------------------

LATE = """
phases: [serialize, launch]
chains:
  default:
    steps:
      - {use: priority_class, with: {name: x}}
      - {use: labels, with: {set: {a: b}}, when: {node: n0}}
      - {use: env, with: {set: {A: B}}}
"""


def test_what_waits_is_stamped_and_said_once(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(LATE)
    found = flyte.templates(flyte.serialize(zoo.prepare, zoo.train))
    for template in found.values():
        stamp = stamp_at(template, "metadata", "metadata")
        assert (stamp["done"], stamp["deferred"]) == (1, ["labels", "env"])
        assert as_json(template)["k8sPod"]["podSpec"]["priorityClassName"] == "x"
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "kubetailor: labels, env wait for the phase launch: node is not known yet"
    ]


def test_a_select_that_cannot_be_decided_leaves_all_to_the_next_phase(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(
        LATE
        + "select: [{when: {domain: production}, chain: default}, {when: {domain: x}, chain: null}]"
    )
    before = flyte.template_of(zoo.prepare, domain="x")
    found = flyte.template_of(zoo.prepare, domain=None)
    stamp = stamp_at(found, "metadata", "metadata")
    assert (stamp["chain"], stamp["done"], stamp["deferred"]) == (None, 0, [])
    assert found.container == before.container
    assert "the whole chain waits for the phase launch: domain" in capsys.readouterr().err
    monkeypatch.setenv("KUBETAILOR_TASK", "domain=production")
    found = flyte.template_of(zoo.prepare, domain=None)
    assert stamp_at(found, "metadata", "metadata")["chain"] == "default"


def test_without_a_later_phase_it_is_an_error(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any]
) -> None:
    path = configure(LATE.replace("phases: [serialize, launch]", ""))
    with pytest.raises(SerializationError) as error:
        flyte.serialize(zoo.prepare)
    for part in (str(path), "step 'labels'", "zoo.prepare", "node", "phases"):
        assert part in str(error.value)


def test_warnings_name_the_task(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure("chains: {default: {steps: [{use: kueue, with: {queue: q}}]}}")
    flyte.serialize(zoo.dask_job)
    said = capsys.readouterr().err
    assert said.startswith("kubetailor: task zoo.dask_job: step 'kueue'")
    assert said.count("\n") == 1


def test_in_a_task_pod_only_a_named_config_counts(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = configure(flyte.CONFIG)
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "a7k")
    assert flyte.template_of(zoo.prepare).HasField("container")
    monkeypatch.setenv("KUBETAILOR_CONFIG", str(path))
    assert flyte.template_of(zoo.prepare).HasField("k8s_pod")


def test_a_chain_can_be_forced(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(flyte.CONFIG + "select: []")
    assert flyte.template_of(zoo.prepare).HasField("container")
    monkeypatch.setenv("KUBETAILOR_CHAIN", "default")
    assert flyte.template_of(zoo.prepare).HasField("k8s_pod")


# bad input ----------------------------------------------------------------------------------------


def test_a_failing_step_is_said_with_its_place(
    flyte: Any, zoo: ModuleType, folder: Any, configure: Callable[[str], Any]
) -> None:
    (folder / "team.py").write_text(
        "from kubetailor.registry import Pod, transformer\n\n"
        "@transformer\ndef boom(pod: Pod) -> None:\n    raise ValueError('broken')\n"
    )
    path = configure("plugins: [./team.py]\nchains: {default: {steps: [{use: team.boom}]}}")
    with pytest.raises(SerializationError) as error:
        flyte.serialize(zoo.prepare)
    for part in (
        f"{path}:2:",
        "step 'team.boom'",
        "plugin team",
        "zoo.prepare",
        "broken",
        "team.py:5",
    ):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("chains: [", ":1:"),
        ("", "empty"),
        ("plugins: [no_such_plugin]\nchains: {default: {}}", "no_such_plugin"),
        ("chains: {default: {steps: [{use: tolerations_}]}}", "tolerations"),
    ],
)
def test_a_broken_config_is_said_when_a_task_is_serialized(
    flyte: Any, zoo: ModuleType, configure: Callable[[str], Any], text: str, part: str
) -> None:
    path = configure(text)
    with pytest.raises(SerializationError, match=part) as error:
        flyte.serialize(zoo.prepare)
    assert str(path) in str(error.value)
    # Mended, it is read again.
    configure(flyte.CONFIG)
    assert flyte.template_of(zoo.prepare).HasField("k8s_pod")
