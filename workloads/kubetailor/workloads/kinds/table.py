"""The table: every kind that is known without a plugin, save Flyte's.

What an operator ignores has its source beside it.
"""

from __future__ import annotations

from kubetailor.workloads.draft import JsonMap, value_at
from kubetailor.workloads.kinds.app_wrapper import APP_WRAPPER
from kubetailor.workloads.kinds.argo import ARGO_KINDS
from kubetailor.workloads.kinds.inference_service import INFERENCE_SERVICE
from kubetailor.workloads.kinds.pod_path import Ignored, PodPath
from kubetailor.workloads.kinds.ray import RAY_KINDS
from kubetailor.workloads.kinds.row import Kind
from kubetailor.workloads.kinds.spark import SCHEDULED_SPARK_APPLICATION, SPARK_APPLICATION
from kubetailor.workloads.kinds.train_job import TRAIN_JOB

__all__ = ["KINDS"]

_TEMPLATE = "spec.template"


def _is_indexed(root: JsonMap) -> bool:
    return bool(value_at(root, ("spec", "completionMode")) == "Indexed")


def _has_dns_names(root: JsonMap) -> bool:
    return bool(value_at(root, ("spec", "network", "enableDNSHostnames")))


def _is_v2(root: JsonMap) -> bool:
    return str(root.get("apiVersion")).endswith("/v2beta1")


# kubernetes/kubernetes, pkg/controller/statefulset/stateful_set_utils.go, `initIdentity`
_STATEFUL = (
    Ignored("hostname", "the name of the pod"),
    Ignored("subdomain", "serviceName of the StatefulSet"),
)
# kubernetes/kubernetes, pkg/controller/job/job_controller.go, `manageJob`
_INDEXED = (Ignored("hostname", "the completion index, where there is one", when=_is_indexed),)
# kubernetes-sigs/jobset, pkg/controllers/jobset_controller.go, `constructJob`
_DNS_NAMES = (
    Ignored("subdomain", "spec.network, where that asks for DNS names", when=_has_dns_names),
)


def _dropped(*fields: str) -> tuple[Ignored, ...]:
    """What the API server takes off, as the kind's CRD is of an older pod spec."""
    return tuple(Ignored(field, "nothing, as its CRD has no such field") for field in fields)


# dask/dask-kubernetes, operator/deployment/helm/dask-kubernetes-operator/crds, of 2025
_OLD = _dropped(
    *("hostUsers", "hostnameOverride", "initContainers[].restartPolicy", "os", "resourceClaims"),
    *("resources", "schedulingGates"),
)
# kubeflow/trainer v1, pkg/controller.v1/common/pod.go, `createNewPod`, and for MPI
# pkg/controller.v1/mpi/mpijob_controller.go; kubeflow/mpi-operator (v2beta1),
# pkg/controller/mpi_job_controller.go, `setRestartPolicy`
_POLICY = Ignored("restartPolicy", "restartPolicy of the replica spec")
# kubeflow/trainer v1.9, manifests/base/crds
_REPLICA = (_POLICY, *_dropped("hostnameOverride", "resources"))
# kubeflow/mpi-operator, pkg/controller/mpi_job_controller.go, `newWorker` and
# `newLauncherPodTemplate`
_MPI = (
    _POLICY,
    Ignored("hostname", "the name of the pod, as of v2beta1", when=_is_v2),
    Ignored("subdomain", "the name of the MPIJob, as of v2beta1", when=_is_v2),
)


def _kubeflow(
    name: str, field: str, container: str, *roles: str, ignored: tuple[Ignored, ...] = _REPLICA
) -> Kind:
    path = f"spec.{field}.*.template"
    return Kind(
        name,
        "kubeflow.org",
        (PodPath("{key}", path, primary=(container,), ignored=ignored, known=roles),),
        queue=True,
        suspend=("spec", "runPolicy", "suspend"),
    )


def _apps(name: str, *, queue: bool = False, ignored: tuple[Ignored, ...] = ()) -> Kind:
    return Kind(name, "apps", (PodPath("primary", _TEMPLATE, ignored=ignored),), queue=queue)


def _dask(prefix: str, *roles: str) -> tuple[PodPath, ...]:
    return tuple(
        PodPath(role, f"{prefix}.{role}", metadata=None, primary=(role,), ignored=_OLD)
        for role in roles
    )


KINDS: tuple[Kind, ...] = (
    Kind("Pod", "", (PodPath("primary"),), queue=True),
    Kind("PodTemplate", "", (PodPath("primary", "template"),)),
    _apps("Deployment", queue=True),
    _apps("StatefulSet", queue=True, ignored=_STATEFUL),
    _apps("DaemonSet"),
    _apps("ReplicaSet"),
    Kind(
        "CronJob",
        "batch",
        (PodPath("primary", "spec.jobTemplate.spec.template"),),
        # https://kueue.sigs.k8s.io/docs/tasks/run/run_cronjobs/
        queue=("spec", "jobTemplate", "metadata"),
        suspend=("spec", "jobTemplate", "spec", "suspend"),
    ),
    Kind(
        "Job",
        "batch",
        (PodPath("primary", _TEMPLATE, ignored=_INDEXED),),
        queue=True,
        suspend=("spec", "suspend"),
    ),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs", "pytorch", "master", "worker"),
    _kubeflow(
        *("TFJob", "tfReplicaSpecs", "tensorflow"),
        *("chief", "master", "worker", "ps", "evaluator"),
    ),
    _kubeflow("MPIJob", "mpiReplicaSpecs", "mpi", "launcher", "worker", ignored=_MPI),
    _kubeflow("XGBoostJob", "xgbReplicaSpecs", "xgboost", "master", "worker"),
    _kubeflow("PaddleJob", "paddleReplicaSpecs", "paddle", "master", "worker"),
    _kubeflow("JAXJob", "jaxReplicaSpecs", "jax", "worker"),
    TRAIN_JOB,
    *RAY_KINDS,
    SPARK_APPLICATION,
    SCHEDULED_SPARK_APPLICATION,
    Kind(
        "DaskJob",
        "kubernetes.dask.org",
        (
            PodPath("job-runner", "spec.job", metadata=None, primary=("job",), ignored=_OLD),
            *_dask("spec.cluster.spec", "scheduler", "worker"),
        ),
    ),
    Kind("DaskCluster", "kubernetes.dask.org", _dask("spec", "scheduler", "worker")),
    # What a DaskCluster makes its worker Deployments of.
    Kind("DaskWorkerGroup", "kubernetes.dask.org", _dask("spec", "worker")),
    Kind(
        "JobSet",
        "jobset.x-k8s.io",
        (PodPath("{name}", "spec.replicatedJobs[].template.spec.template", ignored=_DNS_NAMES),),
        queue=True,
        suspend=("spec", "suspend"),
    ),
    # Its pods are those of StatefulSets. Without a template for leaders they have the workers'.
    Kind(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        (
            PodPath("leader", "spec.leaderWorkerTemplate.leaderTemplate", ignored=_STATEFUL),
            PodPath("worker", "spec.leaderWorkerTemplate.workerTemplate", ignored=_STATEFUL),
        ),
        queue=True,
    ),
    APP_WRAPPER,
    Kind("Job", "batch.volcano.sh", (PodPath("{name}", "spec.tasks[].template"),)),
    *ARGO_KINDS,
    INFERENCE_SERVICE,
)
