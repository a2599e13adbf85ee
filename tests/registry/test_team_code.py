"""A team's own code: whatever it is and does, it runs, or a message says why it does not."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry import StepError
from kubetailor.registry.load import check_config, load_config, read_installed
from kubetailor.registry.schema import config_schema
from kubetailor.registry.tailor import Tailor

HEAD = """
from __future__ import annotations
import dataclasses, enum, functools
from typing import *
from pydantic import *
from pluggy import HookimplMarker
from kubetailor.registry import Pod, TaskContext, Workload, hookimpl, transformer
"""
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}

Team = Callable[..., Path]


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """Writes a config with one step, and the plugin `team.py` beside it."""
    modules = set(sys.modules)

    def write(
        code: str, parameters: str = "{}", *, plugins: str = "./team.py", **files: str
    ) -> Path:
        for name, text in {"team": code, **files}.items():
            (tmp_path / f"{name}.py").write_text(HEAD + text)
        file = tmp_path / "kubetailor.yaml"
        file.write_text(
            f"plugins: [{plugins}]\nchains: {{default: {{steps: [{{use: team.f, with: {parameters}}}]}}}}\n"
        )
        return file

    yield write
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def run(file: Path, times: int = 1) -> Any:
    tailor = Tailor(load_config(file, entry_points=False))
    after = [tailor.tailor(POD, "admit").result.after for _ in range(times)][-1]
    return after["metadata"].get("annotations", {}).get("x")


def fault(file: Path) -> str:
    _, faults = check_config(file, entry_points=False)
    assert faults
    return "\n".join(map(str, faults))


# ------------------------------------------------------------------------------- what a function does


@pytest.mark.parametrize("receiver", ["Pod", "Workload", "dict"])
def test_one_that_exits_fails_the_step(team: Team, receiver: str) -> None:
    file = team(f"@transformer\ndef f(o: {receiver}) -> None:\n    raise SystemExit(3)\n")
    with pytest.raises(
        StepError, match=r"step 'team\.f' \(plugin team\).*SystemExit: 3 .*team\.py:10"
    ):
        run(file)


def test_a_validate_that_exits_fails_the_chain(team: Team) -> None:
    file = team(
        "@transformer\ndef f(pod: Pod) -> None: pod.annotate('x', '1')\n"
        "@hookimpl\ndef validate(workload):\n    raise SystemExit(3)\n"
    )
    with pytest.raises(StepError, match=r"SystemExit: 3 \(validate of plugin team\)"):
        run(file)


def test_an_interrupt_is_nobodys_fault(team: Team) -> None:
    file = team("@transformer\ndef f(o: Pod) -> None:\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        run(file)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def f(o: dict) -> dict: o['spec']['x'] = {1}; return o", r"spec\.x: .*found set"),
        ("def f(o: dict) -> dict: o['spec']['x'] = o; return o", r"in itself"),
        ("def f(o: dict) -> None: o['spec'][1] = 2", r"the key 1 is no str"),
        ("def f(o: dict) -> dict: return {}", r"may not change what the object is: apiVersion"),
        ("def f(o: dict) -> None: o.clear()", r"may not change what the object is: apiVersion"),
        ("def f(o: Workload) -> None: o.edit('spec')['x'] = object()", r"spec\.x: .*found object"),
        ("def f(o: Workload) -> None: x = o.edit('spec'); x['x'] = x", r"in itself"),
        ("def f(o: Pod) -> None: o.edit()['x'] = float('nan')", r"spec\.x: nan is no number"),
        ("def f(o: Pod) -> None: o.edit()['x'] = '\\ud800'", r"spec\.x: .*no Unicode"),
    ],
)
def test_what_it_leaves_is_json_data_of_the_same_object(
    team: Team, code: str, message: str
) -> None:
    with pytest.raises(StepError, match=rf"step 'team\.f' \(plugin team\).*{message}"):
        run(team(f"@transformer\n{code}\n"))


def test_a_patch_may_not_change_what_the_object_is(tmp_path: Path) -> None:
    file = tmp_path / "kubetailor.yaml"
    file.write_text(
        "chains: {default: {steps: [{use: patch, with: {object: {apiVersion: null}}}]}}\n"
    )
    with pytest.raises(StepError, match=r"step 'patch'.*may not change what the object is"):
        run(file)


# ---------------------------------------------------------------------------------------- parameters

TYPES = """
@dataclasses.dataclass
class Data:
    xs: list[str]
class Model(BaseModel):
    xs: list[str]
