"""`pyflyte package` with kubetailor, and `kubetailor flyte package` after pyflyte without it."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flyteidl.admin.launch_plan_pb2 import LaunchPlan
from flyteidl.admin.task_pb2 import TaskSpec
from flyteidl.admin.workflow_pb2 import WorkflowSpec

from kubetailor.plugins.cli.root import cli
from kubetailor.plugins.flyte.packages import Package, PackageError
from kubetailor.plugins.flyte.stamp import STAMP

from .conftest import CONFIG, Flyte

HERE = Path(__file__).parent
KINDS = {"1": TaskSpec, "2": WorkflowSpec, "3": LaunchPlan}


def command(*args: str) -> Result:
    return CliRunner().invoke(cli, ["flyte", *args])


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        files = {info.name: archive.extractfile(info) for info in archive if info.isfile()}
        return {name: file.read() for name, file in files.items() if file}


def canonical(path: Path) -> dict[str, bytes]:
    """The protobufs of a package with their maps in order."""
    found = {}
    for name, data in members(path).items():
        if name.endswith(".pb"):
            message = KINDS[name[-4]].FromString(data)
            data = message.SerializeToString(deterministic=True)
        found[name] = data
    return found


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the real pyflyte writes: `plain` with no config in force, `tailored` with one."""
    # One folder: a dynamic task's environment has its path.
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(HERE / "zoo.py", folder)
    found = {}
    for name in ("plain", "tailored"):
        if name == "tailored":
            (folder / "kubetailor.yaml").write_text(CONFIG)
        done = Flyte.run(
            "pyflyte", "--pkgs", "zoo", "package", "--copy", "auto", "-o", f"{name}.tgz", cwd=folder
        )
        assert done.returncode == 0, done.stderr + done.stdout
        found[name] = folder / f"{name}.tgz"
    return found


def test_both_ways_give_the_same_protobufs(
    flyte: Any, packages: dict[str, Path], configure: Callable[[str], Path], folder: Path
) -> None:
    configure(flyte.CONFIG)
    done = command("package", str(packages["plain"]), "-o", "out.tgz")
    assert done.exit_code == 0, done.output
    ours, theirs = canonical(folder / "out.tgz"), canonical(packages["tailored"])
    assert sum(STAMP.encode() in data for data in theirs.values()) > 15
    protobufs = [name for name in theirs if name.endswith(".pb")]
    assert len(protobufs) > 20
    for name in protobufs:
        assert ours[name] == theirs[name], name
    # The source code, named by its content, is beside them.
    assert len(ours) == len(theirs) == len(protobufs) + 1


def test_all_else_of_the_archive_stays(
    flyte: Any, packages: dict[str, Path], configure: Callable[[str], Path], folder: Path
) -> None:
    configure(flyte.CONFIG)
    assert command("package", str(packages["plain"]), "-o", "out.tgz").exit_code == 0
    with tarfile.open(packages["plain"]) as before, tarfile.open(folder / "out.tgz") as after:
        for old, new in zip(before.getmembers(), after.getmembers(), strict=True):
            kept = ("name", "mode", "mtime", "uid", "gid", "uname", "gname", "type")
            assert [getattr(old, key) for key in kept] == [getattr(new, key) for key in kept]
    was, now = members(packages["plain"]), members(folder / "out.tgz")
    # Launch plans, the source and workflows without pod templates keep their very bytes.
    for name, data in was.items():
        if not name.endswith("_1.pb") and "overridden" not in name:
            assert now[name] == data, name
    assert sorted(os.listdir(folder)) == ["kubetailor.yaml", "out.tgz"]


@pytest.mark.parametrize("config", ["chains: {}", "chains: {default: {steps: []}}"])
def test_without_a_chain_every_byte_stays(
    packages: dict[str, Path], configure: Callable[[str], Path], folder: Path, config: str
) -> None:
    configure(config)
    assert command("package", str(packages["plain"]), "-o", "out.tgz").exit_code == 0
    assert members(folder / "out.tgz") == members(packages["plain"])


def test_a_tailored_package_is_undone_first(
    flyte: Any, packages: dict[str, Path], configure: Callable[[str], Path], folder: Path
) -> None:
    other = flyte.CONFIG.replace("batch-low", "batch-high").replace("team: speech", "group: x")
    configure(other)
    assert command("package", str(packages["tailored"]), "-o", "a.tgz").exit_code == 0
    assert command("package", str(packages["plain"]), "-o", "b.tgz").exit_code == 0
    for name, data in canonical(folder / "b.tgz").items():
        if name.endswith(".pb"):
            assert canonical(folder / "a.tgz")[name] == data
    # Back without a chain, in place.
    configure("chains: {}")
    assert command("package", "a.tgz", "-o", "a.tgz").exit_code == 0
    plain = canonical(packages["plain"])
    for name, data in canonical(folder / "a.tgz").items():
        if name.endswith(".pb"):
            assert data == plain[name]


