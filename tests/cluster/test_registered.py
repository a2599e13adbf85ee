"""What a client works out of what is registered, against what Flyte makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kubetailor.plugins.client.previewing import preview
from kubetailor.plugins.client.registered import Registered, find
from kubetailor.plugins.execution.compiled import flyte_workflow
from kubetailor.registry import Override
from kubetailor.registry.overrides.document import OVERRIDE
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads.quantity import same_quantity

from .conftest import MakeLauncher, MakeWebhook, RegisterOnce
from .executions import version_of
from .stack.client import Client
from .stack.kubelet import KUBELET
from .stack.kwok import node
from .stack.process import Process
from .stack.pyflyte import PROJECT, Pyflyte

DOMAIN: Final = "development"
NAMESPACE: Final = f"{PROJECT}-{DOMAIN}"

GRAPHS: Final = "zoo.graphs"
SAID: Final = '''
"""Says what is known of a node."""

from kubetailor.registry import Pod, TaskContext, transformer


@transformer
def node(pod: Pod, task: TaskContext, *, key: str) -> None:
    """Annotate a pod with the id of its node."""
    pod.annotate(key, str(task.node))
'''
CHAIN: Final = f"""
plugins: [./said.py]
chains:
  default:
    steps:
      - {{use: node_selector, with: {{set: {json.dumps(KUBELET)}}}}}
      - {{use: said.node, with: {{key: example.com/node}}}}
"""


def at(pyflyte: Pyflyte, module: str, name: str) -> Registered:
    asked = f"{PROJECT}/{DOMAIN}/{module}.{name}@{version_of(module)}"
    return find(pyflyte.remote(DOMAIN), asked)


def with_quantities(value: Any, other: Any) -> bool:
    """Whether two nodes are equal, but for how a quantity is written."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(
            with_quantities(item, other[key]) for key, item in value.items()
        )
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(with_quantities, value, other))
    return bool(value == other) or same_quantity(value, other)


@pytest.mark.parametrize(
    ("module", "name", "is_task"),
    [
        ("zoo.every_kind", "every_kind", False),
        ("zoo.at_launch", "nested", False),
        ("zoo.at_launch", "overridden", False),
        ("zoo.graphs", "twice", False),
        ("zoo.at_launch", "slow", True),
    ],
)
def test_the_flyteworkflow_is_the_one_that_flyteadmin_creates(
    pyflyte: Pyflyte,
    register_once: RegisterOnce,
    launcher: MakeLauncher,
    module: str,
    name: str,
    is_task: bool,
) -> None:
    register_once(module, DOMAIN)
    run = launcher(module)(name, f"same-{name.replace('_', '-')}", is_task=is_task)
    theirs = run.flyte_workflow
    found = at(pyflyte, module, name)
    ours = flyte_workflow(found.closure, project=PROJECT, domain=DOMAIN)

    assert ours["spec"]["id"] == theirs["spec"]["id"]
    assert len(ours.get("subWorkflows", {})) == len(theirs.get("subWorkflows", {}))
    names = {squeezed(key): graph for key, graph in theirs.get("subWorkflows", {}).items()}
    graphs = [(ours["spec"], theirs["spec"])]
    graphs += [(graph, names[squeezed(key)]) for key, graph in ours.get("subWorkflows", {}).items()]
    for our, their in graphs:
        assert our["nodes"].keys() == their["nodes"].keys()
        for key, spec in our["nodes"].items():
            left, right = (as_read(each) for each in (spec, their["nodes"][key]))
            assert with_quantities(left, right), (key, left, right)
    tasks = {squeezed(key): template for key, template in theirs["tasks"].items()}
    assert {squeezed(key) for key in ours["tasks"]} == tasks.keys()
    for key, template in ours["tasks"].items():
        their = tasks[squeezed(key)]
        # FlyteAdmin takes what describes types off an interface, and adds default resources.
        for part in template.keys() - {"interface", "container"}:
            assert template[part] == their[part], (key, part)
        container = {**template.get("container", {}), "resources": None}
        assert container == {**their.get("container", {}), "resources": None}


def squeezed(key: str) -> str:
    """A key without the spaces that are not stable."""
    return " ".join(key.split())


def as_read(spec: Any) -> Any:
    """A node as far as a chain reads it: what a branch or gate asks is not."""
    text = squeezed(json.dumps(spec))
    found = json.loads(text)
    for field in ("branch", "gate", "inputBindings"):
        found.pop(field, None)
    return found


@pytest.fixture(scope="module")
def pool(client: Client, kubelet: Process) -> Iterator[None]:
    """A node whose pods run as processes."""
    made = node("graphs", labels=KUBELET)
    client.create(made)
    yield
    client.delete("v1", "Node", None, "graphs")


@pytest.mark.parametrize("phases", ["launch, admit", "admit"])
def test_each_use_of_a_subworkflow_has_nodes_of_its_own(
    pool: None,
    pyflyte: Pyflyte,
    register_once: RegisterOnce,
    launcher: MakeLauncher,
    webhook: MakeWebhook,
    phases: str,
) -> None:
    register_once(GRAPHS, DOMAIN)
    asked = webhook(f"phases: [{phases}]\n{CHAIN}", NAMESPACE, files={"said.py": SAID})
    override = Override().step("labels", set={"chosen": "here"}).on(node="n1.*")
    tailor = Tailor.find(asked.config, environ={})
    assert tailor is not None
    said = preview(at(pyflyte, GRAPHS, "twice"), tailor, override)
    said.check()

    name = f"graphs-{phases.partition(',')[0]}"
    run = launcher(GRAPHS)("twice", name, annotations={OVERRIDE: override.annotation()})
    if "launch" in phases:  # the one subworkflow, and its copy
        subworkflows = said.executions[0].after["subWorkflows"]
        assert len(run.flyte_workflow["subWorkflows"]) == len(subworkflows) == 2
    # One, a map of one and a branch in each use; the dynamic task, and what it makes.
    metadata = [pod["metadata"] for pod in run.wait_for_pods(8)]
    found = {each["annotations"]["example.com/node"]: each["labels"] for each in metadata}
    assert found.keys() == {
        *(f"{use}.{inner}" for use in ("n0", "n1") for inner in ("n0", "n1", "n2-n0")),
        "n2",
        "n2.dn0",
    }
    for id_, labels in found.items():
        assert labels.get("chosen") == ("here" if id_.startswith("n1.") else None), id_
    run.wait_for_success()