"""


@pytest.mark.parametrize("annotation", ["Data", "Model"])
def test_no_task_sees_what_another_did_to_a_parameter(team: Team, annotation: str) -> None:
    code = f"@transformer\ndef f(pod: Pod, *, v: {annotation}) -> None:\n    v.xs.append('n')\n    pod.annotate('x', str(v.xs))\n"
    assert run(team(TYPES + code, "{v: {xs: [a]}}"), times=3) == "['a', 'n']"


def test_no_task_sees_what_another_did_to_a_set(team: Team) -> None:
    code = "@transformer\ndef f(pod: Pod, *, v: set[str]) -> None:\n    v.add(str(len(v)))\n    pod.annotate('x', str(sorted(v)))\n"
    assert run(team(code, "{v: [a]}"), times=3) == "['1', 'a']"


@pytest.mark.parametrize(
    ("annotation", "parameters"),
    [
        ("Sets", "{v: {xs: [a, b, c, d, e]}}"),
        ("set[tuple[str, str]]", "{v: [[a, b], [c, d]]}"),
        ("Annotated[Plain, BeforeValidator(Plain)]", "{v: a}"),
    ],
)
def test_the_digest_is_the_same_in_every_process(
    team: Team, annotation: str, parameters: str
) -> None:
    file = team(
        "class Sets(BaseModel):\n    xs: set[str]\n"
        "class Plain:\n    def __init__(self, v: str) -> None: self.v = v\n"
        f"@transformer\ndef f(pod: Pod, *, v: {annotation}) -> None: pass\n",
        parameters,
    )
    script = (
        "from pathlib import Path; from kubetailor.registry.load import load_config; "
        f"print(load_config(Path({str(file)!r}), entry_points=False).chains['default'].digest)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("annotation", "one", "other"),
    [("SecretStr", "a", "b"), ("Model", "{xs: [1.1]}", "{xs: [1.10]}"), ("set[str]", "[a]", "[b]")],
)
def test_another_parameter_is_another_digest(
    team: Team, annotation: str, one: str, other: str
) -> None:
    code = f"{TYPES}\n@transformer\ndef f(pod: Pod, *, v: {annotation}) -> None: pass\n"
    digests = {
        load_config(team(code, f"{{v: {value}}}"), entry_points=False).chains["default"].digest
        for value in (one, other)
    }
    assert len(digests) == 2


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes it from Python 3.12 on")
def test_a_type_that_pydantic_cannot_read_is_a_fault_of_the_plugin(team: Team) -> None:
    file = team(
        "class D(TypedDict):\n    a: str\n@transformer\ndef f(pod: Pod, *, v: D) -> None: pass\n"
    )
    assert "transformer 'team.f' (" in fault(file)
    assert "team.py:10): a parameter cannot be read: " in fault(file)
    assert "typing_extensions.TypedDict" in fault(file)


def test_a_type_whose_own_code_fails_is_a_fault_of_the_plugin(team: Team) -> None:
    file = team(
        "class Bad:\n    @classmethod\n    def __get_pydantic_core_schema__(cls, *_: Any) -> Any: raise KeyError('oops')\n"
        "@transformer\ndef f(pod: Pod, *, v: Bad) -> None: pass\n"
    )
    assert "a parameter cannot be read: 'oops'" in fault(file)


def test_a_default_that_is_no_json_data_is_not_in_the_schema(team: Team) -> None:
    file = team(
        "@transformer\ndef f(pod: Pod, *, a: dict[str, Any] = {'a': object()}, b: float = float('nan'), c: int = 3) -> None: pass\n"
    )
    schema = config_schema(*read_installed(file, entry_points=False))
    properties = schema["$defs"]["with.team.f"]["properties"]
    assert [properties[name].get("default") for name in "abc"] == [None, None, 3]


# ---------------------------------------------------------------------------------------- signatures


@pytest.mark.parametrize(
    "parameter",
    [
        "task: TaskContext",
        "*, task: Optional[TaskContext]",
        "task: TaskContext | None = None",
        "*, task: Annotated[TaskContext, 1]",
    ],
)
def test_the_task_is_injected(team: Team, parameter: str) -> None:
    code = f"@transformer\ndef f(pod: Pod, {parameter}) -> None: pod.annotate('x', task.phase)\n"
    assert run(team(code)) == "admit"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("pod: Pod, task: TaskContext, /", "parameter 'task' cannot be given by name"),
        ("pod: Pod, *, task: TaskContext | str", "a TaskContext is injected"),
    ],
)
def test_a_task_that_cannot_be_injected_is_refused(
    team: Team, parameters: str, message: str
) -> None:
    assert message in fault(team(f"@transformer\ndef f({parameters}) -> None: pass\n"))


# ------------------------------------------------------------------------------- what is registered

F = "def f(pod: Pod) -> None: pod.annotate('x', '1')\n"
PARTIAL = "def g(pod: Pod, *, v: str) -> None: pod.annotate('x', v)\n"
HOOK = "@hookimpl\ndef register_transformers(register):\n    "


@pytest.mark.parametrize(
    "code",
    [
        f"@transformer\n{F}@hookimpl(optionalhook=True)\ndef a_later_hook(): pass\n",
        f"@transformer\n{F}def validate(config, strict): pass\n",
        f"@transformer\n@staticmethod\n{F}",
        f"{PARTIAL}f = transformer(functools.partial(g, v='1'))\n",
        f"{PARTIAL}{HOOK}register(functools.partial(g, v='1'), name='f')\n",
        f"class C:\n    def __call__(self, pod: Pod) -> None: pod.annotate('x', '1')\n{HOOK}register(C(), name='f')\n",
        f"class C:\n    def f(self, pod: Pod) -> None: pod.annotate('x', '1')\n{HOOK}register(C().f)\n",
        f"class C:\n    @transformer\n    def f(self, pod: Pod) -> None: pod.annotate('x', '1')\n{HOOK}register(C().f)\n",
    ],
)
def test_what_can_be_called_can_be_a_transformer(team: Team, code: str) -> None:
    assert run(team(code)) == "1"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            f"@transformer\n{F}def register_transformers(register): pass\n",
            "is not marked @hookimpl",
        ),
        (f"@transformer\n{F}def register_kinds(add): pass\n", "is not marked @hookimpl"),
        (f"@transformer\n{F}def validate(workload): pass\n", "is not marked @hookimpl"),
        (
            "@hookimpl(wrapper=True)\ndef register_transformers(register):\n    return (yield)\n",
            "nothing to wrap",
        ),
        (
            "@hookimpl(hookwrapper=True)\ndef register_transformers(register):\n    yield\n",
            "nothing to wrap",
        ),
        (
            f"class C:\n    @staticmethod\n    @transformer\n    {F}",
            "C.f is marked @transformer, but is in a class",
        ),
        (f"{HOOK}register(lambda pod: None)\n", "no name of its own"),
        (f"{PARTIAL}{HOOK}register(functools.partial(g, v='1'))\n", "no name of its own"),
        (
            "@hookimpl\ndef register_transformer(register): pass\n",
            "did you mean register_transformers",
        ),
    ],
)
def test_what_would_be_lost_is_a_fault(team: Team, code: str, message: str) -> None:
    assert message in fault(team(code))


def test_a_function_of_a_module_that_is_no_plugin_is_registered(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file = team("from sibling_steps import f\n", sibling_steps=f"@transformer\n{F}")
    assert run(file) == "1"


@pytest.mark.parametrize("other", ["other_steps", "./other_steps.py"])
@pytest.mark.parametrize("first", [True, False])
def test_a_function_of_another_plugin_is_that_plugins_alone(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, first: bool
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins = f"{other}, ./team.py" if first else f"./team.py, {other}"
    file = team(
        f"from other_steps import g\n@transformer\n{F}",
        plugins=plugins,
        other_steps="@transformer\ndef g(pod: Pod) -> None: pass\n",
    )
    found = load_config(file, entry_points=False).plugins.transformers
    assert sorted(name for name in found if "." in name) == ["other_steps.g", "team.f"]


@pytest.mark.parametrize(
    "plugins", ["team, ./team.py", "./team.py, team", "./link.py, team", "./team.py, ./link.py"]
)
def test_a_module_that_is_found_twice_runs_once(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugins: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file = team(
        f"import pathlib\nwith open(__file__ + '.log', 'a') as log: log.write('.')\n@transformer\n{F}",
        plugins=plugins,
    )
    (tmp_path / "link.py").symlink_to("team.py")
    assert run(file) == "1"
    assert (tmp_path / "team.py.log").read_text() == "."


def test_a_file_that_changes_is_imported_anew(team: Team) -> None:
    found = []
    for text in ("old", "new"):  # of one size, within one second
        code = f"@transformer\ndef f(pod: Pod) -> None: pod.annotate('x', '{text}')\n"
        file = team(code)
        found.append((run(file), load_config(file, entry_points=False).chains["default"].digest))
    assert [text for text, _ in found] == ["old", "new"]
    assert found[0][1] != found[1][1]


def test_two_steps_of_one_transformer_that_differ_are_told(tmp_path: Path) -> None:
    file = tmp_path / "kubetailor.yaml"
    step = "{use: labels, with: {set: {a: '%s'}}}"
    file.write_text(f"chains: {{default: {{steps: [{step % 1}, {step % 2}]}}}}\n")
    result = Tailor(load_config(file, entry_points=False)).tailor(POD, "admit").result
    assert [str(warning) for warning in result.warnings if "the later one wins" in str(warning)]
