"""What the benchmarks work on: a training pod of 7 kB that can grow, and chains over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubetailor.registry import Chain, Step, TaskContext
from kubetailor.registry.config import Config
from kubetailor.registry.load import load_config
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.selectors import compile_selector
from kubetailor.workloads import BUILTIN_KINDS, Kind, KindTable

CONFIG = Path(__file__).with_name("kubetailor.yaml")
"""Ten steps that all match what is made here, and ten that do not."""

TASK = TaskContext(
    "admit",
    project="speech",
    domain="development",
    workflow="pipelines.speech.nightly",
    task="pipelines.speech.train_acoustic_model",
    task_type="python-task",
    version="v42",
    node="n3",
    execution="ahfk2p5kdl4tq",
    attempt=0,
)


def config() -> Config:
    """The config beside this file, without a team's plugins."""
    return load_config(CONFIG, entry_points=False)


def chain(name: str = "matching") -> Chain:
    """A chain of that config."""
    return config().chain(name)


def many_steps(count: int) -> Chain:
    """A chain of that many steps that all change something else."""
    loaded = config()
    steps = []
    for number in range(count):
        use, arguments = _ONE_OF_MANY[number % len(_ONE_OF_MANY)](number)
        transformer = loaded.plugins.transformers[use]
        arguments = read_parameters(transformer, arguments)
        when = compile_selector({"domain": "development"})
        steps.append(Step(f"{use}-{number}", "steps", transformer, arguments, when))
    return Chain("many", tuple(steps))


_ONE_OF_MANY: tuple[Callable[[int], tuple[str, dict[str, Any]]], ...] = (
    lambda n: ("labels", {"set": {f"example.com/label-{n}": "x"}}),
    lambda n: ("annotations", {"set": {f"example.com/annotation-{n}": "x"}}),
    lambda n: ("node_selector", {"set": {f"example.com/node-{n}": "x"}}),
    lambda n: ("tolerations", {"add": [{"key": f"example.com/taint-{n}", "operator": "Exists"}]}),
    lambda n: ("env", {"set": {f"VARIABLE_{n}": "x"}}),
)


def kind_of(obj: dict[str, Any]) -> Kind:
    """The row of an object in the table of kinds."""
    found = KindTable(BUILTIN_KINDS).of(obj)
    assert found is not None
    return found


