"""`kubetailor.yaml`: how chains are put together, and every fault with its place and a suggestion."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry import ConfigError, PluginError, TaskContext
from kubetailor.registry.config import Config
from kubetailor.registry.context import known_of_template
from kubetailor.registry.load import load_config
from kubetailor.registry.location import find_config
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import BUILTIN_KINDS, KindTable, Workload

POD: Any = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main"}]}}


def workload(obj: Any = None) -> Workload:
    kind = KindTable(BUILTIN_KINDS).of(obj or POD)
    assert kind is not None
    return Workload(obj or POD, kind)


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def load(text: str) -> Config:
        path = tmp_path / "kubetailor.yaml"
        path.write_text(text)
        return load_config(path, entry_points=False)

    return load


def names(config: Config, chain: str) -> list[str]:
    return [f"{step.layer}:{step.name}" for step in config.chain(chain).steps]


# ------------------------------------------------------------------------------------------ chains


def test_layers_run_in_their_order_whatever_the_order_of_the_file(load: Any) -> None:
    config = load(
        "chains: {default: {enforce: [{use: env}], steps: [{use: labels}, {use: image, name: x}],"
        " defaults: [{use: priority_class, with: {name: a}}]}}"
    )
    assert names(config, "default") == [
        "defaults:priority_class",
        "steps:labels",
        "steps:x",
        "enforce:env",
    ]


def test_extends_puts_the_parents_lists_first_and_replaces_by_name(load: Any) -> None:
    config = load(
        """
chains:
  child:
    extends: parent
    steps:
    - {use: env}
    - {name: b, use: annotations}
    - {name: c, use: null}
  parent:
    extends: grandparent
    steps: [{name: b, use: labels}, {name: c, use: labels}]
    enforce: [{name: b, use: image}]
  grandparent:
    steps: [{name: a, use: labels}]
select: [{chain: child}]
"""
    )
    child = config.chain("child")
    assert [(s.layer, s.name, s.transformer.name) for s in child.steps] == [
        ("steps", "a", "labels"),
        ("steps", "b", "annotations"),
        ("steps", "env", "env"),
        ("enforce", "b", "image"),
    ]
    assert [str(s.mark).rpartition("kubetailor.yaml:")[2] for s in child.steps][1] == "7:17"
    assert names(config, "parent") == ["steps:a", "steps:b", "steps:c", "enforce:b"]
    assert names(config, "grandparent") == ["steps:a"]


def test_the_first_rule_that_holds_selects(load: Any) -> None:
    config = load(
        """
