"""Container images.

https://kubernetes.io/docs/concepts/containers/images/
"""

from __future__ import annotations

from typing import Literal

from kubetailor.registry import Pod, transformer

__all__ = ["image"]


@transformer(replicas=True)
def image(
    pod: Pod,
    *,
    image: str | None = None,
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None,
    container: str | None = None,
) -> None:
    """Set the image of a container, and when it is pulled.

    Args:
        pod: the pod.
        image: the image, with its tag or digest.
        image_pull_policy: when it is pulled.
        container: the container's name; by default the primary one.
    """
    target = pod.primary if container is None else pod.container(container)
    if image is not None:
        target.set_image(image)
    if image_pull_policy is not None:
        target.set_field("imagePullPolicy", image_pull_policy)
