"""What a type is called, by what an API server says of its types; a real one: tests/cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kubetailor.plugins.client.cluster import Cluster
from kubetailor.workloads import KubetailorError


def group(name: str, version: str, *resources: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [{"version": version, "resources": list(resources)}],
    }


def resource(kind: str, plural: str, *short: str, scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"kind": kind},
        "scope": scope,
        "shortNames": list(short),
    }


POD = resource("Pod", "pods", "po")
NODE = resource("Node", "nodes", "no", scope="Cluster")
KUBEFLOW = group("kubeflow.org", "v1", resource("PyTorchJob", "pytorchjobs"))
KUBEFLOW["versions"].append({**KUBEFLOW["versions"][0], "version": "v1beta1"})
TYPES = {
    "/api": [group("", "v1", POD, NODE)],
    "/apis": [
        KUBEFLOW,
        group("metrics.k8s.io", "v1beta1", resource("PodMetrics", "pods")),
        group("only.example.com", "v1", {"resource": "parts", "subresources": []}),
    ],
}


def cluster(kind: str = "APIGroupDiscoveryList") -> Cluster:
    """One whose objects say where they were asked for."""

    def get(path: str, _: str) -> dict[str, Any]:
        return {"kind": kind, "items": TYPES[path]} if path in TYPES else {"path": path}

    return Cluster(get, "speech")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("pod/a", "/api/v1/namespaces/speech/pods/a"),
        ("po/a", "/api/v1/namespaces/speech/pods/a"),
        ("Pod/a", "/api/v1/namespaces/speech/pods/a"),
        ("pods.v1./a", "/api/v1/namespaces/speech/pods/a"),
        ("node/a", "/api/v1/nodes/a"),
        ("pods.metrics.k8s.io/a", "/apis/metrics.k8s.io/v1beta1/namespaces/speech/pods/a"),
        ("pytorchjob/a", "/apis/kubeflow.org/v1/namespaces/speech/pytorchjobs/a"),
        ("pytorchjobs.kubeflow.org/a", "/apis/kubeflow.org/v1/namespaces/speech/pytorchjobs/a"),
        (
            "pytorchjobs.v1beta1.kubeflow.org/a",
            "/apis/kubeflow.org/v1beta1/namespaces/speech/pytorchjobs/a",
        ),
    ],
)
def test_a_type_is_called_as_for_kubectl(text: str, path: str) -> None:
    assert cluster().read(text)["path"] == path


def test_a_namespace_that_is_given_is_asked() -> None:
    found = cluster().read("pod/a", "vision")
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "path": "/api/v1/namespaces/vision/pods/a",
    }


def test_an_owner_is_asked_in_the_version_that_it_was_named_in() -> None:
    owner = {"apiVersion": "kubeflow.org/v1beta1", "kind": "PyTorchJob", "name": "a"}
    found = cluster().owner(owner, "vision")
    assert found["path"] == "/apis/kubeflow.org/v1beta1/namespaces/vision/pytorchjobs/a"
    with pytest.raises(KubetailorError, match=r"no PyTorchJob of kubeflow\.org/v2"):
        cluster().owner({**owner, "apiVersion": "kubeflow.org/v2"}, "vision")


@pytest.mark.parametrize("text", ["pod", "pod/", "/a", "pod/a/b", ""])
def test_what_is_no_type_and_name_is_refused(text: str) -> None:
    with pytest.raises(KubetailorError, match="expected TYPE/NAME"):
        cluster().read(text)


@pytest.mark.parametrize("called", ["pdo", "pods.kubeflow.org", "parts", "pods.v2."])
def test_a_type_that_there_is_not_is_said(called: str) -> None:
    with pytest.raises(KubetailorError, match=f"no type '{called}'; "):
        cluster().read(f"{called}/a")


def test_a_server_that_does_not_say_all_types_at_once_is_too_old() -> None:
    with pytest.raises(KubetailorError, match=r"older than Kubernetes 1\.30"):
        cluster("APIGroupList").read("pod/a")
