"""What the API server sends to the webhook: labelled objects of pipelines, and nothing else.

https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubetailor.plugins.webhook.limits import TIMEOUT
from kubetailor.plugins.webhook.objects import NAME, Installation, cluster_object
from kubetailor.workloads import JsonMap, Kind

__all__ = ["configuration"]

_OPT_IN: Final = "kubetailor.dev/tailor"
"""The label by which objects that are not Flyte's ask for the webhook (`true`), and by which a
namespace asks to be left alone (`false`)."""

_EXECUTION: Final = "execution-id"  # FlytePropeller labels everything that it makes
_LEFT_ALONE: Final = ("kube-system", "kube-public", "kube-node-lease")


def configuration(of: Installation) -> JsonMap:
    """The MutatingWebhookConfiguration: for what Flyte made, and for what asks for it."""
    objects = list(_rules(of.kinds))
    flyte = {"key": _EXECUTION, "operator": "Exists"}
    not_flyte = {"key": _EXECUTION, "operator": "DoesNotExist"}
    asked = {"key": _OPT_IN, "operator": "In", "values": ["true"]}
    found = cluster_object(
        "MutatingWebhookConfiguration",
        "admissionregistration.k8s.io/v1",
        webhooks=[
            _webhook(of, "flyte", [*objects, *_executions(of)], [flyte]),
            _webhook(of, "labelled", objects, [not_flyte, asked]),
        ],
    )
    if of.certificates == "cert-manager":
        found["metadata"]["annotations"] = {
            "cert-manager.io/inject-ca-from": f"{of.namespace}/{NAME}"
        }
    return found


def _executions(of: Installation) -> Iterator[JsonMap]:
    if of.launches:
        yield _rule("flyte.lyft.com", ["flyteworkflows"])


def _rules(kinds: Iterable[Kind]) -> Iterator[JsonMap]:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(_plural(kind.name))
    for group, resources in sorted(groups.items()):
        yield _rule(group, sorted(resources))


def _rule(group: str, resources: list[str]) -> JsonMap:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "resources": resources,
        "operations": ["CREATE"],
        "scope": "Namespaced",
    }


def _plural(kind: str) -> str:
    """The resource of a kind, as kubebuilder and the built-in ones name it."""
    name = kind.lower()
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


def _webhook(of: Installation, name: str, rules: list[JsonMap], labels: list[JsonMap]) -> JsonMap:
    return {
        "name": f"{name}.kubetailor.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"name": NAME, "namespace": of.namespace, "path": "/mutate", "port": 443}
        },
        "rules": rules,
        "objectSelector": {"matchExpressions": labels},
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": [*_LEFT_ALONE, of.namespace],
                },
                {"key": _OPT_IN, "operator": "NotIn", "values": ["false"]},
            ]
        },
        "matchConditions": [
            {
                # A kubelet's own pods, which nobody can change. Whoever may launch may annotate
                # anything so, and would not be asked about it.
                "name": "no-mirror-pod",
                "expression": "!has(object.metadata.annotations) || "
                "!('kubernetes.io/config.mirror' in object.metadata.annotations) || "
                "!has(request.userInfo.groups) || "
                "!('system:nodes' in request.userInfo.groups)",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT,
    }
