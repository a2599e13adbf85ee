"""What holds for the repository as a whole, whatever the code does."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
ROOTS = ("workloads", "registry", "transformers", "plugins")


def run_python(code: str, *, cwd: Path) -> str:
    """What `code` prints in a Python of its own, where nothing of kubetailor is configured."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("KUBETAILOR", "FLYTE")) and name != "PYTHONPATH"
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository_files() -> list[Path]:
    """Every file that is, or would be, committed."""
    if shutil.which("git") is None or not (CHECKOUT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = (CHECKOUT / name for name in listed.split("\0") if name)
    return [path for path in paths if path.is_file()]


# ------------------------------------------------------------------------------------------ layout


@pytest.mark.parametrize("root", ROOTS)
def test_kubetailor_is_a_namespace_package(root: str) -> None:
    assert (CHECKOUT / root / "kubetailor" / root / "__init__.py").is_file()
    assert not (CHECKOUT / root / "__init__.py").exists()
    assert not (CHECKOUT / root / "kubetailor" / "__init__.py").exists()


@pytest.mark.parametrize("root", ROOTS)
def test_each_root_holds_one_package_that_says_it_is_typed(root: str) -> None:
    packages = [path.name for path in (CHECKOUT / root / "kubetailor").iterdir() if path.is_dir()]
    assert [name for name in packages if name != "__pycache__"] == [root]
    assert (CHECKOUT / root / "kubetailor" / root / "py.typed").is_file()


@pytest.mark.parametrize("root", ROOTS)
def test_packages_are_imported_from_the_checkout(root: str, tmp_path: Path) -> None:
    found = run_python(f"import kubetailor.{root} as it; print(it.__file__)", cwd=tmp_path)
    assert Path(found.strip()) == CHECKOUT / root / "kubetailor" / root / "__init__.py"


@pytest.mark.parametrize("root", ROOTS)
def test_a_package_uses_no_private_module_of_another(root: str) -> None:
    private = re.compile(rf"(?:from|import) kubetailor\.(?!{root}\b)[\w.]*\._\w+")
    found = {
        str(path.relative_to(CHECKOUT)): private.findall(path.read_text(encoding="utf-8"))
        for path in (CHECKOUT / root).rglob("*.py")
    }
    assert not {path: lines for path, lines in found.items() if lines}


def test_the_name_transformers_is_left_to_others(tmp_path: Path) -> None:
    code = """
import importlib.util
spec = importlib.util.find_spec("transformers")
print(*(spec.submodule_search_locations or ()) if spec else (), sep="\\n")
"""
    for place in run_python(code, cwd=tmp_path).splitlines():
        assert not Path(place).is_relative_to(CHECKOUT / "transformers")


# ------------------------------------------------------------------------------------ entry points


def entry_point(group: str) -> importlib.metadata.EntryPoint:
    found = importlib.metadata.entry_points(group=group, name="kubetailor")
    assert len(found) == 1, "run `make install`"
    return next(iter(found))


@pytest.mark.parametrize(
    ("group", "package"),
    [
        ("console_scripts", "kubetailor.plugins.cli"),
        ("flytekit.plugins", "kubetailor.plugins.flyte"),
    ],
)
def test_entry_points_lead_into_the_checkout(group: str, package: str) -> None:
    # Without the editable install everything else would pass while flytekit never loads the host.
    module = entry_point(group).module
    assert f"{module}.".startswith(f"{package}.")
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).is_relative_to(CHECKOUT / "plugins")


def test_installed_metadata_is_what_pyproject_says() -> None:
    text = (CHECKOUT / "pyproject.toml").read_text()
    declared = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    assert declared is not None
    assert importlib.metadata.version("kubetailor") == declared[1], "run `make install`"


# ----------------------------------------------------------------------------------- light imports


@pytest.mark.parametrize("root", ["workloads", "registry", "transformers"])
def test_packages_below_the_hosts_import_no_host_library(root: str, tmp_path: Path) -> None:
    code = f"""
import json, sys
import kubetailor.{root}
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
    loaded = set(json.loads(run_python(code, cwd=tmp_path)))
    assert loaded.isdisjoint(
        {"flytekit", "flyteidl", "kubernetes", "starlette", "uvicorn", "click", "rich"}
    )


def test_the_flyte_host_adds_little_to_flytekit(tmp_path: Path) -> None:
    # flytekit without any of its plugins first, kubetailor's among them; then what the host adds.
    code = f"""
import importlib, json, sys
import importlib.metadata, importlib_metadata

for module in (importlib.metadata, importlib_metadata):
    def without_plugins(find=module.entry_points, **of):
        return () if of.get("group") == "flytekit.plugins" else find(**of)
    module.entry_points = without_plugins
import flytekit

before = set(sys.modules)
assert not any(name.startswith("kubetailor") for name in before)
importlib.import_module({entry_point("flytekit.plugins").module!r})

print(json.dumps(sorted(set(sys.modules) - before)))
"""
    added = json.loads(run_python(code, cwd=tmp_path))
    assert "kubetailor.plugins.flyte" in added
    assert not any(name.startswith("kubetailor.plugins.cli") for name in added)
    assert {name.partition(".")[0] for name in added}.isdisjoint(
        {"kubernetes", "pydantic", "pydantic_core", "click", "rich", "starlette", "uvicorn"}
    )


# ------------------------------------------------------------------------------------------- files

# Put together so that this file does not hold them itself.
MACHINE_PATHS = (
    r"(?<![\w.$}/-])/" + "work/",
    r"(?<![\w.$}/-])/" + r"root/\.",
    r"(?<![\w.$}/-])/" + r"home/\w+/\.",
    "/" + "tmp/exp",
    "/" + r"\.pyenv/",
)
REGISTRIES = ("pypi" + r"\.org", "python" + "hosted", "registry" + r"\.npmjs", "index" + "-url")


def test_no_file_names_a_path_of_this_machine_or_a_registry() -> None:
    patterns = [*MACHINE_PATHS, *REGISTRIES]
    if len(CHECKOUT.parts) > 2:  # a checkout in /src would find too much
        patterns.append(re.escape(str(CHECKOUT)) + r"\b")
    forbidden = re.compile("|".join(patterns))
    found: list[str] = []
    for path in repository_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(CHECKOUT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
            for match in forbidden.finditer(text)
        ]
    assert not found, "\n".join(found)


def test_constraints_are_exact_and_without_addresses() -> None:
    lines = (CHECKOUT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    odd = [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.!+]+( ; .+)?", pin)]
    assert not odd
    names = {pin.partition("==")[0] for pin in pins}
    assert "torch" not in names  # gigabytes, and nothing here needs it
    versions = {pin.partition(";")[0].strip() for pin in pins if pin.startswith("flytekit")}
    assert len({version.partition("==")[2] for version in versions}) == 1, versions
