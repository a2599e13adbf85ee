"""What the API server and its admission plugins put into a pod before a webhook sees it.

Nobody wrote these values, so they count as unset, and what a plugin derived from another field is
derived again where that field changes. Sources, in kubernetes/kubernetes: the defaults of
pkg/apis/core/v1/defaults.go and the plugins below plugin/pkg/admission.

Only a Pod is admitted by those plugins; in other objects, pod templates of built-in kinds have the
defaults. What cannot be told from what an author wrote counts as set:

- `imagePullPolicy` (it depends on the tag; AlwaysPullImages), `requests` (a limit without one gets
  its value), `hostPort` in the host's network;
- requests and limits of a LimitRange (limitranger/admission.go; it names them in an annotation);
- the name of a global default PriorityClass, and pull secrets of a service account;
- the node selector and the tolerations of a RuntimeClass (runtimeclass/admission.go,
  `setScheduling`); one that the new class contradicts is refused by the API server;
- what plugins add that are off by default: PodNodeSelector, PodTolerationRestriction,
  ExtendedResourceToleration (its toleration of a resource that is asked for no more does no harm).

TaintNodesByCondition changes nodes, PodTopologyLabels bindings, ResourceQuota nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubetailor.workloads.draft import Draft, Json, JsonMap, Path, same

__all__ = [
    "FILLED",
    "is_filled",
    "is_filled_in_source",
    "is_filled_toleration",
    "is_omitted",
    "rederived",
]

FILLED: Final[Mapping[str, tuple[Json, ...]]] = {
    # defaults.go, SetDefaults_PodSpec and SetDefaults_Pod
    "dnsPolicy": ("ClusterFirst",),
    "enableServiceLinks": (True,),
    "restartPolicy": ("Always",),
    "schedulerName": ("default-scheduler",),
    "terminationGracePeriodSeconds": (30,),
    # defaults.go, SetDefaults_Container
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    # defaults.go, SetDefaults_Probe and SetDefaults_HTTPGetAction
    "failureThreshold": (3,),
    "periodSeconds": (10,),
    "scheme": ("HTTP",),
    "successThreshold": (1,),
    "timeoutSeconds": (1,),
    # priority/admission.go
    "preemptionPolicy": ("PreemptLowerPriority",),
    "priority": (0,),
    # serviceaccount/admission.go, and the deprecated alias of pkg/apis/core/v1/conversion.go
    "serviceAccount": ("default",),
    "serviceAccountName": ("default",),
}
"""Field of a pod spec, a container or a probe -> the values that are filled in.

