"""Every snippet and command of README, docs and examples is run.

The first word after the fence is the language, the rest says what the block is for:

    ```yaml title=kubetailor.yaml     a file, written into the page's folder
    ```python                         a program, run there
    ```console                        commands after `$ `, run there; what stands below each is its
                                      whole output; a line `...` is any number of lines, `...` at
                                      the end of a line the rest of it
    ```console exit=1                 the last command of the block ends with this status
    ```console norun                  commands that a test cannot run; NOT_RUN names them all
    ```text                           neither

The blocks of one page share its folder, a fresh one (of an example, a copy of it), and run in
their order.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .. import forks

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [
    CHECKOUT / "README.md",
    *sorted(page for part in ("docs", "examples") for page in (CHECKOUT / part).rglob("*.md")),
]
NOT_RUN = {
    # .ci/run runs them.
    "make demo",
    "make test",
    # They need a registry.
    "pip install 'kubetailor[flyte]'",
    "pip install .[test]",
    "pip install ../team-plugin 'kubetailor[flyte]' flytekitplugins-kfpytorch "
    "flytekitplugins-kfmpi flytekitplugins-ray flytekitplugins-spark",
    # It needs a container engine.
    "docker build --tag registry.example.com/kubetailor:1 .",
    # They need a cluster; tests/cluster/test_deploy.py runs them.
    "kubectl apply -f webhook.yaml",
    "kubectl -n kubetailor-system rollout status deployment/kubetailor",
    "kubectl create namespace sandbox",
    "kubectl label namespace sandbox kubetailor.dev/tailor=false",
    "kubectl kustomize deploy/overlays/team > team.yaml",
    "kubetailor webhook manifests --image registry.example.com/kubetailor:1 | kubectl apply -f -",
    "kubectl delete mutatingwebhookconfiguration kubetailor",
    "kubectl delete mutatingwebhookconfiguration kubetailor --ignore-not-found",
    "kubectl delete --ignore-not-found -f webhook.yaml",
    # They need FlyteAdmin; tests/plugins/client has one.
    "kubetailor flyte show speech/development/pipeline.speech",
    "kubetailor flyte show speech/development/pipeline.speech@v7 --set gpu.type=nvidia-h100-80gb "
    "--on 'node=n1.*'",
    "pyflyte run --remote --override h100.yaml pipeline.py speech --rows 100",
    "pyflyte run --set gpu.type=nvidia-h100-80gb --on 'task=*.train' remote-launchplan "
    "pipeline.speech --rows 100",
    "pyflyte run --overwrite-cache --set retries.retries=3 remote-task pipeline.train --rows 100",
    "kubetailor launch speech/development/pipeline.speech --inputs inputs.yaml "
    "--override h100.yaml --dry-run",
    "kubetailor launch speech/development/pipeline.speech --inputs inputs.yaml "
    "--override h100.yaml",
    # They need jq.
    "kubetailor flyte show pipeline.py -o json | jq '.[].before' > templates.json",
    "kubetailor explain -f templates.json",
    # It needs a cluster; tests/cluster/test_explain.py runs it.
    "kubetailor explain pod/train-worker-0 -n speech",
    # They need Flyte on a cluster; tests/cluster/test_tutorial.py runs those of the tutorial.
    "kubetailor launch speech/development/pipeline.nightly --set gpu.type=nvidia-h100-80gb",
    "pyflyte register --project flytesnacks --domain development --version v1 pipeline.py",
    "kubetailor launch flytesnacks/development/pipeline.speech --name on-a100",
    "kubetailor launch flytesnacks/development/pipeline.speech --name on-h100 --override h100.yaml",
    "kubetailor launch flytesnacks/development/pipeline.speech --name after",
    "pyflyte run --remote --project flytesnacks --domain development --override h100.yaml "
    "pipeline.py speech",
    *(
        f"kubectl -n flytesnacks-development wait --for=create pod/{name}-n1-0 --timeout=2m"
        for name in ("on-a100", "on-h100", "after")
    ),
    *(
        f"kubectl -n flytesnacks-development get pod {name}-n1-0 "
        "-o jsonpath='{.spec.nodeSelector}'"
        for name in ("on-a100", "on-h100", "after")
    ),
    "kubetailor explain pod/on-h100-n1-0 -n flytesnacks-development",
    "kubetailor execution show flytesnacks/development/on-h100",
    "cp all-on-h100.yaml kubetailor.yaml",
    # They need what those install; tests/examples runs them.
    "pytest",
    "kubetailor transformers acme_platform.spot",
    "kubetailor flyte show speech.pipeline --diff --task project=speech --task domain=development",
    "KUBETAILOR_TASK=project=speech,domain=development pyflyte --pkgs speech package "
    "--image registry.example.com/speech:1 --output package.tgz",
}
LANGUAGES = {"yaml", "python", "toml", "console", "text"}
_QUOTED = re.compile("'[^']*'")
_SHELLS = re.compile(r"[]|&;<>$`*?()[~#!]")
_FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    where: str
    language: str
    options: dict[str, str]
    body: str
    span: tuple[int, int]

    @property
    def commands(self) -> Iterator[tuple[str, str]]:
        """(command, output) of a console block; a command goes on after a backslash."""
        first, *parts = re.split(r"^\$ ", self.body, flags=re.MULTILINE)
        assert not first, f"{self.where}: a console block starts with a command"
        for part in parts:
            lines = part.splitlines()
            size = 1
            while lines[size - 1].endswith("\\"):
                size += 1
            yield "\n".join(lines[:size]), "\n".join(lines[size:])


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        indent, language, info, body = map(str, match.groups())
        where = f"{page.relative_to(CHECKOUT)}:{text.count(chr(10), 0, match.start()) + 1}"
        options = {key: value for key, _, value in (word.partition("=") for word in info.split())}
        assert language in LANGUAGES, f"{where}: language {language!r}"
        assert options.keys() <= {"title", "exit", "norun"}, f"{where}: {info}"
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        yield Block(where, language, options, body, match.span(4))


def run(block: Block, folder: Path) -> None:
    """Write or run a block; fails where it does not do what the page says."""
    if title := block.options.get("title"):
        path = (folder / title).resolve()
        assert path.is_relative_to(folder.resolve()), block.where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.body, encoding="utf-8")
    elif block.language == "python":
        status, printed = execute([sys.executable, "-c", block.body], folder)
        assert (status, printed) == (0, ""), f"{block.where}: {printed}"
    else:
        assert block.language == "console", f"{block.where}: a file needs a title"
        commands = list(block.commands)
        for index, (command, expected) in enumerate(commands, 1):
            wanted = int(block.options.get("exit", "0")) if index == len(commands) else 0
            status, printed = shell(command, folder)
            assert status == wanted, f"{block.where}: $ {command} ended with {status}\n{printed}"
            assert agrees(expected, printed), (
                f"{block.where}: $ {command}\n--- the page says\n{expected}\n--- printed\n{printed}"
            )


def shell(command: str, folder: Path) -> tuple[int, str]:
    """Status and output of a command that a user types; one of ours alone needs no shell."""
    words = shlex.split(command.replace("\\\n", ""))
    if _SHELLS.search(_QUOTED.sub("", command)) or words[0] not in ("kubetailor", "pyflyte"):
        return execute(["bash", "-c", command], folder)
    program = Path(sys.executable).with_name(words[0])
    done = forks.run(program, *words[1:], cwd=folder, env=environ(), merged=True)
    return done.returncode, done.stdout.replace(f"{folder}/", "")


def execute(command: list[str], folder: Path) -> tuple[int, str]:
    """Status and output of a command, run as a user runs it.

    The path of the folder is left out of the output.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout.replace(f"{folder}/", "")