chains: {default: {}, production: {}, gpu: {}}
select:
- {when: {requests: nvidia.com/gpu, domain: [prod, "prod-*"]}, chain: gpu}
- {when: {domain: "prod*"}, chain: production}
- {when: {kind: Job}, chain: null}
- {chain: default}
"""
    )

    def picked(obj: Any = None, **known: Any) -> str | None:
        chain = config.chain_for(TaskContext("admit", **known), workload(obj))
        return chain.name if chain else None

    gpu = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    assert picked(domain="dev") == "default"
    assert picked(domain="production") == "production"
    assert picked({**POD, "spec": {"containers": [gpu]}}, domain="prod-eu") == "gpu"
    assert picked() == "default", "at the last phase what is not known does not match"
    assert picked({"apiVersion": "batch/v1", "kind": "Job"}) is None


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ("chains: {default: {}}", "default"),
        ("chains: {}", None),
        ("plugins: []", None),
        ("{}", None),
    ],
)
def test_without_select_the_chain_default_runs(load: Any, text: str, chain: str | None) -> None:
    found = load(text).chain_for(TaskContext("admit"), workload())
    assert (found.name if found else None) == chain


def test_the_config_is_found_upwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_config(inner) is None or not str(find_config(inner)).startswith(str(tmp_path))
    (tmp_path / "kubetailor.yaml").write_text("chains: {default: {}, other: {}}")
    assert find_config(inner) == tmp_path / "kubetailor.yaml"
    monkeypatch.chdir(inner)
    given = tmp_path / "given.yaml"
    given.write_text("chains: {default: {}}")
    found = Tailor.find(environ={})
    assert found is not None
    assert found.config.file == str(tmp_path / "kubetailor.yaml")
    by_env = Tailor.find(environ={"KUBETAILOR_CONFIG": str(given)})
    assert by_env is not None
    assert by_env.config.file == str(given)
    forced = Tailor.find(
        environ={"KUBETAILOR_CHAIN": "other", "KUBETAILOR_TASK": "domain=d,project=p"}
    )
    assert forced is not None
    assert forced.forced == "other"
    assert forced.fields == {"domain": "d", "project": "p"}
    assert forced.tailor(POD, "admit").chain is forced.config.chain("other")
    for environ, message in (
        ({"KUBETAILOR_CHAIN": "othr"}, r"no chain 'othr'; did you mean other\?"),
        (
            {"KUBETAILOR_TASK": "domian=d"},
            r"KUBETAILOR_TASK: unknown field 'domian'; did you mean domain",
        ),
        ({"KUBETAILOR_TASK": "domain"}, r"KUBETAILOR_TASK: expected key=value, found 'domain'"),
        ({"KUBETAILOR_CONFIG": str(tmp_path / "no.yaml")}, r"no.yaml: No such file"),
    ):
        with pytest.raises(ConfigError, match=message):
            Tailor.find(environ=environ)


def test_what_the_user_says_of_every_task_beats_what_a_host_knows(load: Any) -> None:
    config = load("chains: {a: {}, b: {}}\nselect: [{when: {domain: d}, chain: a}, {chain: null}]")
    task = Tailor(config, fields={"domain": "d"}).task("serialize", domain="other", task="t")
    assert (task.phase, task.domain, task.task) == ("serialize", "d", "t")
    for forced, domain, chain in ((None, "d", "a"), (None, "x", None), ("b", "x", "b")):
        tailor = Tailor(config, forced)
        found = tailor.chain_of(tailor.task("admit", domain=domain), workload())
        assert (found and found.name) == chain


@pytest.mark.parametrize(
    ("template", "known"),
    [
        ({}, {"task": None, "task_type": None}),
        ({"id": "a", "type": "t"}, {"task": None, "task_type": "t"}),
        ({"id": {"name": "", "domain": "", "version": None}}, {"task": "", "task_type": None}),
        (
            {"id": {"name": "n", "project": "p", "domain": "d", "version": "v"}, "type": "t"},
            {"project": "p", "domain": "d", "version": "v", "task": "n", "task_type": "t"},
        ),
    ],
)
def test_what_a_task_template_says_of_its_task(template: Any, known: Any) -> None:
    assert known_of_template(template) == known


# ------------------------------------------------------------------------------------------- faults

FAULTS = [
    ("[]", "1:1: expected a map"),
    ("chain: {}", "1:1: no key 'chain' here; did you mean chains? (keys: accelerators, "),
    ("chains: {default: {step: []}}", "1:20: no key 'step' here; did you mean steps?"),
    ("chains: {default: {steps: [{usee: x}]}}", "1:29: no key 'usee' here; did you mean use?"),
    (
        "chains: {default: {steps: [{use: env, with_: {}}]}}",
        "no key 'with_' here; did you mean with?",
    ),
    (
        "chains: {default: {steps: [{name: x}]}}",
        "1:28: chains.default.steps.0.use: Field required (found nothing)",
    ),
    (
        "chains: {default: {steps: {use: env}}}",
        "1:20: chains.default.steps: Input should be a valid list",
    ),
    ("chains: [a]", "1:1: chains: Input should be a valid dictionary"),
    ("strict: perhaps", "1:1: strict: Input should be a valid boolean"),
    (
        "phases: [serialise]",
        "1:10: phases.0: Input should be 'serialize', 'launch' or 'admit' (found 'serialise')",
    ),
    (
        "chains: {default: {steps: [{use: tolerationz}]}}",
        "1:29: no transformer 'tolerationz'; did you mean tolerations?",
    ),
    (
        "chains: {default: {steps: [{use: env, with: {sett: {}}}]}}",
        "1:46: env: no parameter 'sett'; did you mean set? (parameters: container, remove, set)",
    ),
    (
        "chains: {default: {steps: [{use: resources, with: {limits: {memory: 1g}}}]}}",
        "1:61: resources: limits.memory: '1g' is not a quantity; write 1G or 1Gi",
    ),
    (
        "chains: {default: {steps: [{use: priority_class}]}}",
        "priority_class: the parameter 'name' is required",
    ),
    (
        "chains: {default: {steps: [{use: tolerations, with: {add: [{key: a, efect: NoSchedule}]}}]}}",
        "1:69: tolerations: add.0: no key 'efect' here; did you mean effect?",
    ),
    (
        "chains: {default: {steps: [{use: env, when: {domian: x}}]}}",
        "1:46: when: no field 'domian'; did you mean domain?",
    ),
    (
        "chains: {default: {steps: [{use: env, when: {}}]}}",
        "1:39: when: expected a map of fields and values",
    ),
    (
        "chains: {default: {steps: [{use: env, when: {any: {kind: Pod}}}]}}",
        "`any` takes a list of conditions",
    ),
    (
        "chains: {default: {steps: [{use: env, when: {kind: []}}]}}",
        "1:46: when: expected a glob or a list of globs",
    ),
    (
        "chains: {default: {steps: [{use: env, when: {phase: admission}}]}}",
        "no phase 'admission'; phases: serialize",
    ),
    (
        "chains: {default: {steps: [{use: env, when: {labels: x}}]}}",
        "`labels` takes a map of names and globs",
    ),
    (
        "chains: {default: {enforce: [{use: env, when: {not: {inputs: {a: b}}}}]}}",
        "1:41: `when` of a step of enforce reads inputs, which the last phase cannot know",
    ),
    (
        "chains: {a: {extends: b}, b: {extends: c}, c: {extends: a}}",
        "cyclic `extends`: a -> b -> c -> a",
    ),
    ("chains: {default: {extends: default}}", "1:20: cyclic `extends`: default -> default"),
    (
        "chains: {default: {extends: parrent}, parent: {}}",
        "1:20: no chain 'parrent'; did you mean parent?",
    ),
    (
        "chains: {default: {extends: p, steps: [{name: x, use: null}]}, p: {steps: [{name: y, use: env}]}}",
        "1:40: `use: null` drops an inherited step, and there is none called 'x'",
    ),
    (
        "chains: {default: {steps: [{name: x, use: env}, {name: x, use: labels}]}}",
        "1:50: the name 'x' is there twice",
    ),
    (
        "chains: {production: {}}",
        "1:1: without `select` the chain 'default' runs, and there is none",
    ),
    (
        "chains: {default: {}}\nselect: [{chain: defualt}]",
        "2:11: no chain 'defualt'; did you mean default?",
    ),
    (
        "chains: {default: {}}\nselect: [{when: {domian: x}, chain: default}]",
        "2:18: when: no field 'domian'",
    ),
    (
        "chains: {default: {}}\nselect: [{chain: default}, {when: {domain: x}, chain: default}]",
        "2:28: unreachable: the rule before always holds",
    ),
    (
        "chains: {default: {}}\nselect: [{when: {domain: x}, chain: default}, {when: {domain: x}, chain: null}]",
        "2:47: unreachable: a rule before has the same `when`",
    ),
    (
        "accelerators: {a: {extends: b, resource: x}, b: {extends: a}}",
        "accelerator 'a': cyclic `extends`: a -> b -> a",
    ),
    (
        "accelerators: {a: {node_selectr: {}, resource: x}}",
        "accelerator 'a': no field 'node_selectr'; did you mean node_selector",
    ),
    ("accelerators: {a: {}}", "accelerator 'a': `resource` is required"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS, ids=[message[:48] for _, message in FAULTS])
def test_faults_have_a_place_and_a_suggestion(load: Any, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert "kubetailor.yaml:" in str(caught.value)
    assert message in str(caught.value)


def test_faults_of_plugins_are_all_told(load: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nope_nope\n")
    (tmp_path / "syntax.py").write_text("def (\n")
    with pytest.raises(PluginError) as caught:
        load("plugins: [./broken.py, syntax.py, no_such_module, ./gone.py]\nchains: {}")
    text = str(caught.value)
    assert "plugin 'broken': cannot be loaded from" in text
    assert "No module named 'nope_nope'" in text
    assert f"{tmp_path / 'broken.py'}:1" in text
    assert "plugin 'syntax': cannot be loaded" in text
    assert "kubetailor.yaml:1:35: plugin 'no_such_module': cannot be loaded from" in text
    assert "no module 'no_such_module'" in text
    assert "kubetailor.yaml:1:51: plugin 'gone': cannot be loaded" in text


def test_a_when_that_a_later_step_may_change_is_told(load: Any) -> None:
    config = load(
        "chains: {default: {steps: [{use: env, when: {labels: {a: b}}}, {use: labels},"
        " {use: image, when: {requests: x}}, {use: resources}]}}"
    )
    assert len(config.advice) == 2
    assert "its `when` reads labels, which a later step sets" in config.advice[0]
    assert "its `when` reads requests" in config.advice[1]


KINDS = """
from kubetailor.workloads import Kind, PodPath

