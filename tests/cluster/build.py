"""Builds the control planes that the tests of this folder run against, from Go modules.

    python -m tests.cluster.build          the core
    python -m tests.cluster.build --all    and what only `make test-cluster-all` runs

Each goes into a cache folder named by its version and a hash of what it is built from, and only
when it is missing: `$KUBETAILOR_CLUSTER_TOOLS`, else `~/.cache/kubetailor/cluster-tools`. Where
`KUBEBUILDER_ASSETS` is set, etcd, kube-apiserver and kubectl come from there, as envtest has it.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TOOLS_FOLDER: Final = Path(__file__).parent / "tools"
ENVTEST: Final = ("etcd", "kube-apiserver", "kubectl")
_EVERY: Final = 15.0  # seconds between two lines of progress


@dataclass(frozen=True)
class Tool:
    """A program: the folder with its `go.mod`, the module that gives its version, its package.

    Without a package there is no program, only `files`.
    """

    name: str
    folder: str
    module: str
    package: str | None = "."
    core: bool = True
    files: dict[str, str] = field(default_factory=dict[str, str])
    """What else is needed: name in the cache -> module, a space, folder or file in it."""

    @property
    def version(self) -> str:
        """The version in `go.mod`; `local` for our own."""
        text = (TOOLS_FOLDER / self.folder / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        return found[1] if found else "local"

    @property
    def sources(self) -> list[Path]:
        """Everything that it is built from, beside other modules."""
        folder = TOOLS_FOLDER / self.folder
        names = [folder / "go.mod", folder / "go.sum", *sorted(folder.rglob("*.go"))]
        return [name for name in names if not name.name.endswith("_test.go")]

    @property
    def flags(self) -> str:
        """What the linker is told; Kueue refuses an API server that does not know its version."""
        said = ["-s", "-w"]
        if self.folder == "kubernetes":
            _, minor, _ = self.version.split(".")
            for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
                for name, value in (
                    ("gitVersion", self.version),
                    ("gitMajor", "1"),
                    ("gitMinor", minor),
                ):
                    said += ["-X", f"{package}.{name}={value}"]
        return " ".join(said)

    @property
    def home(self) -> Path:
        """Its folder in the cache."""
        told = hashlib.sha256(f"{platform.system()} {platform.machine()} {self.flags}".encode())
        told.update(repr(self.files).encode() if self.files else b"")
        for path in self.sources:
            told.update(path.relative_to(TOOLS_FOLDER).as_posix().encode() + b"\0")
            told.update(path.read_bytes())
        return cache() / f"{self.name}-{self.version}-{told.hexdigest()[:12]}"

    @property
    def path(self) -> Path:
        """Its binary; where there is none, its folder."""
        if self.package is None:
            return self.home
        assets = os.environ.get("KUBEBUILDER_ASSETS")
        if assets and self.name in ENVTEST:
            return Path(assets) / self.name
        return self.home / self.name

    @property
    def is_built(self) -> bool:
        """Whether there is nothing to do; a folder in the cache is whole, or not there."""
        return self.path.exists()


_KUBERNETES: Final = "k8s.io/kubernetes"
_CERTIFICATES: Final = "github.com/cert-manager/cert-manager deploy/crds/crd"
_MONITORING: Final = (
    "github.com/prometheus-operator/prometheus-operator "
    "example/prometheus-operator-crd/monitoring.coreos.com"
)
_KINDS: Final = (
    "github.com/argoproj/argo-workflows/v4 manifests/base/crds/full/argoproj.io_workflows.yaml",
    "github.com/argoproj/argo-workflows/v4 manifests/base/crds/full/argoproj.io_cronworkflows.yaml",
    "github.com/argoproj/argo-workflows/v4 "
    "manifests/base/crds/full/argoproj.io_workflowtemplates.yaml",
    "github.com/kserve/kserve config/crd/full/serving.kserve.io_inferenceservices.yaml",
    "github.com/kubeflow/spark-operator/v2 "
    "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",
    "github.com/kubeflow/spark-operator/v2 "
    "config/crd/bases/sparkoperator.k8s.io_scheduledsparkapplications.yaml",
    "github.com/kubeflow/trainer/v2 manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml",
    "github.com/project-codeflare/appwrapper "
    "config/crd/bases/workload.codeflare.dev_appwrappers.yaml",
    "github.com/ray-project/kuberay/ray-operator config/crd/bases/ray.io_rayclusters.yaml",
    "github.com/ray-project/kuberay/ray-operator config/crd/bases/ray.io_rayjobs.yaml",
    "github.com/ray-project/kuberay/ray-operator config/crd/bases/ray.io_rayservices.yaml",
    "sigs.k8s.io/jobset config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
    "sigs.k8s.io/lws config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
)
TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool("etcd", "etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"),
        *(
            Tool(name, "kubernetes", _KUBERNETES, f"{_KUBERNETES}/cmd/{name}")
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        ),
        Tool(
            "kueue",
            "kueue",
            "sigs.k8s.io/kueue",
            "sigs.k8s.io/kueue/cmd/kueue",
            files={
                "crd": "sigs.k8s.io/kueue config/components/crd/bases",
                "webhook.yaml": "sigs.k8s.io/kueue config/components/webhook/manifests.yaml",
            },
        ),
        Tool(
            "kwok",
            "kwok",
            "sigs.k8s.io/kwok",
            "sigs.k8s.io/kwok/cmd/kwok",
            files={"stage": "sigs.k8s.io/kwok kustomize/stage"},
        ),
        Tool(
            "training-operator",
            "training-operator",
            "github.com/kubeflow/training-operator",
            files={"crd": "github.com/kubeflow/training-operator manifests/base/crds"},
        ),
        Tool(
            "flytepropeller",
            "flytepropeller",
            "github.com/flyteorg/flyte/flytepropeller",
            # It makes RayJobs, and KubeRay is not of the core.
            files={"crd": "github.com/ray-project/kuberay/ray-operator config/crd/bases"},
        ),
        Tool("flyteadmin", "flyteadmin", "kubetailor.dev/tools/flyteadmin"),
        # What the overlays of deploy/ need beside what the API server knows.
        Tool(
            "crds",
            "crds",
            "github.com/cert-manager/cert-manager",
            package=None,
            files={
                "certificates.yaml": f"{_CERTIFICATES}-certificates.yaml",
                "issuers.yaml": f"{_CERTIFICATES}-issuers.yaml",
                "servicemonitors.yaml": f"{_MONITORING}_servicemonitors.yaml",
                "prometheusrules.yaml": f"{_MONITORING}_prometheusrules.yaml",
            },
        ),
        # The definitions of kinds whose operators the tests do not run, or run with --all alone.
        Tool(
            "kinds",
            "kinds",
            "sigs.k8s.io/jobset",
            package=None,
            files={f"crd/{place.rpartition('/')[2]}": place for place in _KINDS},
        ),
        Tool(
            "kuberay",
            "kuberay",
            "github.com/ray-project/kuberay/ray-operator",
            "github.com/ray-project/kuberay/ray-operator",
            core=False,
            files={"crd": "github.com/ray-project/kuberay/ray-operator config/crd/bases"},
        ),
        Tool(
            "jobset",
            "jobset",
            "sigs.k8s.io/jobset",
            "sigs.k8s.io/jobset",
            core=False,
            files={
                "crd": "sigs.k8s.io/jobset config/components/crd/bases",
                "webhook.yaml": "sigs.k8s.io/jobset config/components/webhook/manifests.yaml",
            },
        ),
    )
}


class BuildError(Exception):
    """A tool cannot be built."""


def program(name: str) -> Path:
    """The binary of a tool.

    Raises:
        BuildError: it is not built.
    """
    path = TOOLS[name].path
    if not path.is_file():
        raise BuildError(f"{name}: {path} is not there; `make cluster-tools` builds it")
    return path


def cache() -> Path:
    """Where what is built is kept."""
    told = os.environ.get("KUBETAILOR_CLUSTER_TOOLS")
    if told:
        return Path(told)
    return Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kubetailor/cluster-tools"
    )


def build(tool: Tool) -> None:
    """Build one tool into the cache.

    Raises:
        BuildError: there is no Go, or it does not build.
    """
    if not tool.path.is_relative_to(tool.home):
        raise BuildError(f"KUBEBUILDER_ASSETS has no {tool.name}: {tool.path} is not there")
    if shutil.which("go") is None:
        raise BuildError("go is not in PATH: Go 1.26 or newer builds the control planes")
    folder, home = TOOLS_FOLDER / tool.folder, tool.home
    new = home.with_name(f".{home.name}.{os.getpid()}")
    try:
        new.mkdir(parents=True)
        if tool.package is not None:
            command = ["go", "build", "-v", "-trimpath", f"-ldflags={tool.flags}", "-o"]
            _run([*command, str(new / tool.name), tool.package], folder, tool.name)
        for name, place in tool.files.items():
            module, _, source = place.partition(" ")
            _run(["go", "mod", "download", module], folder, tool.name)
            found = _output(["go", "list", "-m", "-f", "{{.Dir}}", module], folder)
            _copy(Path(found, source), new / name)
        new.rename(home)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Files of the module cache may not be written, which a copy must not keep."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return
    for path in sorted(source.rglob("*.yaml")):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _output(command: list[str], folder: Path) -> str:
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def _run(command: list[str], folder: Path, name: str) -> None:
    """Run a build, and say now and then how far it is."""
    start, packages, rest = time.monotonic(), 0, []
    done = threading.Event()

    def say() -> None:
        while not done.wait(_EVERY):
            passed = time.monotonic() - start
            _say(f"   {name}: {packages} packages compiled, {passed:.0f} s")

    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        threading.Thread(target=say, daemon=True).start()
        try:
            for line in process.stdout or ():
                # `go build -v` prints the import path of each package that it compiles.
                if re.fullmatch(r"[\w./~+-]+\n", line):
                    packages += 1
                elif not line.startswith("go: downloading "):
                    rest.append(line)
            code = process.wait()
        finally:
            done.set()
            process.kill()
    if code:
        raise BuildError(f"{' '.join(command)} in {folder} failed:\n{''.join(rest[-40:])}")


def _say(text: str) -> None:
    """Progress is for people: what a shell reads is on stdout."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _locked() -> Generator[None]:
    """One build at a time, whoever asked for it."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Build what is missing."""
    parser = argparse.ArgumentParser(description="Build the control planes for the tests.")
    parser.add_argument("--all", action="store_true", help="also those outside of the core")
    asked = parser.parse_args()
    wanted = [tool for tool in TOOLS.values() if tool.core or asked.all]
    with _locked():
        missing = [tool for tool in wanted if not tool.is_built]
        _say(f"{len(wanted) - len(missing)} of {len(wanted)} tools are in {cache()}")
        for number, tool in enumerate(missing, 1):
            _say(f"[{number}/{len(missing)}] {tool.name} {tool.version}")
            start = time.monotonic()
            try:
                build(tool)
            except BuildError as error:
                sys.exit(f"{tool.name}: {error}")
            _say(f"   {tool.name}: built in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
