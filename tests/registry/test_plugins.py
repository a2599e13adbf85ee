"""Plugins: where they are found, and that none hides another."""

# ruff: noqa: E501 (tables are read line by line)
from __future__ import annotations

import importlib.metadata
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry.errors import PluginError
from kubetailor.registry.load import load_config
from kubetailor.registry.plugins import BUILTIN_PLUGINS, Plugins
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import BUILTIN_KINDS

HEAD = "from kubetailor.registry import Kind, Pod, PodPath, hookimpl, transformer\n"
ONE = HEAD + "@transformer\ndef {name}(pod: Pod) -> None:\n    '''Doc.'''\n"
ONLY = {"kubetailor": "kubetailor.transformers"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Makes an installed distribution: a module and its `.dist-info`."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    modules = set(sys.modules)

    def install(dist: str, module: str, source: str, *, name: str | None = None) -> Path:
        (folder / f"{module}.py").write_text(source)
        info = folder / f"{dist}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[kubetailor]\n{name or dist} = {module}\n")
        return folder

    yield install
    for extra in set(sys.modules) - modules:
        if getattr(sys.modules[extra], "__file__", None) and str(tmp_path) in str(
            sys.modules[extra].__file__
        ):
            del sys.modules[extra]


def load(*named: str, **how: Any) -> Plugins:
    return Plugins.load(named, builtins=ONLY, **how)


def test_the_built_ins_are_plugins_with_bare_names() -> None:
    plugins = Plugins.load(entry_points=False)
    assert plugins.faults == []
    assert {plugin.name for plugin in plugins.all} == set(BUILTIN_PLUGINS)
    builtins = {
        name for name, found in plugins.transformers.items() if found.plugin == "kubetailor"
    }
    assert {"tolerations", "labels", "env", "patch", "kueue"} <= builtins
    assert not any("." in name for name in builtins)
    assert all(found.doc for found in plugins.transformers.values())
    assert plugins.require() is plugins


def test_an_installed_plugin_is_found_by_its_entry_point(site: Callable[..., Path]) -> None:
    site("acme", "acme_module", ONE.format(name="spot"))
    plugins = load()
    assert plugins.faults == []
    plugin = plugins["acme"]
    assert (plugin.distribution, plugin.version, plugin.origin) == ("acme", "1.0", "acme 1.0")
    assert plugin.identity == "acme==1.0"
    assert plugin.transformers == ["acme.spot"]
    assert plugins.transformers["acme.spot"].summary == "Doc."
    assert "acme.spot" not in load(entry_points=False).transformers


def test_an_installed_plugin_is_found_in_a_process_of_its_own(site: Callable[..., Path]) -> None:
    folder = site("acme", "acme_module", ONE.format(name="spot"))
    code = (
        f"import sys; sys.path[:0] = [{str(folder)!r}, *{sys.path!r}]\n"
        "from kubetailor.registry.plugins import Plugins\n"
        "print(sorted(name for name in Plugins.load().transformers if '.' in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "acme.spot" in done.stdout


def test_a_blocked_plugin_is_not_even_imported(site: Callable[..., Path]) -> None:
    site("acme", "acme_module", "raise RuntimeError('imported')")
    assert load(blocked=["acme"]).faults == []
    (fault,) = load(blocked=["acme", "acmee"]).faults
    assert fault.startswith("block_plugins: no installed plugin 'acmee'; did you mean acme?")


def test_import_paths_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "cluster.py").write_text(ONE.format(name="spot"))
    (tmp_path / "team.py").write_text(
        ONE.format(name="spot") + "@transformer(name='other')\ndef x(pod: Pod) -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins = load("pack.cluster", "./team.py", directory=tmp_path)
    assert plugins.faults == []
    assert {"cluster.spot", "team.spot", "team.other"} <= plugins.transformers.keys()
    assert plugins["team"].identity.startswith("team@sha256:")
    assert "team" not in sys.modules, "a file cannot hide an installed module"


def test_one_module_found_in_several_ways_is_one_plugin(site: Callable[..., Path]) -> None:
    folder = site("acme", "acme_module", ONE.format(name="spot"))
    plugins = load("acme_module", "acme_module", str(folder / "acme_module.py"))
    assert plugins.faults == []
    assert [name for name in plugins.transformers if name.endswith("spot")] == ["acme.spot"]


def test_two_plugins_of_one_name_are_an_error(site: Callable[..., Path], tmp_path: Path) -> None:
    site("acme", "acme_module", ONE.format(name="spot"), name="alpha")
    site("other", "other_module", ONE.format(name="spot"), name="alpha")
    (fault,) = load().faults
    assert fault.startswith("plugin 'alpha': already registered: ")
    assert "acme 1.0" in fault
    assert "other 1.0" in fault
    assert "alpha.spot" in load().transformers, "the first is there"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "team.py").write_text(ONE.format(name="f"))
    (fault,) = load("a/team.py", "b/team.py", directory=tmp_path, entry_points=False).faults
    assert "already registered" in fault