def register_kinds(register):
    register(Kind("Crew", "acme.example", (PodPath("lead", "spec.lead"),
                                           PodPath("{name}", "spec.members[].template"))))

from kubetailor.registry import hookimpl
register_kinds = hookimpl(register_kinds)
"""

UNMATCHED = [
    ("{kind: [Job, PyTorchJobs]}", "no kind 'PyTorchJobs' is known; did you mean PyTorchJob"),
    ("{kind: PytorchJob}", "no kind 'PytorchJob' is known; did you mean PyTorchJob"),
    ("{kind: Pytorch*}", "no kind 'Pytorch*' is known; did you mean"),
    ("{kind: TaskTemplate}", "no kind 'TaskTemplate' is known; did you mean PodTemplate"),
    ("{kind: Crews}", "no kind 'Crews' is known; did you mean Crew?"),
    ("{api_group: kubeflow}", "no API group 'kubeflow' is known; did you mean kubeflow.org, trainer.kubeflow.org?"),
    ("{api_group: flyte}", "no API group 'flyte' is known; "),
    ("{role: workers}", "no kind has the role 'workers' (where the objects name their own, say the "
        "`kind` too: AppWrapper, Crew, CronWorkflow, Job of batch.volcano.sh, JobSet, TrainJob, "
        "Workflow, WorkflowTemplate); did you mean worker?"),
    ("{role: 'workers:a'}", "no kind has the role 'workers:a'"),
    ("{role: 'wrk*'}", "no kind has the role 'wrk*'"),
    ("{role: Worker}", "no kind has the role 'Worker'"),
    ("{kind: PyTorchJob, role: workers}", "no kind has the role 'workers'"),
    ("{not: {any: [{domain: a}, {all: [{kind: Jib}]}]}}", "no kind 'Jib' is known; did you mean Job"),
]  # fmt: skip


@pytest.mark.parametrize("where", ["steps", "select"])
@pytest.mark.parametrize(("when", "message"), UNMATCHED, ids=[when for when, _ in UNMATCHED])
def test_a_when_that_no_known_kind_meets_is_told(
    load: Any, tmp_path: Path, where: str, when: str, message: str
) -> None:
    (tmp_path / "acme.py").write_text(KINDS)
    step = f"when: {when}" if where == "steps" else "optional: true"
    rule = f"when: {when}, " if where == "select" else ""
    text = (
        f"plugins: [./acme.py]\nchains: {{default: {{steps: [{{use: labels, {step}}}]}},"
        f" child: {{extends: default}}}}\nselect: [{{{rule}chain: child}}]"
    )
    (advice,) = load(text).advice
    line = {"steps": 2, "select": 3}[where]
    name = re.escape(message.split("'")[1])
    found = re.search(rf"(\w+: )?'?{name}", text.splitlines()[line - 1])
    assert found is not None
    assert f"kubetailor.yaml:{line}:{found.start() + 1}: `when`: {message}" in advice


@pytest.mark.parametrize(
    "when",
    [
        "{kind: [PyTorchJob, '*Job', Crew]}",
        "{api_group: ['', kubeflow.org, '*.x-k8s.io', acme.example]}",
        "{role: [primary, master, worker, chief, ps, launcher, driver, job-runner, lead]}",
        "{role: ['worker:gpu', 'worker:*', '*gpu', 'wor*', 'worker:g[pq]*', 'worker:*-gpu']}",
        "{kind: JobSet, role: workers}",
        "{all: [{kind: 'Cr*'}, {role: anyone}]}",
        "{api_group: jobset.x-k8s.io, role: workers}",
        "{kind: [SparkApplication, TFJob, MPIJob, DaskJob, RayJob, Pod]}",
        "{namespace: workers, labels: {kind: PyTorchJobs, role: workers}, kind: null}",
    ],
)
def test_a_when_that_a_known_kind_meets_is_not_told(load: Any, tmp_path: Path, when: str) -> None:
    (tmp_path / "acme.py").write_text(KINDS)
    config = load(
        f"plugins: [./acme.py]\nchains: {{default: {{steps: [{{use: env, when: {when}}}]}}}}\n"
        f"select: [{{when: {when}, chain: default}}]"
    )
    assert config.advice == ()


def test_a_transformer_of_a_plugin_that_is_not_loaded(load: Any, tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(KINDS)
    head = "plugins: [./acme.py]\nchains: {default: {steps: [{use: "
    with pytest.raises(
        ConfigError,
        match=r":2:29: no transformer 'acme_platform\.spot'; no plugin 'acme_platform' is loaded: "
        r"install it, or name it under `plugins`; known transformers: ",
    ):
        load(head + "acme_platform.spot}]}}")
    for name in ("acme.spot", "spot"):
        with pytest.raises(ConfigError, match=f"no transformer '{name}'; known transformers: "):
            load(head + name + "}]}}")


# ------------------------------------------------------------------------------------------- digest

DIGEST = """
chains:
  default:
    steps:
    - {use: labels, with: {set: {a: b, c: d}}, when: {kind: Pod, domain: x}}
    - {use: env, with: {set: {A: 1}}}
  other: {steps: [{use: image, with: {image: x}}]}