Empty values (`securityContext`, `affinity`, `emptyDir`, `hostPath.type`) count as unset anyway.
"""

_SOURCE: Final[Mapping[str, tuple[Json, ...]]] = {
    "apiVersion": ("v1",),  # SetDefaults_ObjectFieldSelector
    "defaultMode": (0o644,),  # SetDefaults_SecretVolumeSource and its like
    "divisor": ("0",),  # a quantity is written though it is none
    "expirationSeconds": (3600,),  # SetDefaults_ServiceAccountTokenProjection
    "metadata": ({},),  # of a claim template: written though it is empty
    "pullPolicy": ("Always", "IfNotPresent"),  # SetDefaults_Volume
    "volumeMode": ("Filesystem",),  # SetDefaults_PersistentVolumeClaimSpec
    # SetDefaults_AzureDiskVolumeSource, _ISCSIVolumeSource, _RBDVolumeSource, _ScaleIOVolumeSource
    "cachingMode": ("ReadWrite",),
    "fsType": ("ext4", "xfs"),
    "iscsiInterface": ("default",),
    "keyring": ("/etc/ceph/keyring",),
    "kind": ("Shared",),
    "pool": ("rbd",),
    "storageMode": ("ThinProvisioned",),
    "user": ("admin",),
}
"""Field of the source of a volume or of a variable -> the values that defaults.go fills in."""

_OMITTED: Final[Mapping[str, Json]] = {
    **dict.fromkeys(("hostIPC", "hostNetwork", "hostPID"), False),
    **dict.fromkeys(("readOnly", "stdin", "stdinOnce", "tty"), False),
    **dict.fromkeys(("hostPort", "initialDelaySeconds"), 0),
    **dict.fromkeys(("prefix", "subPath", "subPathExpr", "workingDir"), ""),
    **{key: [] for key in ("add", "args", "command", "drop", "supplementalGroups", "sysctls")},
}
"""Field of a pod spec or a container -> the value with which the API leaves it out."""

_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

_DERIVED: Mapping[str, tuple[str, ...]] = {
    "priorityClassName": ("priority", "preemptionPolicy"),  # priority/admission.go
    "runtimeClassName": ("overhead",),  # runtimeclass/admission.go
    "serviceAccountName": ("serviceAccount",),  # and the token's volume, as the next one has
    "automountServiceAccountToken": (),  # serviceaccount/admission.go
}
"""Field of a pod spec -> what a plugin derives from it, and refuses where it differs."""

_TOKEN_VOLUME = "kube-api-access-"


def is_filled(field: str | None, value: Json) -> bool:
    """Whether the value of a field is one that nobody wrote."""
    return any(same(value, known) for known in FILLED.get(field or "", ()))


def is_filled_in_source(field: str, value: Json) -> bool:
    """Whether the value of a field of a volume's or a variable's source is one nobody wrote."""
    return any(same(value, known) for known in _SOURCE.get(field, ()))


def is_omitted(field: str, value: Json) -> bool:
    """Whether a field of a pod spec or a container says as much as one that is not there.

    The API leaves it out: it would be written again and again.
    """
    return field in _OMITTED and same(value, _OMITTED[field])


def is_filled_toleration(entry: Mapping[str, Any]) -> bool:
    """Whether a toleration is one of the two that every pod gets.

    Source: defaulttolerationseconds/admission.go.
    """
    return entry.get("key") in _TAINTS and dict(entry) == {
        "key": entry["key"],
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }


def rederived(before: JsonMap, after: JsonMap) -> JsonMap:
    """`after` without what was derived from a field that changed, so that it is derived again.

    Pull secrets that came with another service account stay, and so do the node selector and the
    tolerations of another runtime class: nothing tells them from the author's.

    Args:
        before: a Pod as the webhook got it.
        after: the same Pod, changed.
    """
    old, new = before.get("spec"), after.get("spec")
    if old is new or not isinstance(old, dict) or not isinstance(new, dict):
        return after
    moved = [field for field in _DERIVED if not same(old.get(field), new.get(field))]
    draft = Draft(after)
    for field in moved:
        for derived in _DERIVED[field]:
            if derived in new and same(new[derived], old.get(derived)):
                draft.drop(("spec", derived))
    if {"serviceAccountName", "automountServiceAccountToken"} & {*moved}:
        _drop_token(draft)
    return draft.checkpoint()


def _drop_token(draft: Draft) -> None:
    """Take off the volume of the service account's token, and its mounts."""
    volumes = draft.get(("spec", "volumes"))
    names = {
        str(volume["name"])
        for volume in (volumes if isinstance(volumes, list) else ())
        if isinstance(volume, dict) and str(volume.get("name", "")).startswith(_TOKEN_VOLUME)
    }
    if not names:
        return
    _take_off(draft, ("spec", "volumes"), names)
    for field in ("containers", "initContainers"):
        containers = draft.get(("spec", field))
        for index in range(len(containers) if isinstance(containers, list) else 0):
            _take_off(draft, ("spec", field, index, "volumeMounts"), names)


def _take_off(draft: Draft, path: Path, names: set[str]) -> None:
    """Take the entries of these names off a list."""
    found = draft.get(path)
    entries = found if isinstance(found, list) else []
    kept = [e for e in entries if not (isinstance(e, dict) and e.get("name") in names)]
    if len(kept) != len(entries):
        draft.keep(path, kept)
