"""`overridable`: what one execution may override, and which rule says so."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetailor.registry import ConfigError, Override, OverrideError, TaskContext, Workload
from kubetailor.registry.config import Config
from kubetailor.registry.load import check_config, load_config
from kubetailor.registry.overrides.allowed import Allowed, compared
from kubetailor.registry.overrides.never import DEFAULT_USES, NEVER
from kubetailor.registry.overrides.node_fields import NODE_FIELDS
from kubetailor.registry.selectors import View
from kubetailor.workloads import BUILTIN_KINDS, KindTable, parse_quantity
from kubetailor.workloads.primary import PRIMARY_ANNOTATIONS

POD: Any = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"labels": {"team": "ml"}},
    "spec": {"containers": [{"name": "main"}]},
}
TEAM = """\
from datetime import timedelta
from typing import Literal
from kubetailor.registry import Pod, transformer
from pydantic import BaseModel

class Form(BaseModel):
    replicas: int = 1

@transformer
def wait(pod: Pod, *, time: timedelta, size: Literal["s", "m"] = "s", pool: str | None = "a", form: Form | None = None) -> None: ...
"""


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def load(overridable: str | None = None) -> Config:
        (tmp_path / "acme.py").write_text(TEAM)
        path = tmp_path / "kubetailor.yaml"
        head = "plugins: [./acme.py]\nchains: {default: {}}\n"
        path.write_text(head + (f"overridable:\n{overridable}\n" if overridable else ""))
        return load_config(path, entry_points=False)

    return load


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Config:
    path = tmp_path_factory.mktemp("config") / "kubetailor.yaml"
    path.write_text("chains: {default: {}}")
    return load_config(path, entry_points=False)


def refused(config: Config, step: str) -> str:
    """What is said of a step; "" if it may be."""
    try:
        config.overrides.compile(Override.parse(f"steps:\n- {step}"))
    except OverrideError as error:
        return str(error)
    return ""


# ---------------------------------------------------------------------------------------- the default

NOT_BY_DEFAULT = [
    ("{use: image, with: {image: x}}", "image may not be overridden; allowed: annotations, cache, env, gpu"),
    ("{use: patch, with: {pod: {hostNetwork: true}}}", "patch may not be overridden"),
    ("{use: labels, with: {set: {kubetailor.dev/x: a}}}", "set: keys of kubetailor.dev; never"),
    ("{use: annotations, with: {set: {kubetailor.dev/applied: a}}}", "keys of kubetailor.dev"),
    ("{use: annotations, with: {set: {a.kubetailor.dev/applied: a}}}", "keys of a.kubetailor.dev"),
    ("{use: annotations, with: {remove: [kubetailor.dev/applied]}}", "remove: keys of kubetailor.dev"),
    ("{use: labels, with: {set: {flyte.org/x: a}}}", "keys of flyte.org; never by default: flyte*"),
    ("{use: labels, with: {set: {flyteidl: a}}}", "never by default: flyte*"),
    ("{use: annotations, with: {set: {iam.amazonaws.com/role: a}}}", "never by default: iam.*"),
    ("{use: annotations, with: {set: {iam.gke.io/x: a}}}", "never by default: iam.*"),
    ("{use: annotations, with: {set: {a.kubernetes.io/x: a}}}", "never by default: *.kubernetes.io"),
    ("{use: labels, with: {set: {kubernetes.io/x: a}}}", "keys of kubernetes.io"),
    ("{use: labels, with: {set: {k8s.io/x: a}}}", "keys of k8s.io"),
    ("{use: labels, with: {set: {kueue.x-k8s.io/queue-name: a}}}", "keys of kueue.x-k8s.io"),
    ("{use: labels, with: {set: {ok: a}, remove: [node.kubernetes.io/x]}}", "remove: keys of node.kub"),
    ("{use: env, with: {set: {LD_PRELOAD: a}}}", "set: variable LD_PRELOAD; never by default: LD_*"),
    ("{use: env, with: {set: {PYTHONPATH: a}}}", "PYTHON*"),
    ("{use: env, with: {set: {PYTHON: a}}}", "PYTHON*"),
    ("{use: env, with: {set: {FLYTE_INTERNAL_TASK_NAME: a}}}", "FLYTE_*"),
    ("{use: env, with: {remove: [_F_WN]}}", "_F_*"),
    ("{use: env, with: {set: {A: {valueFrom: {secretKeyRef: {name: a, key: b}}}}}}", "a value from secretKeyRef"),
    ("{use: env, with: {set: {A: {valueFrom: {configMapKeyRef: {name: a, key: b}}}}}}", "configMapKeyRef"),
    ("{use: tolerations, with: {add: [{operator: Exists}]}}", "add: a toleration of every key; never by default"),
    ("{use: tolerations, with: {add: [{key: '', operator: Exists}]}}", "every key"),
    ("{use: tolerations, with: {add: [{key: a}, {key: node-role.kubernetes.io/master}]}}", "node-role.kubernetes.io/*"),
    ("{use: spark_conf, with: {set: {spark.kubernetes.container.image: x}}}", "set: the property spark.kubernetes.container.image; never by default: spark.kubernetes.*"),
    ("{use: spark_conf, with: {set: {spark.driver.extraJavaOptions: x}}}", "*JavaOptions"),
    ("{use: task_config, with: {set: {runtimeEnvYaml: x}}}", "the field runtimeEnvYaml; never"),
    ("{use: task_config, with: {set: {sparkConf: {a: b}}}}", "the field sparkConf"),
    ("{use: annotations, with: {set: {primary_container_name: sidecar}}}", "set: the key primary_container_name; never by default"),
    ("{use: annotations, with: {remove: [primary_container_name]}}", "remove: the key primary_container_name"),
    ("{use: labels, with: {set: {kai.scheduler/queue: a}}}", "keys of kai.scheduler"),
    ("{use: labels, with: {set: {priorityClassName: system-node-critical}}}", "keys of priorityclassname"),
    ("{use: labels, with: {set: {yunikorn.apache.org/queue: a}}}", "keys of yunikorn.apache.org"),
    ("{use: labels, with: {set: {queue: root.a, applicationId: b}}}", "keys of applicationid"),
    ("{use: annotations, with: {set: {scheduling.volcano.sh/queue-name: a}}}", "never by default: *.volcano.sh"),
    ("{use: labels, with: {set: {volcano.sh/queue-name: a}}}", "keys of volcano.sh"),
    ("{use: env, with: {set: {BASH_ENV: $(id)}}}", "variable BASH_ENV"),
    ("{use: env, with: {set: {PATH: /tmp}}}", "variable PATH"),
    ("{use: env, with: {set: {JAVA_TOOL_OPTIONS: a}}}", "*JAVA*_OPTIONS"),
    ("{use: env, with: {set: {_JAVA_OPTIONS: a}}}", "*JAVA*_OPTIONS"),
    ("{use: env, with: {set: {SPARK_SUBMIT_OPTS: a}}}", "SPARK_*"),
    ("{use: spark_conf, with: {set: {spark.hadoop.fs.s3a.endpoint: x}}}", "spark.hadoop.*"),
    ("{use: spark_conf, with: {set: {spark.python.worker.module: x}}}", "spark.python.*module"),
    ("{use: spark_conf, with: {set: {spark.files: 's3://a/b.py'}}}", "the property spark.files"),
    ("{use: spark_conf, with: {set: {spark.driver.resource.gpu.discoveryScript: x}}}", "*.discoveryScript"),
    ("{use: task_config, with: {set: {rayCluster: {headGroupSpec: {rayStartParams: {num-cpus: '1; id'}}}}}}", "set: what a shell reads: rayCluster.headGroupSpec.rayStartParams; never by default"),
    ("{use: priority_class, with: {name: system-node-critical}}", "the class system-node-critical"),
    ("{use: priority_class, with: {name: system-x}, optional: true}", "system-*"),
    ("{use: kai, with: {queue: a, priority_class: system-node-critical}}", "the class system-node-critical"),
    ("{use: pod_group, with: {count: 2}}", "pod_group may not be overridden"),
    ("{use: scheduler, with: {name: a}}", "scheduler may not be overridden"),
    ("{use: runtime_class, with: {name: a}}", "runtime_class may not be overridden"),
    ("{use: scheduling_gates, with: {remove: [{name: a}]}}", "scheduling_gates may not be"),
]  # fmt: skip
BY_DEFAULT = [
    "{use: gpu, with: {type: nvidia-h100-80gb, count: 64}}",
    "{use: labels, with: {set: {team: a, example.com/x: b, mykubernetes.io/x: c}, remove: [y]}}",
    "{use: annotations, with: {set: {cluster.autoscaler/x: b}}}",
    "{use: env, with: {set: {A: 1, MY_LD_: 2, pythonpath: 3, MY_PATH: 4}}}",
    "{use: env, with: {set: {A: {valueFrom: {fieldRef: {fieldPath: metadata.name}}}}}}",
    "{use: tolerations, with: {add: [{key: a, operator: Exists}], remove: [{key: b}]}}",
    "{use: kueue, with: {queue: a}}",
    "{use: kueue, with: {queue: a, topology: {'*': {preferred: rack}}, suspend: true}}",
    "{use: volcano, with: {queue: a}}",
    "{use: yunikorn, with: {queue: root.a, application_id: b}}",
    "{use: kai, with: {queue: a, priority_class: train}}",
    "{use: topology_spread, with: {remove: [{topologyKey: a}], replace: true}}",
    "{use: priority_class, with: {name: high}}",
    "{use: resources, with: {limits: {cpu: 4, memory: null}}}",
    "{use: node_selector, with: {set: {a: b}}}",
    "{use: node_affinity, with: {require: [{key: a, operator: Exists}]}}",
    "{use: shared_memory}",
    "{use: spark_conf, with: {set: {spark.executor.memory: 4g, spark.sql.x: 1}}}",
    "{use: task_config, with: {set: {slots: 2}, replicas: 4}}",
    "{use: task_config, with: {set: {rayCluster: {enableAutoscaling: true}}}}",
    "{use: cache, with: {cache: false}}",
    "{use: retries, with: {retries: 3}}",
    "{use: timeout, with: {timeout: 2h}}",
    "{use: interruptible, with: {interruptible: true}}",
]


@pytest.mark.parametrize(("step", "message"), NOT_BY_DEFAULT, ids=[s for s, _ in NOT_BY_DEFAULT])
def test_what_is_never_overridden_by_default(plain: Config, step: str, message: str) -> None:
    said = refused(plain, step)
    assert message in said
    assert "(the default of `overridable`)" in said
    assert said.startswith("kubetailor.dev/override:2:4: step ")


@pytest.mark.parametrize("step", BY_DEFAULT)
def test_what_may_be_overridden_by_default(plain: Config, step: str) -> None:
    assert refused(plain, step) == ""


def test_the_tables_name_what_there_is(plain: Config) -> None:
    transformers = plain.plugins.transformers
    for use, parameter in NEVER:
        assert parameter in transformers[use].annotations
    never = {"image", "patch", "volumes", "init_containers", "sidecars", "security_context"}
    assert not DEFAULT_USES & {*never, "service_account"}


NODE = [
    ("volumes", "add", [{"name": "a", "hostPath": {"path": "/"}}], "hostPath"),
    ("volumes", "add", [{"name": "a", "emptyDir": {}}, {"name": "b", "gitRepo": {"repository": "r"}}], "gitRepo"),
    ("volumes", "add", [{"name": "a", "flexVolume": {"driver": "d"}}], "flexVolume"),
    ("volumes", "mount", [{"name": "a", "mountPath": "/a", "mountPropagation": "Bidirectional"}], "mountPropagation"),
    ("sidecars", "add", [{"name": "a", "image": "a", "securityContext": {"privileged": True}}], "privileged"),
    ("sidecars", "add", [{"name": "a", "image": "a", "ports": [{"containerPort": 1, "hostPort": 1}]}], "hostPort"),
    ("init_containers", "add", [{"name": "a", "image": "a", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}], "capabilities"),
    ("init_containers", "add", [{"name": "a", "image": "a", "securityContext": {"procMount": "Unmasked"}}], "procMount"),
    ("security_context", "container_fields", {"seccompProfile": {"type": "Unconfined"}}, "seccompProfile"),
    ("security_context", "container_fields", {"appArmorProfile": {"type": "Unconfined"}}, "appArmorProfile"),
    ("security_context", "container_fields", {"seLinuxOptions": {"type": "spc_t"}}, "seLinuxOptions"),
    ("security_context", "pod_fields", {"windowsOptions": {"hostProcess": True}}, "hostProcess"),
    ("security_context", "pod_fields", {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}, "sysctls"),
    ("patch", "pod", {"hostNetwork": True}, "hostNetwork"),
    ("patch", "pod", {"hostPID": True}, "hostPID"),
    ("patch", "object", {"spec": {"template": {"spec": {"hostIPC": True}}}}, "hostIPC"),
]  # fmt: skip
NODE_SPARED = [
    ("volumes", "add", [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]),
    ("volumes", "mount", [{"name": "a", "mountPath": "/a", "mountPropagation": "HostToContainer"}]),
    ("sidecars", "add", [{"name": "a", "image": "a", "env": [{"name": "privileged", "value": "1"}]}]),
    ("security_context", "container_fields", {"privileged": False, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}),
    ("patch", "object", {"metadata": {"labels": {"privileged": "true", "hostPort": "80"}}}),
    ("patch", "pod", {"hostNetwork": None, "hostPID": False}),
]  # fmt: skip


def test_every_field_that_reaches_the_node_is_tried() -> None:
    assert {field for *_, field in NODE} == NODE_FIELDS.keys()


@pytest.mark.parametrize(("use", "parameter", "value", "field"), NODE, ids=[n[3] for n in NODE])
def test_what_reaches_the_node_is_not_said_by_naming_the_transformer(
    load: Any, use: str, parameter: str, value: Any, field: str
) -> None:
    step = json.dumps({"use": use, "with": {parameter: value}})
    for entry in (f"{{use: {use}}}", f"{{use: {use}, allow: {{{parameter}: {{}}}}}}"):
        said = refused(load(f"- {entry}"), step)
        assert f"{parameter}: what reaches the node: {field}; never by default" in said


@pytest.mark.parametrize(("use", "parameter", "value"), NODE_SPARED)
def test_what_stays_in_the_pod_may_be(load: Any, use: str, parameter: str, value: Any) -> None:
    step = json.dumps({"use": use, "with": {parameter: value}})
    assert refused(load(f"- use: {use}"), step) == ""


def test_a_volume_of_the_node_may_be_where_it_is_written_out(load: Any) -> None:
    config = load("- {use: volumes, allow: {add: {in: [{name: d, hostPath: {path: /data}}]}}}")
    step = "{use: volumes, with: {add: [{name: d, hostPath: {path: %s}}]}}"
    assert refused(config, step % "/data") == ""
    assert "allowed: " in refused(config, step % "/")


def test_what_is_not_said_stays_as_by_default(load: Any) -> None:
    config = load(
        "- {use: labels}\n- {use: env, allow: {set: {}}}\n- {use: tolerations, allow: {add: null}}\n"
        "- {use: priority_class, allow: {name: {max: 1}}}"
    )
    for step, rule in (
        ("{use: labels, with: {set: {iam.x/y: a}}}", 4),
        ("{use: env, with: {set: {LD_X: a}}}", 5),
        ("{use: tolerations, with: {add: [{operator: Exists}]}}", 6),
    ):
        said = refused(config, step)
        assert "never by default" in said
        assert f"kubetailor.yaml:{rule}:4)" in said
    assert refused(config, "{use: labels, with: {set: {a: b}}}") == ""
    assert "the parameter 'remove'; allowed: set" in refused(
        config, "{use: env, with: {remove: [A]}}"
    )


def test_an_entry_may_lift_it_in_so_many_words_but_not_what_is_ours(load: Any) -> None:
    config = load(
        "- {use: labels, allow: {set: {keys: ['*']}}}\n- {use: env, allow: {set: {keys: [LD_*]}}}\n"
        "- {use: tolerations, allow: {add: {keys: ['*']}}}\n"
        "- {use: annotations, allow: {set: {keys: ['*']}}}\n"
        "- {use: task_config, allow: {set: {keys: [rayCluster]}}}\n"
        "- {use: priority_class, allow: {name: {in: [system-a]}}}"
    )
    for step in (
        "{use: labels, with: {set: {iam.x/y: a}}}",
        "{use: env, with: {set: {LD_X: a}}}",
        "{use: tolerations, with: {add: [{operator: Exists}]}}",
        "{use: priority_class, with: {name: system-a}}",
    ):
        assert refused(config, step) == "", step
    assert "kubetailor.dev" in refused(config, "{use: labels, with: {set: {kubetailor.dev/y: a}}}")
    for name in PRIMARY_ANNOTATIONS:
        step = f"{{use: annotations, with: {{set: {{{name}: a}}}}}}"
        assert f"the key {name}; never" in refused(config, step)
    source = "{use: env, with: {set: {LD_A: {valueFrom: {secretKeyRef: {name: a, key: b}}}}}}"
    assert "a value from secretKeyRef" in refused(config, source)
    command = "{headGroupSpec: {rayStartParams: {num-cpus: '0'}}}"
    step = f"{{use: task_config, with: {{set: {{rayCluster: {command}}}}}}}"
    assert "what a shell reads: rayCluster.headGroupSpec.rayStartParams" in refused(config, step)
    written_out = load(f"- {{use: task_config, allow: {{set: {{in: [{command}]}}}}}}")
    assert refused(written_out, step) == ""


# ------------------------------------------------------------------------------------------ the rules

RULES = """\
- use: gpu
  allow: {type: {in: [nvidia-a100-80gb, nvidia-h100-80gb]}, count: {min: 2, max: 8}}
