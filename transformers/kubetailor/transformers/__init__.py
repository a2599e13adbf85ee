"""The transformers that come with kubetailor, and the accelerators that it knows.

They are registered as any plugin's are, and change objects by the verbs that everyone has.
"""

from __future__ import annotations

from kubetailor.transformers.accelerators import register_accelerators
from kubetailor.transformers.annotations import annotate
from kubetailor.transformers.cache import cache
from kubetailor.transformers.env import env
from kubetailor.transformers.gpu import gpu
from kubetailor.transformers.image import image
from kubetailor.transformers.interruptible import interruptible
from kubetailor.transformers.kueue import kueue
from kubetailor.transformers.labels import labels
from kubetailor.transformers.node_affinity import node_affinity
from kubetailor.transformers.node_selector import node_selector
from kubetailor.transformers.patch import patch
from kubetailor.transformers.priority_class import priority_class
from kubetailor.transformers.resources import resources
from kubetailor.transformers.retries import retries
from kubetailor.transformers.shared_memory import shared_memory
from kubetailor.transformers.spark_conf import spark_conf
from kubetailor.transformers.task_config import task_config
from kubetailor.transformers.timeout import timeout
from kubetailor.transformers.tolerations import tolerations

__all__ = [
    "annotate",
    "cache",
    "env",
    "gpu",
    "image",
    "interruptible",
    "kueue",
    "labels",
    "node_affinity",
    "node_selector",
    "patch",
    "priority_class",
    "register_accelerators",
    "resources",
    "retries",
    "shared_memory",
    "spark_conf",
    "task_config",
    "timeout",
    "tolerations",
]
