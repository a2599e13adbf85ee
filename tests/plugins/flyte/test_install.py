"""Importing flytekit with kubetailor installed: little, and never a failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ... import forks
from .conftest import Flyte


def python(code: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process."""
    return Flyte.start(Path(sys.executable).name, "-c", code, cwd=cwd, **env)


def program(path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a file for which flytekit is imported already."""
    return forks.run(path, cwd=path.parent, env=Flyte.environ(**env))


def test_import_flytekit_installs_the_host_and_loads_nothing_heavy(folder: Path) -> None:
    done = python(
        """
import sys, json
import flytekit
from flytekit.tools import translator
from flytekit.remote import FlyteRemote
names = ("get_serializable_task", "get_serializable_node", "get_serializable_array_node_map_task")
methods = ("raw_register", "_version_from_hash")
print(json.dumps([
    [hasattr(getattr(translator, name), "__kubetailor__") for name in names],
    [hasattr(getattr(FlyteRemote, name), "__kubetailor__") for name in methods],
    sorted(name for name in sys.modules if name.startswith("kubetailor")),
]))
""",
        folder,
    )
    assert done.returncode == 0, done.stderr
    functions, methods, modules = json.loads(done.stdout)
    assert all(functions)
    assert all(methods)
    assert modules == [
        "kubetailor",
        "kubetailor.plugins",
        "kubetailor.plugins.flyte",
        "kubetailor.plugins.flyte.install",
    ]


@pytest.mark.parametrize("first", ["kubetailor.plugins.flyte", "kubetailor.plugins.flyte.install"])
def test_the_order_of_imports_does_not_matter(folder: Path, first: str) -> None:
    done = python(
        f"""
import sys
import {first}
print("flytekit" in sys.modules)
import flytekit
from flytekit.tools import translator
original = translator.get_serializable_task.__kubetailor__
print(hasattr(original, "__kubetailor__"))
""",
        folder,
    )
    assert done.stdout.split() == [str(first.endswith("install")), "False"], done.stderr


TASK = """
from collections import OrderedDict
import flytekit
from flytekit.configuration import ImageConfig, SerializationSettings
from flytekit.tools.translator import get_serializable

@flytekit.task(container_image="i:1")
def t(x: int) -> int:
    return x

image = ImageConfig.auto_default_image()
settings = SerializationSettings(image, project="p", domain="d", version="v")
print("defined")
get_serializable(OrderedDict(), settings, t)
print("serialized")
"""


def test_a_crashing_plugin_is_said_at_serialization_alone(folder: Path) -> None:
    (folder / "kubetailor.yaml").write_text("plugins: [./crash.py]\nchains: {default: {}}")
    (folder / "crash.py").write_text("raise SystemExit(3)\n")
    (folder / "t.py").write_text(TASK)
    done = program(folder / "t.py")
    assert done.returncode == 1
    assert done.stdout.split() == ["defined"]
    assert "crash.py" in done.stderr.replace("\n", "")
    assert "SerializationError" in done.stderr


def installed(folder: Path, module: str, source: str) -> str:
    """Install a distribution with a plugin; returns the path on which it is found."""
    site = folder / "site"
    info = site / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kubetailor]\nacme = {module}\n")
    (site / "acme_plugin.py").write_text(f"{source}\n")
    return os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_an_installed_plugin_that_is_broken_does_not_break_the_import(folder: Path) -> None:
    path = installed(folder, "acme_plugin", "raise SystemExit(3)")
    (folder / "kubetailor.yaml").write_text("chains: {default: {}}")
    done = python("import flytekit; print('imported')", folder, PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (0, "imported\n"), done.stderr


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("acme_plugin", "raise RuntimeError('no cluster')", "RuntimeError: no cluster"),
        ("acme_plugin", "import not_installed", "not_installed"),
        ("acme_plugin", "raise SystemExit(3)", "SystemExit: 3"),
        ("no_such_module", "", "no_such_module"),
    ],
)
def test_an_installed_plugin_that_is_broken_is_said_at_serialization_alone(
    folder: Path, module: str, source: str, reason: str
) -> None:
    path = installed(folder, module, source)
    (folder / "t.py").write_text(TASK)
    # Without a config no plugin is looked for.
    done = program(folder / "t.py", PYTHONPATH=path)
    assert done.stdout.split() == ["defined", "serialized"], done.stderr
    (folder / "kubetailor.yaml").write_text("chains: {default: {}}")
    done = program(folder / "t.py", PYTHONPATH=path)
    assert done.returncode == 1
    assert done.stdout.split() == ["defined"]
    said = " ".join(done.stderr.split())
    for part in ("plugin 'acme'", "acme 1.0", reason):
        assert part in said
    (folder / "kubetailor.yaml").write_text("block_plugins: [acme]\nchains: {default: {}}")
    done = program(folder / "t.py", PYTHONPATH=path)
    assert done.stdout.split() == ["defined", "serialized"], done.stderr


def test_a_part_of_kubetailor_that_is_broken_does_not_break_the_import(folder: Path) -> None:
    broken = folder / "kubetailor" / "registry" / "__init__.py"
    broken.parent.mkdir(parents=True)
    broken.write_text("raise RuntimeError('broken registry')\n")
    (folder / "t.py").write_text(TASK)
    done = python("import t", folder)
    assert done.stdout.split() == ["defined", "serialized"], done.stderr
    (folder / "kubetailor.yaml").write_text("chains: {}")
    done = python("import t", folder)
    assert done.stdout.split() == ["defined"]
    assert "broken registry" in done.stderr


def test_another_flytekit_is_said_and_not_fatal(folder: Path) -> None:
    done = python(
        """
import flytekit
from flytekit.tools import translator
import importlib
del translator.get_serializable_task
import kubetailor.plugins.flyte.install as install
importlib.reload(install)
print("alive")
""",
        folder,
        FLYTE_SDK_LOGGING_LEVEL="20",
    )
    assert done.stdout.strip().endswith("alive"), done.stderr
    assert "kubetailor does not know this flytekit" in " ".join((done.stderr + done.stdout).split())


def test_pyflyte_says_a_fault_without_a_traceback(folder: Path, flyte: Any) -> None:
    (folder / "kubetailor.yaml").write_text("chains: {default: {steps: [{use: tolerationz}]}}")
    (folder / "t.py").write_text(TASK.partition("image =")[0])
    done = flyte.run("pyflyte", "--pkgs", "t", "package", "-o", "p.tgz", cwd=folder)
    assert done.returncode == 1
    text = " ".join((done.stdout + done.stderr).split())
    assert "no transformer 'tolerationz'" in text
    assert "kubetailor.yaml:1:" in text
    assert "Traceback" not in text
    assert not (folder / "p.tgz").exists()
