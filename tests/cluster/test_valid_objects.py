"""The API server takes whatever the built-ins make of any kind: a server-side dry run of each.

With the real definitions of the custom resources, as far as their operators are Go modules; fields
that they do not know are refused. Steps and objects are the examples of the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from reference_examples import chain_of_all

from kubetailor.registry.testing import TailorBench
from kubetailor.workloads import JsonMap

from ..kind_examples import KINDS, USES, each_alone, example, parameters, pods_of
from .build import TOOLS
from .stack.client import ApiError, Client
from .stack.core import Core
from .stack.operators import apply_crds

STRICT: Final = {"dryRun": "All", "fieldValidation": "Strict"}
DEFINITIONS: Final = ("training-operator", "kinds")
"""The tools with the definitions of custom resources."""

NO_DEFINITION: Final = {
    "DaskCluster": "Dask's operator is in Python",
    "DaskJob": "Dask's operator is in Python",
    "DaskWorkerGroup": "Dask's operator is in Python",
    "Job.batch.volcano.sh": "the module volcano.sh/volcano cannot be had, and apis has no files",
    "TaskTemplate": "it is no object of Kubernetes",
}
"""Kinds whose definition is in no Go module, and why: of these, each pod is sent as a Pod."""

REFERRED: Final[dict[str, dict[str, Any]]] = {
    "priority_class": {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "value": 10,
    },
    "runtime_class": {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runsc"},
    "service_account": {"apiVersion": "v1", "kind": "ServiceAccount"},
}
"""What the API server looks for where a pod names it; the steps' examples have the names."""


@pytest.fixture(scope="module")
def definitions(core: Core) -> None:
    """The custom resources."""
    for tool in DEFINITIONS:
        apply_crds(core, tool)


@pytest.fixture(scope="module")
def place(client: Client, definitions: None) -> Iterator[str]:
    """A namespace, and what the fields of pods refer to."""
    namespace, made = client.namespace("valid-objects"), []
    for use, obj in REFERRED.items():
        metadata = {"name": parameters(use)["name"], "namespace": namespace}
        client.create(obj | {"metadata": metadata})
        made.append((obj["apiVersion"], obj["kind"], namespace, metadata["name"]))
    yield namespace
    for there in made:
        client.delete(*there)
    client.delete("v1", "Namespace", None, namespace)


def send(client: Client, kind: str, namespace: str, obj: JsonMap) -> None:
    """Create it for show, or else its pods.

    Raises:
        ApiError: it was refused.
    """
    for found in pods_of(obj) if kind in NO_DEFINITION else [obj]:
        metadata = {**found["metadata"], "namespace": namespace}
        client.create({**found, "metadata": metadata}, **STRICT)


@pytest.mark.parametrize("kind", KINDS)
def test_the_api_server_takes_it(client: Client, place: str, kind: str, tmp_path: Path) -> None:
    bench, obj = TailorBench(tmp_path), example(kind)
    send(client, kind, place, obj)
    made = dict(each_alone(bench, obj))
    made["all of them"] = bench.chain(chain_of_all(USES)).run(obj)
    refused = {}
    for use, outcome in made.items():
        try:
            send(client, kind, place, outcome.after)
        except ApiError as error:
            refused[use] = error.message
    assert refused == {}
    assert len(made) > 5


def test_a_kind_without_a_definition_has_none() -> None:
    """A row goes from `NO_DEFINITION` once there is one."""
    files = [path for tool in DEFINITIONS for path in (TOOLS[tool].home / "crd").glob("*.yaml")]
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in files]
    named = {
        (crd["spec"]["group"], crd["spec"]["names"]["kind"])
        for crd in found
        if crd["kind"] == "CustomResourceDefinition"
    }
    assert ("jobset.x-k8s.io", "JobSet") in named
    for kind in NO_DEFINITION:
        obj = example(kind)
        assert (str(obj.get("apiVersion")).partition("/")[0], obj.get("kind")) not in named
