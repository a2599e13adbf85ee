"""What a user gets wrong is said once, with its place; nothing is printed, and the code is 2."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import CONFIG, POD, Run, Write

Install = Callable[[str, str, str], None]


def chain(*steps: str, layer: str = "steps", head: str = "") -> str:
    body = "".join(f"      - {step}\n" for step in steps)
    return f"{head}phases: [serialize, admit]\nchains:\n  default:\n    {layer}:\n{body}"


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """Run ``render``; returns the one error."""

    def check(*args: str, stdin: str | bytes | None = POD) -> str:
        result = run("render", *(args or ("-f", "-")), stdin=stdin)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        assert len(re.findall("^Error: ", result.stderr, re.MULTILINE)) == 1, result.stderr
        return result.stderr.removeprefix("Error: ").rstrip("\n")

    return check


Refused = Callable[..., str]


# the config --------------------------------------------------------------------------------------


def test_no_config_says_where_it_was_looked_for(refused: Refused, folder: Path) -> None:
    assert refused() == (
        "no config: neither --config nor KUBETAILOR_CONFIG is given, and there is no "
        f"kubetailor.yaml in {folder} or above it"
    )


def test_config_that_is_not_there(refused: Refused) -> None:
    assert refused("-f", "-", "--config", "none.yaml") == "none.yaml: No such file or directory"


CONFIGS = {
    "not YAML": ("chains:\n  a: [\n", r":3:1: not YAML: .+"),
    "empty": ("", r": the file is empty"),
    "comments alone": ("# nothing\n", r": the file is empty"),
    "no map": ("- a\n", r":1:1: expected a map"),
    "unknown key": ("chians: {}\n", r":1:1: no key 'chians' here; did you mean chains\? .+"),
    "unknown transformer": (
        chain("use: labbels"),
        r":5:9: no transformer 'labbels'; did you mean labels\? .+",
    ),
    "unknown parameter": (
        chain("use: labels", "use: labels\n        with: {sett: {a: b}}"),
        r":7:16: labels: no parameter 'sett'; did you mean set\? .+",
    ),
    "type of a parameter": (
        chain("{use: tolerations, with: {add: [{key: a, tolerationSeconds: soon}]}}"),
        r":5:\d+: tolerations: add\.0\.tolerationSeconds: .*integer.* \(found 'soon'\)",
    ),
    "key in a parameter": (
        chain("{use: tolerations, with: {add: [{key: a, efect: NoSchedule}]}}"),
        r":5:\d+: tolerations: add\.0: no key 'efect' here; did you mean effect\? .+",
    ),
    "plugin that is not loaded": (
        chain("use: acme_platform.spot"),
        r":5:9: no transformer 'acme_platform\.spot'; no plugin 'acme_platform' is loaded: .+",
    ),
    "label key": (
        chain("{use: labels, with: {set: {a b: c}}}"),
        r":5:\d+: labels: set\.a b: key 'a b': .+",
    ),
    "required parameter": (
        chain("use: priority_class"),
        r":5:\d+: priority_class: the parameter 'name' is required",
    ),
    "quantity": (
        chain("{use: resources, with: {limits: {cpu: lots}}}"),
        r":5:\d+: resources: limits\.cpu.*'lots'.*",
    ),
    "unknown field of when": (
        chain("{use: labels, when: {domian: a}}"),
        r":5:\d+: when: no field 'domian'; did you mean domain\? .+",
    ),
    "cyclic extends": (
        "chains:\n  a: {extends: b}\n  b: {extends: a}\nselect: [{chain: a}]\n",
        r":3:7: cyclic `extends`: a -> b -> a",
    ),
    "unknown chain": (
        CONFIG + "select:\n  - {chain: defualt}\n",
        r":8:6: no chain 'defualt'; did you mean default\? .+",
    ),
    "unreachable rule": (
        CONFIG + "select:\n  - {chain: default}\n  - {chain: default}\n",
        r":9:5: unreachable: the rule before always holds",
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_config_at_fault(refused: Refused, write: Write, folder: Path, name: str) -> None:
    text, expected = CONFIGS[name]
    write("kubetailor.yaml", text)
    assert re.fullmatch(re.escape(f"{folder}/kubetailor.yaml") + expected, refused())


def test_config_that_is_not_utf8(refused: Refused, folder: Path) -> None:
    path = folder / "kubetailor.yaml"
    path.write_bytes(b"chains: {}\n# caf\xe9\n")
    assert refused() == f"{path}:2:6: not UTF-8 (byte 0xe9)"


def test_unknown_chain_of_the_command_line(refused: Refused, write: Write, folder: Path) -> None:
    write("kubetailor.yaml", CONFIG)
    message = refused("-f", "-", "--chain", "defualt")
    assert message.startswith(
        f"{folder}/kubetailor.yaml: no chain 'defualt'; did you mean default?"
    )


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("domian=a", "unknown field 'domian'; did you mean domain?"),
        ("domain", "expected key=value"),
    ],
)
def test_task_fields(run: Run, write: Write, pair: str, expected: str) -> None:
    write("kubetailor.yaml", CONFIG)
    result = run("render", "-f", "-", "--task", pair, stdin=POD)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Invalid value for '--task': {expected}" in result.stderr


# plugins -----------------------------------------------------------------------------------------


def test_missing_module(refused: Refused, write: Write, folder: Path) -> None:
    write("kubetailor.yaml", f"plugins: [acme_platform_that_is_not]\n{CONFIG}")
    assert refused() == (
        f"{folder}/kubetailor.yaml:1:11: plugin 'acme_platform_that_is_not': cannot be loaded from "
        "acme_platform_that_is_not: no module 'acme_platform_that_is_not'; a file is named by its "
        "path, such as ./team.py"
    )


@pytest.mark.parametrize(
    ("named", "near"),
    [
        ("teem", "no module 'teem'; did you mean ./team.py?"),
        ("pydantik", "no module 'pydantik'; did you mean pydantic"),
        ("kubetailor.transformer", "'kubetailor.transformer'; did you mean transformers?"),
        ("./teem.py", "no file teem.py; did you mean team.py? (Python files there: cluster.py, "),
        ("./in/team.py", "no folder {folder}/in"),
    ],
)
def test_missing_plugin_has_what_is_near(
    refused: Refused, write: Write, folder: Path, named: str, near: str
) -> None:
    write("kubetailor.yaml", f"plugins:\n  - ./cluster.py\n  - {named}\n{CONFIG}")
    write("team.py", "")
    write("cluster.py", "")
    message = refused()
    assert message.startswith(f"{folder}/kubetailor.yaml:3:5: plugin ")
    assert near.format(folder=folder) in message


def test_unknown_plugin_that_is_blocked(
    refused: Refused, write: Write, folder: Path, distribution: Install
) -> None:
    write("kubetailor.yaml", f"block_plugins:\n  - acme_split\n  - acme_spilt\n{CONFIG}")
    distribution("acme-split", "acme_split", "")
    message = refused()
    assert message.startswith(
        f"{folder}/kubetailor.yaml:3:5: block_plugins: no installed plugin 'acme_spilt'; "
        "did you mean acme_split?"
    )


PLACES = {
    "missing": "import that.is.nott\n",
    "library": "import json\njson.loads('{')\n",
    "own": "1 / 0\n",
    "hook": "from kubetailor.registry import hookimpl\n\n"
    "@hookimpl\ndef register_kinds(register):\n    int('x')\n",
}


@pytest.mark.parametrize("what", PLACES)
@pytest.mark.parametrize("how", ["installed", "file", "module"])
def test_a_place_is_one_of_the_plugin_itself(
    refused: Refused, write: Write, folder: Path, distribution: Install, what: str, how: str
) -> None:
    name, source = f"acme_{what}_{how}", PLACES[what]
    named = {
        "installed": "",
        "file": f"plugins: [./{name}.py]\n",
        "module": f"plugins: [{name}]\n",
    }
    write("kubetailor.yaml", named[how] + CONFIG)
    if how == "installed":
        distribution(name.replace("_", "-"), name, source)
    else:
        distribution("acme-other", "acme_other", "")  # the folder `site` is importable
        write(f"{'site/' if how == 'module' else ''}{name}.py", source)
    message = refused()
    places = re.findall(r"\(?[^ (]+:\d+\)", message)
    file = folder / ("" if how == "file" else "site") / f"{name}.py"
    assert places == [f"({file}:{source.count(chr(10))})"]
    if how == "installed":
        assert message.startswith(
            f"plugin {name!r}: cannot be {'registered' if what == 'hook' else 'loaded'} from "
            f"{name.replace('_', '-')} 1.2: "
        )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("def (\n", r"SyntaxError: invalid syntax \(/.*/team\.py:1\)"),
        (
            "from kubetailor.registry import transformer\n@transformer\ndef spot(pod): ...\n",
            "transformer 'team.spot' .*team.py:2.*: the first parameter 'pod' has no annotation.*",
        ),
    ],
    ids=["raises", "exits", "syntax", "no annotation"],
)
def test_module_that_fails(refused: Refused, write: Write, source: str, expected: str) -> None:
    write("kubetailor.yaml", f"plugins: [./team.py]\n{CONFIG}")
    write("team.py", source)
    assert re.search(f"plugin 'team': .*{expected}", refused())


def test_entry_point_that_fails(refused: Refused, write: Write, distribution: Install) -> None:
    write("kubetailor.yaml", CONFIG)
    distribution("acme-broken", "acme_broken", "raise RuntimeError('no licence')\n")
    message = refused()
    assert "plugin 'acme_broken': cannot be loaded from acme-broken 1.2: " in message
    assert "RuntimeError: no licence" in message


def test_entry_point_that_fails_can_be_blocked(
    run: Run, write: Write, distribution: Install
) -> None:
    write("kubetailor.yaml", f"block_plugins: [acme_blocked]\n{CONFIG}")
    distribution("acme-blocked", "acme_blocked", "raise RuntimeError('no licence')\n")
    assert run("render", "-f", "-", stdin=POD).exit_code == 0


def test_two_plugins_of_one_name(refused: Refused, write: Write, folder: Path) -> None:
    write("kubetailor.yaml", f"plugins: [./a/team.py, ./b/team.py]\n{CONFIG}")
    write("a/team.py", "")
    write("b/team.py", "")
    message = refused()
    assert message.startswith(f"{folder}/kubetailor.yaml:1:24: plugin 'team': ")
    assert f"{folder}/a/team.py and {folder}/b/team.py are both called 'team'" in message


def test_two_transformers_of_one_name(refused: Refused, write: Write, folder: Path) -> None:
    write("kubetailor.yaml", f"plugins: [./team.py]\n{CONFIG}")
    write(
        "team.py",
        """\
        from kubetailor.registry import Pod, transformer

        @transformer
        def spot(pod: Pod) -> None: ...

        @transformer(name="spot")
        def other(pod: Pod) -> None: ...
        """,
    )
    message = refused()
    assert "transformer 'team.spot' is registered twice: " in message
    assert f"{folder}/team.py:3" in message
    assert f"{folder}/team.py:6" in message


# steps -------------------------------------------------------------------------------------------

TEAM = """\
from kubetailor.registry import Pod, transformer


