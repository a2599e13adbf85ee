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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give -f FILE, or TYPE/NAME"),
        (("-f", "pod.yaml", "-n", "speech"), "--namespace and --context are for TYPE/NAME"),
        (("-f", "pod.yaml", "--context", "kind"), "--namespace and --context are for TYPE/NAME"),
        (("pod.yaml",), "pod.yaml is a file: `explain -f`"),
        (("pod/train", "-f", "pod.yaml"), "are not for TYPE/NAME"),
        (("pod/train", "--phase", "admit"), "are not for TYPE/NAME"),
        (("pod/train", "--set", "retries.retries=3"), "are not for TYPE/NAME"),
    ],
)
def test_files_and_objects_of_a_cluster_have_options_of_their_own(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    result = run("explain", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("kubeconfig", "said"),
    [
        (None, "set KUBECONFIG as for kubectl"),
        ("not: [a, kubeconfig]", "set KUBECONFIG as for kubectl"),
        ("not: [yaml", "set KUBECONFIG as for kubectl"),
        (
            """\
            apiVersion: v1
            kind: Config
            current-context: it
            contexts: [{name: it, context: {cluster: it, user: it}}]
            clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
            users: [{name: it, user: {}}]
            """,
            "the API server http://127.0.0.1:1 cannot be asked: ",
        ),
    ],
)
def test_where_no_cluster_can_be_asked_that_is_said(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch, kubeconfig: str | None, said: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", "there.yaml")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    if kubeconfig is not None:
        write("there.yaml", kubeconfig)
    result = run("explain", "pod/train")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_the_client_of_kubernetes_is_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubetailor.plugins.client.cluster.find_spec", lambda _: None)
    result = run("explain", "pod/train")
    assert result.exit_code == 2
    assert "pip install 'kubetailor[kubernetes]'" in result.stderr
