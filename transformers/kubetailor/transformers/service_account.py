"""Service accounts.

https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers.names import ObjectName

__all__ = ["service_account"]

_ALIAS = "serviceAccount"
"""The deprecated name of the field, which the API server still reads where the other is absent."""


@transformer(atomic=True)
def service_account(pod: Pod, *, name: ObjectName, automount_token: bool | None = None) -> None:
    """Set the service account that the pods run as.

    As a default it leaves alone a pod whose author has named one. Flyte's Ray and Spark plugins
    take the execution's service account, so it is set on their objects at admission alone.

    Args:
        pod: the pod.
        name: the ServiceAccount, which must be there.
        automount_token: whether its token is mounted; by default as the service account says.
    """
    if (pod.peek("serviceAccountName") or pod.peek(_ALIAS)) != name:
        pod.set_field("serviceAccountName", name)
        pod.set_field(_ALIAS, None)
    if automount_token is not None:
        pod.set_field("automountServiceAccountToken", automount_token)