overridable: [{use: labels}]
select: [{when: {domain: p}, chain: other}, {chain: default}]
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    steps:\n", "    # a comment\n    steps:\n"),
        ("{a: b, c: d}", "{c: d, a: b}"),
        ("{kind: Pod, domain: x}", "{domain: x, kind: Pod}"),
        ("{A: 1}", '{"A": "1"}'),
        ("image: x", "image: y"),
        ("overridable: [{use: labels}]", "overridable: [{use: env}]"),
        ("{use: env, with: {set: {A: 1}}}", "{with: {set: {A: 1}}, use: env}"),
        ("select:", "accelerators: {z: {resource: a.com/z}}\nselect:"),
    ],
)
def test_what_a_digest_does_not_depend_on(load: Any, old: str, new: str) -> None:
    assert old in DIGEST
    assert (
        load(DIGEST.replace(old, new)).chain("default").digest
        == load(DIGEST).chain("default").digest
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{a: b, c: d}", "{a: b, c: e}"),
        ("kind: Pod", "kind: Job"),
        ("{use: env, with: {set: {A: 1}}}", "{use: env, with: {set: {A: 1}}, optional: true}"),
        ("chains:", "strict: true\nchains:"),
        ("chains:", "flyte: {device_label: x}\nchains:"),
        (
            "    steps:\n    - {use: labels",
            "    enforce: [{use: env}]\n    steps:\n    - {use: labels",
        ),
    ],
)
def test_what_a_digest_depends_on(load: Any, old: str, new: str) -> None:
    assert old in DIGEST
    digest = load(DIGEST).chain("default").digest
    assert digest.startswith("sha256:")
    assert load(DIGEST.replace(old, new)).chain("default").digest != digest