@transformer
def crash(pod: Pod) -> None:
    {}["missing"]


@transformer
def returns(pod: Pod) -> int:
    return 7
"""


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("crash", "KeyError: 'missing' ({folder}/team.py:6)"),
        ("returns", "it returned int; a transformer returns the Pod or None"),
    ],
)
def test_transformer_that_fails(
    refused: Refused, write: Write, folder: Path, function: str, expected: str
) -> None:
    write("kubetailor.yaml", chain(f"use: team.{function}", head="plugins: [./team.py]\n"))
    write("team.py", TEAM)
    message = refused()
    assert message.startswith(
        f"<stdin>:1: {folder}/kubetailor.yaml:6:9: step 'team.{function}' (plugin team) on Pod "
        "train: "
    )
    assert expected.format(folder=folder) in message


@pytest.mark.parametrize("task_type", ["python-task", "pytorch", "spark"])
def test_an_error_about_a_task_names_the_task(
    refused: Refused, write: Write, folder: Path, task_type: str
) -> None:
    write("kubetailor.yaml", chain("use: team.crash", head="plugins: [./team.py]\n"))
    write("team.py", TEAM)
    task = {"type": task_type, "id": {"name": "zoo.prepare"}, "container": {"image": "x"}}
    assert refused(stdin=yaml.safe_dump(task)).startswith(
        f"<stdin>:1: {folder}/kubetailor.yaml:6:9: step 'team.crash' (plugin team) on task "
        "zoo.prepare: "
    )


MISSING = {
    "container": ("{use: env, with: {set: {A: b}, container: sidecar}}", "sidecar"),
    "role": ("{use: priority_class, with: {name: low}, when: {role: worker}}", "primary"),
}


@pytest.mark.parametrize("what", MISSING)
@pytest.mark.parametrize("how", ["enforce", "strict"])
def test_what_is_not_there(
    refused: Refused, run: Run, write: Write, folder: Path, what: str, how: str
) -> None:
    step, named = MISSING[what]
    layer, head = ("enforce", "") if how == "enforce" else ("steps", "strict: true\n")
    write("kubetailor.yaml", chain(step, layer=layer, head=head))
    message = refused()
    line = 5 if how == "enforce" else 6
    assert message.startswith(f"<stdin>:1: {folder}/kubetailor.yaml:{line}:")
    assert "on Pod train: " in message
    assert named in message
    # A platform writes `steps` for every kind at once: there it is a warning.
    write("kubetailor.yaml", chain(step))
    lenient = run("render", "-f", "-", stdin=POD)
    assert lenient.exit_code == 0
    assert named in lenient.stderr


INVALID = {
    "label": ("{use: labels, with: {set: {a: not/valid}}}", "metadata.labels", "not/valid"),
    "request over limit": (
        "{use: resources, with: {requests: {cpu: 2}, limits: {cpu: 1}}}",
        "spec.containers",
        "cpu",
    ),
}


@pytest.mark.parametrize("what", INVALID)
def test_what_kubernetes_would_refuse(
    refused: Refused, write: Write, folder: Path, what: str
) -> None:
    step, field, value = INVALID[what]
    write("kubetailor.yaml", chain(step))
    message = refused()
    assert message.startswith(f"<stdin>:1: {folder}/kubetailor.yaml:5:")
    assert field in message
    assert value in message


# manifests ---------------------------------------------------------------------------------------

MANIFESTS: dict[str, tuple[str | bytes, str]] = {
    "not YAML": ("a: 1\nb: [\n", r"<stdin>:3:1: not YAML: .+"),
    "tab": ("a:\n\tb: 1\n", r"<stdin>:2:1: not YAML: .+"),
    "empty": ("", r"<stdin>: there is no object in it"),
    "comments alone": ("# nothing\n---\n", r"<stdin>: there is no object in it"),
    "not UTF-8": (b"a: b\nc: caf\xe9\n", r"<stdin>:2: not UTF-8 \(byte 0xe9\)"),
    "half a character": ('{"a": "\\ud800"}', r"<stdin>: \\ud800 is half a character"),
    "a list": ("- a\n", r"<stdin>:1: expected an object, found a list; .+"),
    "a string": ("\nhello\n", r"<stdin>:2: expected an object, found a string; .+"),
    "a number in a List": (
        "{apiVersion: v1, kind: List, items: [7]}",
        r"<stdin>:1: item 0 of the List: expected an object, found a number",
    ),
    "no kind": ("metadata: {name: a}\n", r"<stdin>:1: an object needs `apiVersion` and `kind`.+"),
    "key twice": ("a: 1\na: 2\n", r"<stdin>:2:1: not YAML: the key 'a' is there twice"),
    "unknown kind with containers": (
        "apiVersion: acme.io/v1\nkind: Trainer\nspec: {template: {spec: {containers: []}}}\n",
        r"<stdin>:1: the kind Trainer of acme\.io/v1 is not known, and it holds containers: .+"
        r"register_kinds.+",
    ),
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_manifest_at_fault(refused: Refused, write: Write, what: str) -> None:
    write("kubetailor.yaml", CONFIG)
    text, expected = MANIFESTS[what]
    assert re.fullmatch(expected, refused(stdin=text))


POD_FORM = {
    "metadata.labels": "[a]",
    "metadata": "7",
    "spec": "[]",
    "spec.containers[0].env": "{A: b}",
    "spec.containers[0].resources.limits": "[cpu]",
    "spec.tolerations": "{key: a}",
    "spec.nodeSelector": "gpu",
}
TASK_FORM = {
    "container.env": "{key: a}",
    "container.resources.limits": "{CPU: 1}",
    "container.resources.limits[0].name": "[CPU]",
}
BUSY = [
    "{use: labels, with: {set: {a: b}}}",
    "{use: priority_class, with: {name: low}, when: {requests: '*'}}",
    "{use: env, with: {set: {A: b}}}",
    "{use: resources, with: {limits: {cpu: 2}}}",
    "{use: tolerations, with: {add: [{key: a, operator: Exists}]}}",
    "{use: node_selector, with: {set: {a: b}}}",
]


def with_field(obj: Any, path: str, value: Any) -> Any:
    """An object in which the field at `path` is `value`."""
    keys = [int(key) if key.isdigit() else key for key in re.findall(r"\w+", path)]
    node = obj
    for key, after in itertools.pairwise(keys):
        empty: Any = [{}] if isinstance(after, int) else {}
        node = node.setdefault(key, empty) if isinstance(node, dict) else node[key]
    node[keys[-1]] = value
    return obj


@pytest.mark.parametrize(
    ("kind", "field"), [("Pod", f) for f in POD_FORM] + [("TaskTemplate", f) for f in TASK_FORM]
)
def test_field_of_the_wrong_form(refused: Refused, write: Write, kind: str, field: str) -> None:
    write("kubetailor.yaml", chain(*BUSY))
    obj: Any = {"type": "python-task", "id": {"name": "a"}, "container": {"image": "x"}}
    value = yaml.safe_load(({**POD_FORM, **TASK_FORM})[field])
    obj = with_field(yaml.safe_load(POD) if kind == "Pod" else obj, field, value)
    message = refused(stdin=yaml.safe_dump(obj))
    assert re.search(re.escape(field) + r": expected an? (object|list|string), found ", message)


def test_file_that_is_not_there(refused: Refused, write: Write) -> None:
    write("kubetailor.yaml", CONFIG)
    assert refused("-f", "none.yaml") == "none.yaml: No such file or directory"


def test_folder_without_manifests(refused: Refused, write: Write, folder: Path) -> None:
    write("kubetailor.yaml", CONFIG)
    (folder / "in").mkdir()
    assert refused("-f", "in") == "in: there is no object in it"


def test_every_fault_is_said_and_nothing_printed(run: Run, write: Write, folder: Path) -> None:
    write("kubetailor.yaml", chain("{use: labels, with: {set: {team: a/b}}}"))
    write("bad.yaml", "a: [\n")
    write("pods.yaml", "---\n".join([POD, "{apiVersion: v1, kind: ConfigMap}\n", POD]))
    result = run("render", "-f", "pods.yaml", "-f", "bad.yaml", "-f", "none.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    errors = result.stderr.splitlines()
    assert [error.split(" ")[:2] for error in errors] == [
        ["Error:", "bad.yaml:2:1:"],
        ["Error:", "none.yaml:"],
        ["Error:", "pods.yaml:1:"],
        ["Error:", "pods.yaml:12:"],
    ]


def test_explain_refuses_alike(run: Run, write: Write) -> None:
    write("kubetailor.yaml", CONFIG)
    result = run("explain", "-f", "-", stdin="- a\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: <stdin>:1: expected an object, found a list")
