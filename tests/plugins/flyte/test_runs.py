"""Runs of flytekit's serialization: several at once, their config, and what they say at the end."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flytekit import PodTemplate, Workflow, task
from flytekit.configuration import ImageConfig, SerializationSettings
from flytekit.models.admin.workflow import WorkflowSpec
from flytekit.tools import translator

from kubetailor.plugins.flyte import install
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.flyte.version import context_of

SETTINGS = SerializationSettings(
    ImageConfig.auto_default_image(), project="speech", domain="development", version="v1"
)


def _work(x: int) -> int:
    return x


work = task(container_image="i:1")(_work)


def workflow_of(name: str) -> Any:
    """A workflow whose one node gives its task a pod template."""
    workflow = Workflow(name=name)
    given = workflow.add_workflow_input("x", int)
    node = workflow.add_entity(work, x=given)
    node.with_overrides(pod_template=PodTemplate())
    workflow.add_workflow_output("o", node.outputs["o0"])
    return workflow


def serialize(mapping: Any, *entities: Any) -> None:
    for entity in entities:
        translator.get_serializable(mapping, SETTINGS, entity)


def tailored(mapping: Any) -> list[bool]:
    """Whether the chain ran over the node of each workflow."""
    return [
        STAMP in (spec.template.nodes[0].task_node.overrides.pod_template.annotations or {})
        for spec in mapping.values()
        if isinstance(spec, WorkflowSpec)
    ]


# several at once ----------------------------------------------------------------------------------


def test_mappings_that_take_turns(flyte: Any, configure: Callable[[str], Any]) -> None:
    configure(flyte.CONFIG)
    one: Any = OrderedDict()
    other: Any = OrderedDict()
    serialize(one, work)
    serialize(other, work)
    serialize(one, workflow_of("one"))
    serialize(other, workflow_of("other"))
    assert (tailored(one), tailored(other)) == ([True], [True])


def test_a_plain_dict(flyte: Any, configure: Callable[[str], Any]) -> None:
    configure(flyte.CONFIG)
    mapping: Any = {}
    serialize(mapping, workflow_of("plain"))
    assert tailored(mapping) == [True]


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("kind", [OrderedDict, dict])
def test_threads(flyte: Any, configure: Callable[[str], Any], kind: type[Any]) -> None:
    configure(flyte.CONFIG)
    groups = [[workflow_of(f"{kind.__name__}{i}.{n}") for n in range(10)] for i in range(4)]

    def run(workflows: list[Any]) -> list[bool]:
        mapping = kind()
        serialize(mapping, *workflows)
        return tailored(mapping)

    with ThreadPoolExecutor(4) as executor:
        found = list(executor.map(run, groups))
    assert found == [[True] * 10] * 4


def test_nothing_is_kept_of_a_run_that_is_over(flyte: Any, configure: Callable[[str], Any]) -> None:
    configure(flyte.CONFIG)
    before = len(install._runs)
    mapping: Any = None
    for _ in range(3):
        mapping = OrderedDict()
        serialize(mapping, work)
    assert len(install._runs) == before + 1
    del mapping
    assert len(install._runs) == before


# the phase ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("phases", ["[admit]", "[launch, admit]"])
def test_where_the_phase_is_not_listed_nothing_is_done(
    flyte: Any,
    zoo: ModuleType,
    configure: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
    phases: str,
) -> None:
    before = flyte.protobufs(flyte.serialize(zoo.everything, zoo.overridden))
    path = configure(f"phases: {phases}\n{flyte.CONFIG}")
    assert flyte.protobufs(flyte.serialize(zoo.everything, zoo.overridden)) == before
    assert context_of(str(path)) == ()
    assert capsys.readouterr().err == ""


# the config ---------------------------------------------------------------------------------------


def test_an_edited_plugin_counts_at_once(
    flyte: Any, zoo: ModuleType, folder: Path, configure: Callable[[str], Path]
) -> None:
    plugin = folder / "team.py"

    def write(text: str) -> None:
        plugin.write_text(
            "from kubetailor.registry import Pod, transformer\n\n"
            f"@transformer\ndef mark(pod: Pod) -> None:\n    pod.label('a', {text!r})\n"
        )

    write("first")
    path = configure("plugins: [./team.py]\nchains: {default: {steps: [{use: team.mark}]}}")

    def label() -> str:
        return str(flyte.template_of(zoo.prepare).metadata.metadata.labels["a"])

    version = context_of(str(path))
    assert label() == "first"
    assert context_of(str(path)) == version
    kept = plugin.stat()
    write("other")  # as long as before, and written in the same instant perhaps
    os.utime(plugin, ns=(kept.st_atime_ns, kept.st_mtime_ns + 1))
    assert context_of(str(path)) != version
    assert label() == "other"
    plugin.write_text("def (")
    with pytest.raises(Exception, match=r"team\.py"):
        label()
    write("third")
    assert label() == "third"


# the end ------------------------------------------------------------------------------------------

MODULE = """
from flytekit import task, workflow

@task
def a(x: int) -> int:
    return x

@task
def b(x: int) -> int:
    return x

@task
def c(x: int) -> int:
    return x

@workflow
def wf(x: int) -> int:
    return c(x=b(x=a(x=x)))
"""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("chains: {}", []),
        (
            "chains: {default: {steps: [{use: priority_class, with: {name: x}, when: {task: y}}]}}",
            [],
        ),
        (
            "chains: {default: {steps: [{use: priority_class, with: {name: x}}]}}",
            ["kubetailor: kubetailor.yaml: 3 of 3 tasks tailored"],
        ),
        (
            """
            phases: [serialize, launch]
            chains:
              default:
                steps:
                  - {use: priority_class, with: {name: x}, when: {task: "*.a"}}
                  - {use: labels, with: {set: {a: b}}, when: {node: n}}
            """,
            [
                "kubetailor: labels waits for the phase launch: node is not known yet",
                "kubetailor: kubetailor.yaml: 1 of 3 tasks tailored, 3 wait for the phase launch",
            ],
        ),
    ],
)
def test_pyflyte_says_at_its_end_what_was_done(
    flyte: Any, folder: Path, configure: Callable[[str], Path], config: str, said: list[str]
) -> None:
    (folder / "flow.py").write_text(MODULE)
    configure(config)
    done = flyte.run("pyflyte", "--pkgs", "flow", "package", "-o", "p.tgz", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "kubetailor" in line] == said
    assert "kubetailor" not in done.stdout


def test_a_run_that_failed_says_no_number(
    flyte: Any, folder: Path, configure: Callable[[str], Path]
) -> None:
    (folder / "flow.py").write_text(MODULE)
    configure("""
        chains:
          default:
            enforce:
              - {use: labels, with: {set: {a: b}}}
              - {use: env, with: {set: {A: B}, container: nobody}, when: {task: "*.c"}}
    """)
    done = flyte.run("pyflyte", "--pkgs", "flow", "package", "-o", "p.tgz", cwd=folder)
    assert done.returncode != 0
    assert "nobody" in done.stderr
    assert "tailored" not in done.stderr
