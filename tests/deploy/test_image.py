"""The Dockerfile, as far as it can be checked without a container engine.

`make wheel-check` runs its `RUN` lines; no test builds the image or starts a container of it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """(instruction, rest), in their order."""
    text = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def final(instruction: str) -> str:
    """The last of its kind, which must be in the last stage."""
    found = instructions()
    last = max(index for index, (word, _) in enumerate(found) if word == "FROM")
    return [rest for word, rest in found[last:] if word == instruction][-1]


def deployment() -> dict[str, Any]:
    objects = yaml.safe_load_all((CHECKOUT / "deploy" / "base" / "webhook.yaml").read_text())
    (found,) = [obj for obj in objects if obj["kind"] == "Deployment"]
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


def copied() -> list[str]:
    """What comes from the checkout."""
    copies = [rest.split() for word, rest in instructions() if word == "COPY"]
    return [name for names in copies if "=" not in names[0] for name in names[:-1]]


@pytest.mark.parametrize("name", copied())
def test_what_is_copied_is_there_and_sent(name: str) -> None:
    assert (CHECKOUT / name).exists()
    ignored = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert f"!{name}" in ignored


def test_nothing_else_is_sent() -> None:
    lines = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == set(copied())


def test_what_the_build_needs_is_copied() -> None:
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    packages = re.findall(r'^  "(\w+)/kubetailor",$', text, re.MULTILINE)
    files = re.findall(r'^(?:readme = |license-files = \[)"([^"]+)"', text, re.MULTILINE)
    assert len(packages) == 4
    assert len(files) == 2
    assert {*packages, *files, "pyproject.toml", "constraints.txt"} == set(copied())


def test_it_runs_as_the_deployment_runs_it() -> None:
    context = deployment()["securityContext"]
    # A number: of a name the kubelet cannot tell that it is not root's.
    assert final("USER") == f"{context['runAsUser']}:{context['runAsGroup']}"
    (container,) = deployment()["containers"]
    entrypoint, command = json.loads(final("ENTRYPOINT")), json.loads(final("CMD"))
    assert entrypoint == container["command"]
    assert container["args"][: len(command)] == command
    assert int(final("EXPOSE")) == container["ports"][0]["containerPort"]


def test_no_stage_takes_what_is_not_pinned() -> None:
    for word, rest in instructions():
        if word == "RUN" and "pip install" in rest:
            assert "--constraint constraints.txt" in rest, rest


def test_all_stages_have_one_python() -> None:
    bases = {rest.split()[0] for word, rest in instructions() if word == "FROM"}
    assert bases == {"python:${PYTHON}-slim"}
    (version,) = (rest.removeprefix("PYTHON=") for word, rest in instructions() if word == "ARG")
    assert f"Python :: {version}" in (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
