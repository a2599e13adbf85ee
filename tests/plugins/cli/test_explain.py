from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import POD, Run, Write

TEXT = "a long text that no table should show whole, since it would push all else aside " * 3
CONFIG = f"""\
phases: [admit]
chains:
  default:
    steps:
      - use: labels
        with: {{set: {{team: speech}}}}
      - use: annotations
        with: {{set: {{why: {TEXT!r}}}}}
    enforce:
      - name: who pays
        use: labels
        with: {{set: {{team: vision}}}}
"""


@pytest.fixture(autouse=True)
def files(write: Write) -> None:
    write("kubetailor.yaml", CONFIG)
    write("pod.yaml", POD)


def test_json_has_every_change_whole(run: Run, folder: Path) -> None:
    result = run("explain", "-f", "pod.yaml", "-o", "json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    by_field = [(row["field"], row["op"], row["old"], row["new"], row["step"]) for row in rows]
    assert by_field == [
        ("metadata.labels", "add", None, {"team": "speech"}, "labels"),
        ("metadata.annotations", "add", None, {"why": TEXT}, "annotations"),
        ("metadata.labels.team", "replace", "speech", "vision", "who pays"),
    ]
    last = rows[-1]
    assert (last["object"], last["source"], last["line"]) == ("Pod train", "pod.yaml", 1)
    assert (last["layer"], last["transformer"], last["plugin"]) == (
        "enforce",
        "labels",
        "kubetailor",
    )
    assert last["place"] == f"{folder / 'kubetailor.yaml'}:11:9"


def test_the_table_names_fields_whole_and_shortens_values(run: Run) -> None:
    result = run("explain", "-f", "pod.yaml")
    lines = result.stdout.splitlines()
    assert lines[0] == "Pod train (pod.yaml:1), chain default"
    assert lines[1].split() == ["FIELD", "CHANGE", "STEP", "PLUGIN", "PLACE"]
    assert len(lines) == 5
    assert lines[3].startswith('metadata.annotations   → {"why": "a long text')
    assert "…" in lines[3]
    assert lines[4].split("   ")[0] == "metadata.labels.team"
    assert "speech → vision" in lines[4]
    assert lines[4].endswith("kubetailor.yaml:11:9")


@pytest.mark.parametrize("columns", ["80", "20"])
def test_a_narrow_pipe_loses_nothing(
    run: Run, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run("explain", "-f", "pod.yaml").stdout
    monkeypatch.setenv("COLUMNS", columns)
    assert run("explain", "-f", "pod.yaml").stdout == whole


def test_an_object_that_does_not_change_is_named(run: Run, write: Write) -> None:
    write("map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
    result = run("explain", "-f", "map.yaml")
    assert result.stdout == "ConfigMap settings (map.yaml:1), no chain: no change\n"
    assert json.loads(run("explain", "-f", "map.yaml", "-o", "json").stdout) == []
