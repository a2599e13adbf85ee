"""One registration and many executions: what an override changes, on real control planes.

Everything here is registered once, by `pyflyte register` without a config.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kubetailor.plugins.client.overrides import Overrides
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.webhook.reload import load_tailor
from kubetailor.registry import Override
from kubetailor.registry.overrides.document import OVERRIDE

from .conftest import MakeLauncher, MakeWebhook, RegisterOnce
from .executions import FOLDER, Launcher, creations, registered, version_of
from .overridden import (
    A100,
    CONFIG,
    DOMAIN,
    H100,
    NAMESPACE,
    ON_H100,
    SWAP,
    ZOO,
    annotation,
    labels_of,
    nodes,
    placed,
    pods_of,
)
from .queues import Queues
from .reproduced import reproduced
from .stack.client import Client
from .stack.core import Core
from .stack.process import Process
from .stack.pyflyte import PROJECT, Pyflyte


@pytest.fixture(scope="module")
def pools(client: Client, kwok: Process, kubelet: Process) -> Iterator[None]:
    """Two pools of GPUs, and a node whose pods run as processes."""
    made = nodes()
    for obj in made:
        client.create(obj)
    yield
    for obj in made:
        client.delete("v1", "Node", None, obj["metadata"]["name"])


@pytest.fixture
def queues(client: Client, kueue: Process) -> Iterator[Queues]:
    """A flavour for each pool, the A100s first."""
    found = Queues(
        client, NAMESPACE, gpus=16, flavors={A100: labels_of("a100"), H100: labels_of("h100")}
    )
    yield found
    found.forget()


@pytest.fixture
def launch(
    pools: None, pyflyte: Pyflyte, register_once: RegisterOnce, launcher: MakeLauncher
) -> Iterator[Launcher]:
    """Launches what is registered; no more than that is at the end of the test.

    FlyteAdmin keeps a workflow and a launch plan of its own for each task that is launched alone.
    """
    register_once(ZOO, DOMAIN)
    remote = pyflyte.remote(DOMAIN)
    before = registered(remote)
    yield launcher(ZOO)
    more = registered(remote) - before
    assert [name for _, name, _ in more if not name.startswith(".flytegen.")] == []


PODS: Final = 6
"""Of `training`: one, other, two of the map, master and worker of the job."""


def all_on(pool: str) -> dict[str, set[str]]:
    """Where `training` is."""
    return {name: {pool} for name in ("one", "other", "map", "job")}


def test_one_registration_runs_on_either_gpu(
    client: Client, webhook: MakeWebhook, launch: Launcher
) -> None:
    server = webhook(CONFIG, NAMESPACE)
    assert placed(client, launch("training", "gpu-plain"), PODS) == all_on(A100)

    swapped = launch("training", "gpu-override", annotations=annotation(SWAP))
    assert placed(client, swapped, PODS) == all_on(H100)

    # Nothing of it is left for the next.
    assert placed(client, launch("inner", "gpu-plain-again"), 1) == {"train": {A100}}
    server.reload(ON_H100)
    assert placed(client, launch("training", "gpu-config"), PODS) == all_on(H100)


@pytest.mark.parametrize("target", ["other", "map", "job"])
def test_one_node_is_overridden_alone(
    target: str, client: Client, webhook: MakeWebhook, launch: Launcher
) -> None:
    """`one`, `other` and `map` run one and the same task."""
    webhook(CONFIG, NAMESPACE)
    run = launch("training", f"gpu-{target}", annotations=annotation(SWAP.on(node=target)))

    where = placed(client, run, PODS)

    assert {name for name, nodes in where.items() if nodes == {H100}} == {target}
    assert {name for name, nodes in where.items() if nodes == {A100}} == where.keys() - {target}


@pytest.mark.parametrize(
    ("override", "moved"),
    [
        (SWAP, {"train", "sub", "child"}),
        (SWAP.on(node="sub.train"), {"sub"}),
        (SWAP.on(node="train"), {"train", "child"}),
        (SWAP.on(workflow="*.inner").optional(), {"child"}),
    ],
    ids=["all", "subworkflow", "node", "child"],
)
def test_a_nested_workflow_is_overridden(
    override: Override,
    moved: set[str],
    client: Client,
    webhook: MakeWebhook,
    launch: Launcher,
    request: pytest.FixtureRequest,
) -> None:
    """A child execution is one of its own, and its nodes have their ids anew."""
    webhook(CONFIG, NAMESPACE)
    name = f"nested-{request.node.callspec.id}"
    run = launch("nested", name, annotations=annotation(override))

    where = placed(client, run, 3)

    assert where == {key: {H100 if key in moved else A100} for key in ("train", "sub", "child")}


# launching -------------------------------------------------------------------------------------

WORDS: Final = ("--project", PROJECT, "--domain")
SET: Final = ("--set", "gpu.type=h100-pool")


@pytest.mark.parametrize("way", ["pyflyte", "kubetailor", "python"])
def test_each_way_of_launching_sends_the_same(
    way: str,
    client: Client,
    pyflyte: Pyflyte,
    webhook: MakeWebhook,
    launch: Launcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = webhook(CONFIG, NAMESPACE)
    name, plan, version = f"way-{way}", f"{ZOO}.inner", version_of(ZOO)
    env = {"KUBETAILOR_CONFIG": str(server.config)}
    if way == "pyflyte":
        place = ("--remote", *WORDS, DOMAIN, "--name", name)
        what = ("remote-launchplan", f"{plan}:{version}", "--x", "3")
        pyflyte("run", *place, *SET, *what, folder=tmp_path, env=env)
    elif way == "kubetailor":
        (tmp_path / "override.yaml").write_text("steps: [{use: gpu, with: {type: h100-pool}}]")
        (tmp_path / "inputs.yaml").write_text("x: 3")
        files = ("--inputs", "inputs.yaml", "--override", "override.yaml")
        entity = f"{PROJECT}/{DOMAIN}/{plan}@{version}"
        pyflyte(
            *("launch", entity, "--name", name, *files),
            folder=tmp_path,
            env=env,
            program="kubetailor",
        )
    else:
        monkeypatch.setenv("KUBETAILOR_CONFIG", env["KUBETAILOR_CONFIG"])
        remote = pyflyte.remote(DOMAIN)
        found = remote.fetch_launch_plan(name=plan, version=version)
        options = Overrides().step("gpu", type="h100-pool").options(remote, found)
        remote.execute(found, inputs={"x": 3}, execution_name=name, options=options)
    run = launch.started(name)

    assert placed(client, run, 1) == {"train": {H100}}
    assert run.execution.spec.annotations.values == annotation(SWAP)
    assert run.flyte_workflow["metadata"]["annotations"][OVERRIDE] == SWAP.annotation()


def test_local_code_is_registered_as_without_the_override(
    client: Client, pyflyte: Pyflyte, webhook: MakeWebhook, launch: Launcher
) -> None:
    """flytekit registers a default launch plan with the options of the run that lacks it."""
    domain = "production"  # where no launch plan is
    server = webhook(CONFIG, f"{PROJECT}-{domain}")
    env = {"KUBETAILOR_CONFIG": str(server.config)}
    remote = pyflyte.remote(domain)

    def run(name: str, *words: str) -> tuple[set[str], set[str]]:
        """The names of what it registers, and where its pod is."""
        before = registered(remote)
        place = ("--remote", *WORDS, domain, "--name", name)
        what = ("zoo/to_override.py", "inner", "--x", "3")
        pyflyte("run", *place, *words, *what, folder=FOLDER, env=env)
        (where,) = placed(client, launch.started(name, domain=domain), 1).values()
        return {f"{kind} {entity}" for kind, entity, _ in registered(remote) - before}, where

    own = {f"task {ZOO}.train", f"workflow {ZOO}.inner", f"launch_plan {ZOO}.inner"}
    assert run("local-override", *SET) == (own, {H100})
    assert run("local-plain") == (set(), {A100})


# what the engine reads -------------------------------------------------------------------------


def test_a_cached_task_runs_again(core: Core, webhook: MakeWebhook, launch: Launcher) -> None:
    """The catalog that Propeller asks is `stack/datacatalog.py`: DataCatalog is in no Go module."""
    webhook(CONFIG, NAMESPACE)
    off = annotation(Override().step("cache", cache=False))
    wanted: dict[str, tuple[int, dict[str, Any]]] = {
        "first": (1, {}),
        "hit": (0, {}),
        "off": (1, {"annotations": off}),
        "hit-again": (0, {}),
        "overwritten": (1, {"overwrite_cache": True}),
    }
    for name, (count, given) in wanted.items():
        run = launch("cached", f"cache-{name}", is_task=True, **given)
        run.wait_for_success()
        assert len(creations(core, run)) == count, name


def test_a_task_is_tried_as_often_as_the_override_says(
    core: Core, webhook: MakeWebhook, launch: Launcher
) -> None:
    webhook(CONFIG, NAMESPACE)
    again = annotation(Override().step("retries", retries=1))
    once = launch("flaky", "tried-once", is_task=True)
    twice = launch("flaky", "tried-twice", is_task=True, annotations=again)

    for run, attempts in ((once, 1), (twice, 2)):
        assert "try again" in run.wait_for_failure()
        assert [code for _, code in creations(core, run)] == [201] * attempts


def test_a_spark_conf_reaches_the_engine(webhook: MakeWebhook, launch: Launcher) -> None:
    """The template that Propeller would give its Spark plugin, whose Go module cannot be had."""
    webhook(CONFIG, NAMESPACE)
    set_ = {"spark.executor.instances": "8", "spark.executor.memory": "4g"}
    override = Override().step("spark_conf", set=set_, remove=["spark.executor.cores"])

    plain = launch("count", "spark-plain", is_task=True)
    run = launch("count", "spark-override", is_task=True, annotations=annotation(override))

    (before,), (after,) = (each.flyte_workflow["tasks"].values() for each in (plain, run))
    assert before["custom"]["sparkConf"]["spark.executor.instances"] == "2"
    assert after["custom"]["sparkConf"] == set_
    del before["custom"]["sparkConf"], after["custom"]["sparkConf"]
    assert before["custom"] == after["custom"]


REFUSED: Final = {
    "more": (
        Override().step("gpu", type="h100-pool", count=8).named("more"),
        "step 'more': count: 8; allowed: at most 4 (",
    ),
    "unsafe": (
        Override().step("image", image="own:1"),
        "step 'image': image may not be overridden; allowed: cache, gpu, retries, spark_conf (",
    ),
    "nowhere": (SWAP.on(node="x"), "step 'gpu': it matches no task"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_refused_fails_at_once_and_says_by_which_rule(
    why: str, webhook: MakeWebhook, launch: Launcher
) -> None:
    webhook(CONFIG, NAMESPACE)
    override, message = REFUSED[why]
    run = launch("training", f"refused-{why}", annotations=annotation(override))

    assert run.has_failed  # the first answer says so
    assert message in run.sync().error.message
    assert run.pods == []


# the objects -----------------------------------------------------------------------------------


def test_the_same_registration_chain_and_override_give_the_same_objects(
    client: Client, webhook: MakeWebhook, launch: Launcher
) -> None:
    override = SWAP.on(node=["one", "map", "job"])
    found, texts = [], []
    for name in ("same-a", "same-b"):
        # Another process, too, which knows nothing of the first.
        asked = webhook(CONFIG, NAMESPACE, name=f"kubetailor-{name}")
        run = launch("training", name, annotations=annotation(override))
        of_it = {"labelSelector": f"execution-id={name}"}
        pods = pods_of(client, run, PODS)
        jobs = client.list("kubeflow.org/v1", "PyTorchJob", NAMESPACE, **of_it)
        found.append([*pods, *jobs])
        texts.append(sorted(reproduced(obj, name) for obj in (*found[-1], run.flyte_workflow)))
        asked.forget()
    for first, second in zip(*texts, strict=True):
        assert first == second
    assert len(texts[0]) == PODS + 2

    config = load_tailor(asked.config).config
    expected = {
        "chain": "default",
        "digest": config.chains["default"].digest,
        "version": version_of(ZOO),
        "override": config.overrides.read(override.annotation()).digest,
    }
    tasks = []
    for obj in (*found[0], *found[1]):
        said = json.loads(obj["metadata"]["annotations"][STAMP])
        assert {key: said[key] for key in expected} == expected, obj["metadata"]["name"]
        tasks.append(said["task"].removeprefix(f"{ZOO}.").partition("train_")[0])
    assert Counter(tasks) == {"train": 4, "map_": 4, "torch_job": 6}


def test_the_flavour_of_a_job_changes_with_its_gpu(
    client: Client, webhook: MakeWebhook, launch: Launcher, queues: Queues
) -> None:
    server = webhook(CONFIG, NAMESPACE)

    def flavors(name: str, override: dict[str, str] | None = None) -> tuple[set[str], set[str]]:
        """Those that Kueue gave the job, and the nodes of its pods."""
        run = launch("queued_job", name, is_task=True, annotations=override)
        (where,) = placed(client, run, 2).values()
        of_it = {"labelSelector": f"execution-id={run.name}"}
        (job,) = client.list("kubeflow.org/v1", "PyTorchJob", NAMESPACE, **of_it)
        assert queues.is_admitted(job)
        return set(queues.flavors_of(job).values()), where

    assert flavors("queued-plain") == ({A100}, {A100})
    assert flavors("queued-override", annotation(SWAP)) == ({H100}, {H100})
    server.reload(ON_H100)
    assert flavors("queued-config") == ({H100}, {H100})