def test_the_order_of_steps_is_in_the_digest(load: Any) -> None:
    one = load("chains: {default: {steps: [{use: env}, {use: labels}]}}").chain("default")
    other = load("chains: {default: {steps: [{use: labels}, {use: env}]}}").chain("default")
    assert one.digest != other.digest


def test_the_sources_of_a_plugin_outside_a_distribution_are_in_the_digest(
    load: Any, tmp_path: Path
) -> None:
    source = "from kubetailor.registry import Pod, transformer\n@transformer\ndef f(pod: Pod) -> None: ...\n"
    digests = []
    for number, text in enumerate((source, source, source + "# other\n")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "team.py").write_text(text)
        config = load(
            f"plugins: [./{number}/team.py]\nchains: {{default: {{steps: [{{use: team.f}}]}}, x: {{}}}}"
        )
        digests.append((config.chain("default").digest, config.chain("x").digest))
    assert digests[0] == digests[1]
    assert digests[0][0] != digests[2][0]
    assert digests[0][1] == digests[2][1], "a chain that does not use it"


def test_the_accelerators_that_are_used_are_in_the_digest(load: Any) -> None:
    text = (
        "accelerators:\n  a: {resource: x.com/gpu, node_selector: {p: q, r: s}}\n"
        "chains: {default: {steps: [{use: labels, with: {set: {acc: a}}}]}}"
    )
    digest = load(text).chain("default").digest
    assert load(text.replace("{p: q, r: s}", "{r: s, p: q}")).chain("default").digest == digest
    assert load(text.replace("{p: q, r: s}", "{p: q, r: t}")).chain("default").digest != digest


def test_the_digest_of_a_config_is_of_all_that_select_names(load: Any) -> None:
    digest = load(DIGEST).digest
    assert load(DIGEST.replace("image: x", "image: y")).digest != digest
    assert load(DIGEST.replace("domain: p", "domain: q")).digest != digest
    assert load(DIGEST.replace("chains:", "# c\nchains:")).digest == digest
