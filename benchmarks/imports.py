"""`import flytekit` in a new process, with kubetailor installed against without."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Plan, ratio
from benchmarks.rows import Row, more

__all__ = ["ROWS"]

_ROOT = Path(__file__).parents[1]
_PARTS = ("workloads", "registry", "transformers", "plugins")
_ENTRY_POINTS = {"flytekit.plugins": {"kubetailor": "kubetailor.plugins.flyte.install"}}


@contextmanager
def _site_packages() -> Generator[tuple[Path, Path], None, None]:
    """Two site-packages of links to this interpreter's own: with kubetailor, and without."""
    with tempfile.TemporaryDirectory() as directory:
        without, installed = Path(directory, "without"), Path(directory, "with")
        without.mkdir()
        for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
            if "kubetailor" not in entry.name:
                (without / entry.name).symlink_to(entry)
        shutil.copytree(without, installed, symlinks=True)
        _install(installed)
        yield installed, without


def _install(site: Path) -> None:
    """What a wheel of this checkout would put there."""
    package = site / "kubetailor"
    package.mkdir()
    for part in _PARTS:
        (package / part).symlink_to(_ROOT / part / "kubetailor" / part)
    info = site / "kubetailor-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kubetailor\nVersion: 0\n")
    points = configparser.ConfigParser()
    points.read_dict(_ENTRY_POINTS)
    with (info / "entry_points.txt").open("w") as file:
        points.write(file)


def _import_flytekit(site: Path, check: str) -> float:
    """The CPU seconds of a process that imports flytekit, and checks what else is there."""
    code = f"import site; site.addsitedir({str(site)!r}); import flytekit, sys; {check}"
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "KUBETAILOR"))}
    process = subprocess.Popen([sys.executable, "-S", "-c", code], cwd=site, env=environ)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"`import flytekit` with {site} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _import(plan: Plan) -> float:
    with _site_packages() as (installed, without):
        module = _ENTRY_POINTS["flytekit.plugins"]["kubetailor"]
        return ratio(
            lambda: _import_flytekit(installed, f"assert {module!r} in sys.modules"),
            lambda: _import_flytekit(without, f"assert {module!r} not in sys.modules"),
            plan.processes,
        )


ROWS = (
    Row(
        "import",
        "`import flytekit` with kubetailor installed, against without",
        1.08,
        1.12,
        _import,
        more,
    ),
)