- use: resources
  allow:
    limits: {keys: [cpu, memory, "*.com/gpu"], max: {cpu: 16, memory: 64Gi}}
    requests: {max: 100Gi}
- use: labels
  allow: {set: {keys: ["example.com/*", team], pattern: "[a-z0-9]+"}, remove: {keys: [team]}}
- use: shared_memory
  allow: {size_limit: {in: [16Gi, 1]}}
- use: tolerations
  allow: {add: {keys: ["example.com/*"]}}
- use: acme.wait
  allow: {time: {max: PT1H}, size: {in: [s]}, pool: {pattern: a.*}, form: {max: {replicas: 4}}}
- use: kueue
  allow: {}
- {use: timeout, allow: {timeout: {min: 1, max: 2h}}}
- {use: spark_conf, allow: {set: {keys: [spark.network.timeout], max: 2h}}}
- {use: interruptible, allow: {interruptible: {in: [true]}}}"""
ALLOWED = [
    "{use: gpu, with: {type: nvidia-h100-80gb, count: 8}}",
    "{use: gpu, with: {type: nvidia-h100-80gb, count: '2'}}",
    "{use: gpu, with: {type: nvidia-a100-80gb}}",
    "{use: resources, with: {limits: {cpu: 16000m, memory: 65536Mi, nvidia.com/gpu: 100}}}",
    "{use: resources, with: {requests: {memory: 107374182400}}}",
    "{use: resources}",
    "{use: labels, with: {set: {example.com/a: b1, team: 7}, remove: [team]}}",
    "{use: shared_memory, with: {size_limit: 16384Mi}}",
    "{use: shared_memory, with: {size_limit: null}}",
    "{use: tolerations, with: {add: [{key: example.com/a, operator: Exists}]}}",
    "{use: acme.wait, with: {time: PT60M}}",
    "{use: timeout, with: {timeout: 120m}}",
    "{use: timeout, with: {timeout: 7200}}",
    "{use: spark_conf, with: {set: {spark.network.timeout: 90m}}}",
    "{use: interruptible, with: {interruptible: true}}",
    "{use: acme.wait, with: {time: PT1H, size: s, pool: abc, form: {replicas: 4}}}",
]
REFUSED = [
    ("{use: gpu, with: {type: nvidia-t4}}", "type: nvidia-t4; allowed: nvidia-a100-80gb, nvidia-h100-80gb", 4),
    ("{use: gpu, with: {type: nvidia-a100-80gb, count: 16}}", "count: 16; allowed: at most 8", 4),
    ("{use: gpu, with: {type: nvidia-a100-80gb, count: 1}}", "count: 1; allowed: at least 2", 4),
    ("{use: gpu, with: {type: nvidia-a100-80gb, container: x}}", "the parameter 'container'; allowed: type, count", 4),
    ("{use: resources, with: {limits: {cpu: 16001m}}}", "limits: cpu: 16001m; allowed: at most 16", 6),
    ("{use: resources, with: {limits: {memory: 65Gi}}}", "memory: 65Gi; allowed: at most 64Gi", 6),
    ("{use: resources, with: {limits: {memory: null}}}", "memory: null; allowed: at most 64Gi", 6),
    ("{use: resources, with: {limits: {ephemeral-storage: 1}}}", "the key 'ephemeral-storage'; allowed: cpu, memory, *.com/gpu", 6),
    ("{use: resources, with: {requests: {memory: 101Gi}}}", "requests: memory: 101Gi; allowed: at most 100Gi", 6),
    ("{use: resources, with: {raise_limits: true}}", "the parameter 'raise_limits'; allowed: limits, requests", 6),
    ("{use: labels, with: {set: {other: b}}}", "set: the key 'other'; allowed: example.com/*, team", 10),
    ("{use: labels, with: {set: {team: B-1}}}", "set: team: B-1; allowed: what matches [a-z0-9]+", 10),
    ("{use: labels, with: {remove: [cost]}}", "remove: the key 'cost'; allowed: team", 10),
    ("{use: shared_memory, with: {size_limit: 1000m}}", "size_limit: 1000m; allowed: 16Gi, 1", 12),
    ("{use: tolerations, with: {add: [{key: other}]}}", "the key 'other'; allowed: example.com/*", 14),
    ("{use: tolerations, with: {add: [{operator: Exists}]}}", "the key ''; allowed: example.com/*", 14),
    ("{use: acme.wait, with: {time: PT61M}}", "time: 1:01:00; allowed: at most 1:00:00", 16),
    ("{use: acme.wait, with: {time: PT1S, size: m}}", "size: m; allowed: s", 16),
    ("{use: acme.wait, with: {time: PT1S, pool: null}}", "pool: null; allowed: what matches a.*", 16),
    ("{use: acme.wait, with: {time: PT1S, form: {replicas: 5}}}", "replicas: 5; allowed: at most 4", 16),
    ("{use: kueue, with: {queue: a}}", "the parameter 'queue'; allowed: none", 18),
    ("{use: timeout, with: {timeout: 121m}}", "timeout: 7260s; allowed: at most 7200s", 20),
    ("{use: timeout, with: {timeout: 7201}}", "timeout: 7201s; allowed: at most 7200s", 20),
    ("{use: timeout, with: {timeout: null}}", "timeout: null; allowed: at least 1s", 20),
    ("{use: timeout, with: {timeout: 0}}", "timeout: 0s; allowed: at least 1s", 20),
    ("{use: spark_conf, with: {set: {spark.network.timeout: 121m}}}", "allowed: at most 2h", 21),
    ("{use: spark_conf, with: {set: {spark.network.timeout: soon}}}", "soon; allowed: at most 2h", 21),
    ("{use: interruptible, with: {interruptible: false}}", "interruptible: false; allowed: true", 22),
    ("{use: env}", "env may not be overridden; allowed: acme.wait, gpu, interruptible, kueue, labels, resources", 3),
]  # fmt: skip


@pytest.mark.parametrize("step", ALLOWED)
def test_what_the_rules_allow(load: Any, step: str) -> None:
    assert refused(load(RULES), step) == ""


@pytest.mark.parametrize(("step", "message", "line"), REFUSED, ids=[s for s, _, _ in REFUSED])
def test_a_refusal_says_which_rule_and_what_is_allowed(
    load: Any, step: str, message: str, line: int
) -> None:
    said = refused(load(RULES), step)
    assert message in said
    assert f"kubetailor.yaml:{line}:" in said
    assert said.startswith("kubetailor.dev/override:2:4: step ")


def test_the_whole_of_a_refusal(load: Any, tmp_path: Path) -> None:
    said = refused(load(RULES), "{use: gpu, with: {type: nvidia-t4, count: 16}}")
    file = tmp_path / "kubetailor.yaml"
    assert said == (
        "kubetailor.dev/override:2:4: step 'gpu': type: nvidia-t4; allowed: nvidia-a100-80gb, "
        f"nvidia-h100-80gb ({file}:4:3)\n"
        f"kubetailor.dev/override:2:4: step 'gpu': count: 16; allowed: at most 8 ({file}:4:3)"
    )


def test_nothing_may_be_overridden_where_the_list_is_empty(load: Any) -> None:
    assert "labels may not be overridden; allowed: nothing" in refused(
        load("  []"), "{use: labels}"
    )


# -------------------------------------------------------------------------------------- by the task

BY_TASK = """\
- {use: gpu, when: {domain: development}}
- {use: gpu, when: {project: [a, b]}, allow: {type: {}, count: {max: 8}}}
- {use: labels, when: {kind: Pod}}
- {use: env, when: {role: primary}}
- {use: kueue, when: {any: [{node: n1}, {inputs: {big: "true"}}]}}"""


def refusals(config: Config, step: str, phase: Any = "launch", **known: Any) -> list[str]:
    compiled = config.overrides.compile(Override.parse(f"steps: [{step}]"))
    kind = KindTable(BUILTIN_KINDS).of(POD)
    assert kind is not None
    view = View(TaskContext(phase, **known), Workload(POD, kind))
    found = config.overrides.overridable.refusals(compiled.steps[0], view)
    return [str(each).replace(config.file, "F") for each in found]


def test_a_rule_holds_where_its_when_does(load: Any) -> None:
    config = load(BY_TASK)
    eight = "{use: gpu, with: {type: nvidia-t4, count: 8}}"
    more = "{use: gpu, with: {type: nvidia-t4, count: 9}}"
    assert refusals(config, more, domain="development", project="x") == []
    assert refusals(config, more, domain="development", project="a") == []  # one of them is enough
    assert refusals(config, eight, domain="production", project="a") == []
    assert refusals(config, more, domain="production", project="a") == [
        "count: 9; allowed: at most 8 (F:5:4)"
    ]
    assert refusals(config, eight, domain="production", project="x") == [
        'gpu may not be overridden here, only where {"domain": "development"} (F:4:4)',
        'gpu may not be overridden here, only where {"project": ["a", "b"]} (F:5:4)',
    ]
    assert refusals(config, "{use: labels}") == []
    assert refusals(config, "{use: env}") == []


def test_what_a_phase_cannot_know_allows_nothing(load: Any) -> None:
    config = load(BY_TASK)
    for phase in ("serialize", "launch", "admit"):
        assert len(refusals(config, "{use: gpu, with: {type: nvidia-t4}}", phase)) == 2
    assert len(refusals(config, "{use: kueue, with: {queue: a}}", "admit")) == 1
    assert refusals(config, "{use: kueue, with: {queue: a}}", node="n1") == []
    assert refusals(config, "{use: kueue, with: {queue: a}}", node="n2", inputs={"big": True}) == []


# ------------------------------------------------------------------------------------ faults at load

LOAD_FAULTS = [
    ("- {use: gqu}", "3:9: no transformer 'gqu'; did you mean gpu?"),
    ("- {use: null}", "overridable.0.use: Input should be a valid string"),
    ("- {allow: {}}", "overridable.0.use: Field required"),
    ("- {use: gpu, wen: {}}", "no key 'wen' here; did you mean when?"),
    ("- {use: gpu, when: {tusk: a}}", "when: no field 'tusk'; did you mean task?"),
    ("- {use: gpu, when: {labels: {a: b}}}", "4:21: when: `labels` of an execution is what whoever launches it says"),
    ("- {use: gpu, when: {project: p, annotations: {a: b}}}", "4:33: when: `annotations` of an execution is"),
    ("- {use: gpu, when: {not: {any: [{role: worker}, {execution: e*}]}}}", "4:50: when: `execution` of an execution is"),
    ("- {use: gpu, when: {all: [{not: {labels: {a: null}}}]}}", "ask for project, domain, workflow, task, task_type, kind or role"),
    ("- {use: gpu, allow: {tpe: {}}}", "gpu: no parameter 'tpe'; did you mean type?"),
    ("- {use: gpu, allow: {type: {is: []}}}", "no key 'is' here; keys: in, keys, max, min, pattern"),
    ("- {use: gpu, allow: {type: {in: []}}}", "in: List should have at least 1 item"),
    ("- {use: gpu, allow: {type: {keys: []}}}", "keys: List should have at least 1 item"),
    ("- {use: gpu, allow: {type: {in: [nvidia-h10]}}}", "no accelerator 'nvidia-h10'; did you mean"),
    ("- {use: gpu, allow: {count: {max: many}}}", "count: Input should be a valid integer"),
    ("- {use: gpu, allow: {type: {max: nvidia-t4}}}", "nvidia-t4 is no number, quantity or duration"),
    ("- {use: resources, allow: {limits: {max: {cpu: x}}}}", "x is no number, quantity or duration"),
    ("- {use: gpu, allow: {type: {pattern: '('}}}", "no regular expression: missing )"),
    ("- {use: gpu, allow: [type]}", "Input should be a valid dictionary"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "message"), LOAD_FAULTS, ids=[m for _, m in LOAD_FAULTS])
def test_a_rule_that_cannot_be_is_a_fault_of_the_config(
    load: Any, entry: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(entry)
    expected = message.replace("3:9", "4:4")
    assert expected in str(caught.value)
    assert f"kubetailor.yaml:{4}:" in str(caught.value)


def test_all_faults_are_said_and_a_broken_plugin_s_only_once(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    path = tmp_path / "kubetailor.yaml"
    path.write_text(
        "plugins: [./broken.py]\nchains: {default: {}}\n"
        "overridable: [{use: broken.x}, {use: gqu}, {use: gpu, allow: {x: {}}}]"
    )
    _, faults = check_config(path, entry_points=False)
    assert [str(fault).partition(": ")[2][:20] for fault in faults] == [
        "plugin 'broken': can",
        "no transformer 'gqu'",
        "gpu: no parameter 'x",
    ]


# ---------------------------------------------------------------------------------------- properties

AMOUNT = st.integers(0, 10**6).flatmap(
    lambda n: st.sampled_from([n, str(n), f"{n}m", f"{n}Mi", f"{n}G", n / 8])
)


@given(value=AMOUNT, bound=AMOUNT)
def test_quantities_compare_by_value(plain: Config, value: Any, bound: Any) -> None:
    beyond = parse_quantity(value) > parse_quantity(bound)
    assert bool(list(Allowed(most=bound).reasons({"a": value}))) is beyond
    assert bool(list(Allowed(least=value).reasons([bound]))) is beyond
    assert not list(Allowed(values=(str(value),)).reasons(str(value)))


@given(value=st.none() | st.booleans() | st.text(max_size=5) | st.lists(st.text(max_size=2)))
def test_what_cannot_be_compared_is_refused(value: Any) -> None:
    if compared(value, "5") is None:
        assert list(Allowed(most="5").reasons({"a": value}))
        assert list(Allowed(least="5").reasons({"a": value}))


def test_arguments_of_any_type_are_looked_into(load: Any, tmp_path: Path) -> None:
    team = TEAM + (
        "from dataclasses import dataclass\n\n"
        "@dataclass\n"
        "class Size:\n    cpu: int = 1\n\n"
        "@transformer\n"
        "def sized(pod: Pod, *, size: Size, names: set[str] | None = None, "
        "first: tuple[int, int] = (0, 0)) -> None: ...\n"
    )
    (tmp_path / "sized.py").write_text(team)
    path = tmp_path / "k.yaml"
    path.write_text(
        "plugins: [./sized.py]\nchains: {default: {}}\noverridable:\n"
        "- {use: sized.sized, allow: {size: {max: {cpu: 4}}, names: {keys: [a*], in: [ab, ac, null]},"
        " first: {max: 3}}}"
    )
    config = load_config(path, entry_points=False)
    good = "{use: sized.sized, with: {size: {cpu: 4}, names: [ab], first: [1, 3]}}"
    assert refused(config, good) == ""
    assert refused(config, "{use: sized.sized, with: {size: {cpu: 1}, names: null}}") == ""
    assert "cpu: 5; allowed: at most 4" in refused(config, good.replace("cpu: 4", "cpu: 5"))
    assert "the key 'b'; allowed: a*" in refused(config, good.replace("[ab]", "[b]"))
    assert "names: ad; allowed: ab, ac, null" in refused(config, good.replace("[ab]", "[ad]"))
    assert "first: 4; allowed: at most 3" in refused(config, good.replace("[1, 3]", "[1, 4]"))
