"""`--override`, `--set` and `--on` of the commands that run a chain over files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from .conftest import POD, Run, Write

CONFIG = """\
chains:
  default:
    steps:
      - {use: labels, with: {set: {team: speech, run: chain}}}
    enforce:
      - {use: labels, with: {set: {cost-centre: speech}}}
"""
OVERRIDE = """\
steps:
  - {use: labels, with: {set: {run: override, cost-centre: mine}}}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: fit}
spec: {template: {spec: {containers: [{name: main, image: busybox}]}}}
"""


@pytest.fixture(autouse=True)
def config(write: Write) -> Path:
    write("pod.yaml", POD)
    write("job.yaml", JOB)
    return write("kubetailor.yaml", CONFIG)


def labels(text: str) -> list[dict[str, str]]:
    return [obj["metadata"].get("labels", {}) for obj in yaml.safe_load_all(text)]


def test_a_file_runs_between_steps_and_enforce(run: Run, write: Write) -> None:
    write("override.yaml", OVERRIDE)
    result = run("render", "-f", "pod.yaml", "--override", "override.yaml")
    assert result.exit_code == 0, result.stderr
    assert labels(result.stdout) == [{"team": "speech", "run": "override", "cost-centre": "speech"}]


def test_words_come_after_the_file(run: Run, write: Write) -> None:
    write("override.json", json.dumps(yaml.safe_load(OVERRIDE)))
    words = ("--set", "labels.set.run=words", "--on", "kind=Job")
    both = ("-f", "pod.yaml", "-f", "job.yaml")
    result = run("render", *both, "--override", "override.json", *words)
    assert [found["run"] for found in labels(result.stdout)] == ["override", "words"]


def test_explain_says_which_word_it_was(run: Run) -> None:
    result = run("explain", "-f", "pod.yaml", "--set", "labels.set.run=words", "-o", "json")
    (found,) = [row for row in json.loads(result.stdout) if row["layer"] == "override"]
    assert (found["new"], found["place"]) == ("words", "--set labels.set.run=words")


REFUSED = {
    "matches nothing": (("--set", "labels.set.run=b", "--on", "kind=Jbo"), "Jbo"),
    "changes nothing": (("--set", "labels.set.run=chain"), "changes nothing"),
    "is not allowed": (("--set", "image.image=x"), "image may not be overridden"),
    "on without set": (("--on", "kind=Pod"), "there is none"),
    "no such file": (("--override", "nowhere.yaml"), "nowhere.yaml: No such file"),
    "no override": (("--override", "pod.yaml"), "pod.yaml:1:1"),
    "too large": (("--override", "large.yaml"), "large.yaml"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_prints_nothing(run: Run, write: Write, name: str) -> None:
    write("large.yaml", f"steps: [{{use: labels, with: {{set: {{a: {'x' * 20_000}}}}}}}]\n")
    words, said = REFUSED[name]
    result = run("render", "-f", "pod.yaml", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_one_object_of_the_files_is_enough(run: Run) -> None:
    words = ("--set", "labels.set.run=words", "--on", "kind=Job")
    result = run("render", "-f", "pod.yaml", "-f", "job.yaml", *words)
    assert [found["run"] for found in labels(result.stdout)] == ["chain", "words"]
