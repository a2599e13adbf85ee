"""What `security_context` says of a pod is what the API server's Pod Security admission says."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Final

import pytest

from kubetailor.registry.testing import TailorBench

from .stack.client import ApiError, Client

ENFORCE: Final = "pod-security.kubernetes.io/enforce"
CONTEXTS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"runAsNonRoot": False, "allowPrivilegeEscalation": True},
    {"runAsUser": 0},
    {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["KILL"]}},
    {"capabilities": {"add": ["CHOWN"]}},
    {"capabilities": {"add": ["NET_ADMIN"]}},
    {"privileged": True},
    {"procMount": "Default"},
    {"seLinuxOptions": {"type": "container_engine_t"}},
    {"seLinuxOptions": {"role": "r"}},
    {"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}},
    {"seccompProfile": {"type": "Unconfined"}},
    {"appArmorProfile": {"type": "Unconfined"}},
)
SPECS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"os": {"name": "windows"}},
    {"hostNetwork": True},
    {"hostPID": True},
    {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    {"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]},
    {"volumes": [{"name": "v", "emptyDir": {}}]},
    {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
    {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]}},
    {"securityContext": {"runAsUser": 0, "seccompProfile": {"type": "Unconfined"}}},
)


def pods(namespace: str) -> list[Any]:
    """A pod of each kind, with one container that asks for something and one that does not."""
    plain, asks = ({"name": "plain", "image": "img"}, {"name": "asks", "image": "img"})
    each = [*((spec, {}) for spec in SPECS), *(({}, context) for context in CONTEXTS)]
    found = []
    for (spec, context), place in itertools.product(each, ("containers", "initContainers")):
        containers: dict[str, Any] = {"containers": [plain], "initContainers": []}
        containers[place] = [*containers[place], {**asks, "securityContext": context}]
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": namespace},
                "spec": {**containers, **spec},
            }
        )
    return found


def refusal(client: Client, obj: Any) -> str:
    """What the API server has against an object; nothing if it takes it."""
    try:
        client.create(obj, dryRun="All")
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize("profile", ["baseline", "restricted"])
def test_a_profile_is_met_or_what_it_forbids_is_named(
    client: Client, tmp_path: Path, profile: str
) -> None:
    namespace = client.namespace(f"pod-security-{profile}", **{ENFORCE: profile})
    bench, met = TailorBench(tmp_path), 0
    for pod in pods(namespace):
        outcome = bench.prove("security_context", pod, profile=profile)
        refused = refusal(client, outcome.after)
        assert bool(refused) is bool(outcome.warnings), (outcome.after, refused)
        assert not refused or "violates PodSecurity" in refused
        met += not refused
    client.delete("v1", "Namespace", None, namespace)
    assert 10 < met < len(pods(namespace))