BROKEN = {
    "import": ("import nope_nope", "No module named 'nope_nope'"),
    "syntax": ("def (", "SyntaxError"),
    "exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "raises": ("1 / 0", "ZeroDivisionError: division by zero"),
    "signature": (HEAD + "@transformer\ndef f(pod) -> None: ...", "the first parameter 'pod' has no annotation"),
    "hook name": (HEAD + "@hookimpl\ndef register_transfomers(register): ...", "no hook 'register_transfomers'; did you mean register_transformers"),
    "hook argument": (HEAD + "@hookimpl\ndef register_kinds(regster): ...", "regster"),
    "hook raises": (HEAD + "@hookimpl\ndef register_kinds(register): raise ValueError('x')", "ValueError: x"),
    "twice": (
        HEAD + "@transformer\ndef f(pod: Pod) -> None: ...\n@transformer(name='f')\ndef g(pod: Pod) -> None: ...",
        "transformer 'broken.f' is registered twice",
    ),
    "kind": (HEAD + "@hookimpl\ndef register_kinds(register): register(Kind('Pod', ''))", "the kind Pod of group '' is there already"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_named_and_hides_no_other(name: str, tmp_path: Path) -> None:
    source, reason = BROKEN[name]
    (tmp_path / "broken.py").write_text(source)
    (tmp_path / "before.py").write_text(ONE.format(name="f"))
    (tmp_path / "after.py").write_text(ONE.format(name="f"))
    plugins = load(
        "./before.py", "./broken.py", "./after.py", directory=tmp_path, entry_points=False
    )
    (fault,) = plugins.faults
    assert fault.startswith("plugin 'broken': ")
    assert reason in fault
    assert {"before.f", "after.f", "tolerations"} <= plugins.transformers.keys()
    assert plugins["broken"].error is not None
    with pytest.raises(PluginError, match="plugin 'broken'"):
        plugins.require()


def test_a_broken_entry_point_hides_no_other(site: Callable[..., Path]) -> None:
    site("aaa", "aaa_module", "raise RuntimeError('broken')")
    site("zzz", "zzz_module", ONE.format(name="f"))
    plugins = load()
    (fault,) = plugins.faults
    assert "plugin 'aaa': cannot be loaded from aaa 1.0: RuntimeError: broken" in fault
    assert "zzz.f" in plugins.transformers


HOOKS = (
    HEAD
    + """
def make(number: int):
    def made(pod: Pod, *, x: int = number) -> None:
        '''Made.'''
    return made

@hookimpl
def register_transformers(register):
    for number in range(3):
        register(make(number), name=f"made_{number}", atomic=number == 1)

@hookimpl
def register_kinds(register):
    register(Kind("Run", "acme.io", (PodPath("primary", "spec"),)))

@hookimpl
def register_accelerators(register):
    register("big", {"resource": "acme.io/big"})
"""
)


def test_hooks_register_what_is_made_at_run_time(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(HOOKS)
    plugins = load("./acme.py", directory=tmp_path, entry_points=False)
    assert plugins.faults == []
    assert plugins["acme"].transformers == ["acme.made_0", "acme.made_1", "acme.made_2"]
    assert [plugins.transformers[f"acme.made_{n}"].options.atomic for n in range(3)] == [
        False,
        True,
        False,
    ]
    assert ("acme.io", "Run") in plugins.kinds
    assert len(plugins.kinds) == len(BUILTIN_KINDS) + 1
    assert plugins.accelerators["big"] == {"resource": "acme.io/big"}
    assert plugins["acme"].hooks == [
        "register_accelerators",
        "register_kinds",
        "register_transformers",
    ]
    (tmp_path / "other.py").write_text(HOOKS.replace("Run", "Other"))
    (fault,) = load("./acme.py", "./other.py", directory=tmp_path, entry_points=False).faults
    assert "accelerator 'big' is registered twice: by acme and by other" in fault


def test_what_a_plugin_imports_from_another_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_module.py").write_text(ONE.format(name="f"))
    (tmp_path / "user_module.py").write_text(
        "from own_module import f\nfrom kubetailor.transformers import env\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins = load("own_module", "user_module", entry_points=False)
    assert plugins.faults == []
    assert plugins["user_module"].transformers == []


# Each leaves its name behind the names of those before it.
TRACE = (
    HEAD + "@transformer\ndef trace(pod: Pod) -> None:\n"
    "    pod.annotate('trace', pod.annotations.get('trace', '') + '{name}')\n"
)
POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main"}]}}


def traced(path: Path, plugins: str) -> str:
    """What one chain leaves, in whatever order its plugins are registered."""
    steps = "[{use: b.trace}, {use: a.trace}, {use: c.trace}, {use: a.trace, name: again}]"
    path.write_text(f"plugins: [{plugins}]\nchains: {{default: {{steps: {steps}}}}}\n")
    after = Tailor(load_config(path)).tailor(POD, "admit").result.after
    return str(after["metadata"]["annotations"]["trace"])


def test_the_order_of_registration_does_not_matter(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(TRACE.replace("{name}", name))
    for order in itertools.permutations(["./a.py", "./b.py", "./c.py"]):
        plugins = load(*order, directory=tmp_path, entry_points=False)
        registered = [name for name in plugins.transformers if "." in name]
        assert registered == [f"{file[2]}.trace" for file in order]
        assert traced(tmp_path / "kubetailor.yaml", ", ".join(order)) == "baca"


def test_the_order_of_entry_points_does_not_matter(
    site: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("a", "b", "c")
    for name in names:
        site(f"dist_{name}", f"{name}_module", TRACE.replace("{name}", name), name=name)
    found = importlib.metadata.entry_points(group="kubetailor")
    points = [point for point in found if point.name in names]
    assert len(points) == len(names)
    for order in itertools.permutations(points):
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda order=order, **_: order)
        registered = [name for name in load().transformers if "." in name]
        assert registered == [f"{point.name}.trace" for point in order]
        assert traced(tmp_path / "kubetailor.yaml", "") == "baca"


def test_the_identity_of_a_package_is_a_hash_of_all_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def digest(name: str, **files: str) -> str:
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text(ONE.format(name="spot"))
        (tmp_path / name / "deep" / "part.py").write_text("A = 1\n")
        for file, text in files.items():
            (tmp_path / name / file.replace("__", "/").replace("_", ".")).write_text(text)
        return load(name, entry_points=False)[name].identity.removeprefix(f"{name}@sha256:")

    first = digest("pack_1")
    assert len(first) == 64
    assert digest("pack_2") == first
    assert digest("pack_3", notes_txt="not code") == first
    assert digest("pack_4", deep__part_py="A = 2\n") != first
    assert digest("pack_5", more_py="A = 1\n") != first