def environ() -> dict[str, str]:
    """A user's environment, with nothing of kubetailor set."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("KUBETAILOR", "FLYTE")) and name != "PYTHONPATH"
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    return {**env, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}


def agrees(expected: str, printed: str) -> bool:
    """Whether an output is the expected one, but for blank ends."""
    wanted = [line.rstrip() for line in expected.strip("\n").splitlines()]
    found = [line.rstrip() for line in printed.strip("\n").splitlines()]
    pattern = "".join(map(_pattern, wanted))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*"
    return re.escape(line.removesuffix("...")) + (".*\n" if line.endswith("...") else "\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_what_a_page_says_is_what_happens(page: Path, tmp_path: Path) -> None:
    if page.is_relative_to(CHECKOUT / "examples"):  # an example is about the files beside it
        shutil.copytree(page.parent, tmp_path, dirs_exist_ok=True)
    for block in blocks_of(page):
        if "norun" not in block.options and block.language != "text":
            run(block, tmp_path)


def test_the_commands_that_are_not_run_are_few_and_known() -> None:
    found = {
        re.sub(r"\s*\\\n\s*", " ", command)
        for page in PAGES
        for block in blocks_of(page)
        if "norun" in block.options
        for command, _ in block.commands
    }
    assert found == NOT_RUN


# ------------------------------------------------------------------------------------------- links


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not link.startswith(("http://", "https://")):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_every_page_is_linked_from_the_index() -> None:
    index = (CHECKOUT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in sorted((CHECKOUT / "docs").rglob("*.md")):
        link = page.relative_to(CHECKOUT / "docs")
        assert str(link) == "README.md" or f"]({link})" in index, link


# ----------------------------------------------------------------------------------- the reference


def test_the_reference_is_that_of_the_code() -> None:
    generator = CHECKOUT / "docs" / "generate.py"
    status, printed = execute([sys.executable, str(generator), "--check"], CHECKOUT)
    assert status == 0, f"run `make docs`:\n{printed}"


# -------------------------------------------------------------------------------------- the runner


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a", "a\nb\n", False),
        ("", "a\n", False),
        ("a\n...\nc", "a\nb\nb\nc\n", True),
        ("a\n...\nc", "a\nb\n", False),
        ("a b...", "a bc\n", True),
        ("a b...", "ac\n", False),
    ],
)
def test_outputs_are_compared_whole(expected: str, printed: str, same: bool) -> None:
    assert agrees(expected, printed) is same