def training_pod(env: int = 30) -> dict[str, Any]:
    """A pod of a training task: 2 containers, 6 volumes, affinity, 5 tolerations, 7 kB as JSON.

    Args:
        env: how many variables the training container has; 22,000 make 1.5 MB.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "ahfk2p5kdl4tq-n3-0",
            "namespace": "speech-development",
            "labels": {
                "app.kubernetes.io/managed-by": "flyte",
                "domain": "development",
                "execution-id": "ahfk2p5kdl4tq",
                "interruptible": "false",
                "node-id": "n3",
                "project": "speech",
                "task-name": "pipelines-speech-train-acoustic-model",
                "workflow-name": "pipelines-speech-nightly",
            },
            "annotations": {
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                "primary_container_name": "ahfk2p5kdl4tq-n3-0",
                "prometheus.io/port": "9400",
                "prometheus.io/scrape": "true",
                "sidecar.istio.io/inject": "false",
            },
            "ownerReferences": [
                {
                    "apiVersion": "flyte.lyft.com/v1alpha1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "FlyteWorkflow",
                    "name": "ahfk2p5kdl4tq",
                    "uid": "0b6f6c1a-7a4e-4b7e-9a51-3b2f6d1c9e77",
                }
            ],
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": "speech-training",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 120,
            "hostIPC": False,
            "securityContext": {"fsGroup": 2000, "runAsNonRoot": True, "runAsUser": 1000},
            "nodeSelector": {
                "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
                "node.kubernetes.io/instance-type": "a2-highgpu-8g",
                "topology.kubernetes.io/region": "europe-west4",
            },
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {
                                        "key": "topology.kubernetes.io/zone",
                                        "operator": "In",
                                        "values": ["europe-west4-a", "europe-west4-b"],
                                    },
                                    {
                                        "key": "cloud.google.com/gke-provisioning",
                                        "operator": "NotIn",
                                        "values": ["preemptible"],
                                    },
                                ]
                            }
                        ]
                    },
                },
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 100,
                            "podAffinityTerm": {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": {
                                    "matchExpressions": [
                                        {
                                            "key": "workflow-name",
                                            "operator": "In",
                                            "values": ["pipelines-speech-nightly"],
                                        }
                                    ]
                                },
                            },
                        }
                    ]
                },
            },
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                _taint("beta.kubernetes.io/instance-type", "a2-highgpu-8g"),
                _taint("example.com/team", "speech"),
                _patience("node.kubernetes.io/not-ready"),
                _patience("node.kubernetes.io/unreachable"),
            ],
            "volumes": [
                {
                    "name": "data",
                    "persistentVolumeClaim": {"claimName": "corpus", "readOnly": True},
                },
                {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "500Gi"}},
                {"name": "config", "configMap": {"name": "acoustic-model", "defaultMode": 420}},
                {"name": "credentials", "secret": {"secretName": "wandb", "defaultMode": 256}},
                {"name": "podinfo", "downwardAPI": {"items": [_downward("labels")]}},
            ],
            "initContainers": [_fetch()],
            "containers": [_trainer(env), _exporter()],
        },
    }


def _taint(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}


def _patience(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _downward(field: str) -> dict[str, Any]:
    return {"path": field, "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.{field}"}}


def _fetch() -> dict[str, Any]:
    return {
        "name": "fetch",
        "image": "registry.example.com/speech/fetch:1.8.2",
        "args": ["--manifest", "gs://speech-corpus/manifests/2024-11.json", "--to", "/scratch"],
        "resources": {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "8Gi"}},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }


def _trainer(env: int) -> dict[str, Any]:
    amounts = {"cpu": "88", "memory": "600Gi", "nvidia.com/gpu": "8"}
    return {
        "name": "ahfk2p5kdl4tq-n3-0",
        "image": "registry.example.com/speech/train@sha256:"
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "imagePullPolicy": "IfNotPresent",
        "command": ["pyflyte-execute"],
        "args": [
            "--inputs",
            "gs://flyte/metadata/propeller/speech-development-ahfk2p5kdl4tq/n3/data/inputs.pb",
            "--output-prefix",
            "gs://flyte/metadata/propeller/speech-development-ahfk2p5kdl4tq/n3/data/0",
            "--raw-output-data-prefix",
            "gs://flyte/raw/8k/ahfk2p5kdl4tq-n3-0",
            "--resolver",
            "flytekit.core.python_auto_container.default_task_resolver",
            "--",
            "task-module",
            "pipelines.speech",
            "task-name",
            "train_acoustic_model",
        ],
        "env": [
            {
                "name": "POD_IP",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
            },
            *(
                {"name": f"TRAINING_SETTING_{i:05}", "value": f"value-of-setting-{i}"}
                for i in range(env - 1)
            ),
        ],
        "resources": {"requests": amounts, "limits": dict(amounts)},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data", "readOnly": True},
            {"name": "checkpoints", "mountPath": "/checkpoints"},
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "config", "mountPath": "/etc/train", "readOnly": True},
            {"name": "credentials", "mountPath": "/etc/wandb", "readOnly": True},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _exporter() -> dict[str, Any]:
    return {
        "name": "metrics",
        "image": "registry.example.com/observability/dcgm-exporter:3.3.8",
        "args": ["--collect-interval", "15000", "--address", ":9400"],
        "ports": [{"name": "metrics", "containerPort": 9400, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"cpu": "500m", "memory": "512Mi"},
        },
        "livenessProbe": {"httpGet": {"path": "/health", "port": 9400}, "periodSeconds": 30},
        "volumeMounts": [{"name": "podinfo", "mountPath": "/etc/podinfo", "readOnly": True}],
    }
