"""Secrets that images are pulled with.

https://kubernetes.io/docs/tasks/configure-pod-container/pull-image-private-registry/
"""

from __future__ import annotations

from kubetailor.registry import Pod, transformer
from kubetailor.transformers._lists import keep
from kubetailor.transformers._pod_types import SecretName
from kubetailor.transformers.types import names_to_remove

__all__ = ["image_pull_secrets"]


@transformer
def image_pull_secrets(
    pod: Pod, *, add: list[SecretName] | None = None, remove: list[str] | None = None
) -> None:
    """Add and remove secrets that the pods' images are pulled with.

    Those of a service account are used only by pods that have none of their own: where pods get
    their first one here, what they need of the service account's must be added too.

    Args:
        pod: the pod.
        add: references to secrets as Kubernetes writes them.
        remove: names of secrets that go.
    """
    wanted = {secret["name"] for secret in add or ()}
    gone = set(names_to_remove(remove, wanted))
    keep(pod, "imagePullSecrets", lambda secret: secret.get("name") not in gone)
    for secret in add or ():
        pod.merge({"imagePullSecrets": [secret]})
