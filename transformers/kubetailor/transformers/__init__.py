"""The transformers that come with kubetailor, and the accelerators that it knows.

They are registered as any plugin's are, and change objects by the verbs that everyone has.
"""

from __future__ import annotations

from kubetailor.transformers.accelerators import register_accelerators
from kubetailor.transformers.annotations import annotate
from kubetailor.transformers.cache import cache
from kubetailor.transformers.env import env
from kubetailor.transformers.env_from import env_from
from kubetailor.transformers.gpu import gpu
from kubetailor.transformers.image import image
from kubetailor.transformers.image_pull_secrets import image_pull_secrets
from kubetailor.transformers.init_containers import init_containers
from kubetailor.transformers.interruptible import interruptible
from kubetailor.transformers.kai import kai
from kubetailor.transformers.kueue import kueue
from kubetailor.transformers.labels import labels
from kubetailor.transformers.node_affinity import node_affinity
from kubetailor.transformers.node_selector import node_selector
from kubetailor.transformers.patch import patch
from kubetailor.transformers.pod_group import pod_group
from kubetailor.transformers.priority_class import priority_class
from kubetailor.transformers.resource_caps import resource_caps
from kubetailor.transformers.resources import resources
from kubetailor.transformers.retries import retries
from kubetailor.transformers.runtime_class import runtime_class
from kubetailor.transformers.scheduler import scheduler
from kubetailor.transformers.scheduling_gates import scheduling_gates
from kubetailor.transformers.security_context import security_context
from kubetailor.transformers.service_account import service_account
from kubetailor.transformers.shared_memory import shared_memory
from kubetailor.transformers.sidecars import sidecars
from kubetailor.transformers.spark_conf import spark_conf
from kubetailor.transformers.task_config import task_config
from kubetailor.transformers.timeout import timeout
from kubetailor.transformers.tolerations import tolerations
from kubetailor.transformers.topology_spread import topology_spread
from kubetailor.transformers.volcano import volcano
from kubetailor.transformers.volumes import volumes
from kubetailor.transformers.yunikorn import yunikorn

__all__ = [
    "annotate",
    "cache",
    "env",
    "env_from",
    "gpu",
    "image",
    "image_pull_secrets",
    "init_containers",
    "interruptible",
    "kai",
    "kueue",
    "labels",
    "node_affinity",
    "node_selector",
    "patch",
    "pod_group",
    "priority_class",
    "register_accelerators",
    "resource_caps",
    "resources",
    "retries",
    "runtime_class",
    "scheduler",
    "scheduling_gates",
    "security_context",
    "service_account",
    "shared_memory",
    "sidecars",
    "spark_conf",
    "task_config",
    "timeout",
    "tolerations",
    "topology_spread",
    "volcano",
    "volumes",
    "yunikorn",
]