def test_what_waits_can_be_decided_by_hand(
    packages: dict[str, Path], configure: Callable[[str], Path], folder: Path
) -> None:
    configure("""
        phases: [serialize, launch]
        chains: {production: {steps: [{use: priority_class, with: {name: x}}]}}
        select: [{when: {domain: production}, chain: production}]
    """)
    done = command("package", str(packages["plain"]), "-o", "out.tgz")
    assert "the whole chain waits for the phase launch: domain is not known yet" in done.stderr
    assert done.stderr.count("waits") == 1
    assert not any(b"priorityClassName" in data for data in members(folder / "out.tgz").values())
    done = command(
        "package", str(packages["plain"]), "-o", "out.tgz", "--task", "domain=production"
    )
    assert "waits" not in done.stderr
    assert any(b"priorityClassName" in data for data in members(folder / "out.tgz").values())


# bad input ----------------------------------------------------------------------------------------


def archive(path: Path, **files: bytes) -> Path:
    with tarfile.open(path, "w:gz") as out:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda path: path, "No such file"),
        (lambda path: path.write_bytes(b"") and path, "not a package"),
        (lambda path: path.write_bytes(b"text") and path, "not a package"),
        (lambda path: archive(path, **{"0_a_1.pb": b"\xff\xff"}), "0_a_1.pb is no TaskSpec"),
        (lambda path: archive(path, **{"0_a_2.pb": b"\xff\xff"}), "0_a_2.pb is no WorkflowSpec"),
        (lambda path: archive(path, readme=b"x"), "no task and no workflow"),
    ],
)
def test_what_is_no_package_is_refused_and_nothing_written(
    folder: Path,
    configure: Callable[[str], Path],
    make: Callable[[Path], Any],
    part: str,
) -> None:
    configure("chains: {}")
    path = folder / "p.tgz"
    make(path)
    with pytest.raises(PackageError, match=part):
        Package.read(path)
    done = command("package", "p.tgz", "-o", "out.tgz")
    assert done.exit_code == 2
    assert "p.tgz" in done.stderr
    assert part in done.stderr
    assert not (folder / "out.tgz").exists()


def test_a_truncated_package_is_refused(packages: dict[str, Path], folder: Path) -> None:
    data = packages["plain"].read_bytes()
    for size in (len(data) // 2, len(data) - 5, 20):
        path = folder / f"{size}.tgz"
        path.write_bytes(data[:size])
        with pytest.raises(PackageError, match="not a package"):
            Package.read(path)


def test_a_failing_step_leaves_what_was_there(
    packages: dict[str, Path], configure: Callable[[str], Path], folder: Path
) -> None:
    configure("""
        chains:
          default:
            enforce: [{use: env, with: {set: {A: B}, container: nobody}, when: {task: zoo.train}}]
    """)
    (folder / "out.tgz").write_text("mine")
    done = command("package", str(packages["plain"]), "-o", "out.tgz")
    assert done.exit_code == 2
    assert "nobody" in done.stderr
    assert (folder / "out.tgz").read_text() == "mine"
    assert sorted(os.listdir(folder)) == ["kubetailor.yaml", "out.tgz"]


def test_a_step_that_fails_on_the_pod_of_a_node_names_the_node(
    packages: dict[str, Path], configure: Callable[[str], Path], folder: Path
) -> None:
    # The label is that of the pod template which the node gives its task.
    configure("""
        chains:
          default:
            enforce:
              - use: env
                with: {set: {A: B}, container: nobody}
                when: {all: [{labels: {pt: "1"}}, {task: zoo.train}]}
    """)
    done = command("package", str(packages["plain"]), "-o", "out.tgz")
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    for part in ("node zoo.overridden/train", "nobody", "kubetailor.yaml:5:", "step 'env'"):
        assert part in said
    assert not (folder / "out.tgz").exists()


def test_where_nothing_can_be_written_it_is_said(
    packages: dict[str, Path], configure: Callable[[str], Path]
) -> None:
    configure("chains: {}")
    done = command("package", str(packages["plain"]), "-o", "no/such/out.tgz")
    assert done.exit_code == 2
    assert "no/such/out.tgz" in done.stderr
