"""The pod of an A100 task on GKE, written by hand (flyteorg/flyte#475).

Everything here depends on the number of GPUs and on the cluster, and none of it on the task. The
steps `gpu` and `shared_memory` of ../kubetailor.yaml make the same pod of a task that says no more
than how many GPUs it wants, and it keeps what Flyte gives to containers alone: the end of its log
in the error of a failed task.
"""

from flytekit import PodTemplate
from kubernetes.client import (
    V1Container,
    V1EmptyDirVolumeSource,
    V1PodSpec,
    V1ResourceRequirements,
    V1Toleration,
    V1Volume,
    V1VolumeMount,
)

ACCELERATOR = "cloud.google.com/gke-accelerator"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def a100_pod(gpus: int) -> PodTemplate:
    """A pod that has a whole a2-highgpu machine to itself."""
    cpu, memory = 12 * gpus, 85 * gpus - 5  # what the kubelet leaves of 12 CPU and 85 GB for each
    nodes = {ACCELERATOR: "nvidia-tesla-a100", INSTANCE_TYPE: f"a2-highgpu-{gpus}g"}
    return PodTemplate(
        primary_container_name="primary",
        pod_spec=V1PodSpec(
            containers=[
                V1Container(
                    name="primary",
                    resources=V1ResourceRequirements(
                        requests={
                            "cpu": str(cpu - 1),
                            "memory": f"{memory}G",
                            "nvidia.com/gpu": str(gpus),
                        },
                        limits={
                            "cpu": str(cpu),
                            "memory": f"{memory}G",
                            "nvidia.com/gpu": str(gpus),
                        },
                    ),
                    volume_mounts=[V1VolumeMount(name="dshm", mount_path="/dev/shm")],
                )
            ],
            node_selector=nodes,
            tolerations=[
                V1Toleration(key=key, operator="Equal", value=value, effect="NoSchedule")
                for key, value in nodes.items()
            ],
            volumes=[V1Volume(name="dshm", empty_dir=V1EmptyDirVolumeSource(medium="Memory"))],
        ),
    )
