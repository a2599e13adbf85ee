from __future__ import annotations

import json
from pathlib import Path

import jsonpatch
import pytest
import yaml

from .conftest import CONFIG, POD, Run, Write

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: "0755", country: "NO", text: "a\\nb\\n"}
"""
TASK = {
    "id": {"resourceType": "TASK", "project": "speech", "domain": "production", "name": "a.b.fit"},
    "type": "python-task",
    "metadata": {},
    "container": {"image": "x", "args": ["pyflyte-execute"], "resources": {}},
}


@pytest.fixture(autouse=True)
def config(write: Write) -> Path:
    return write("kubetailor.yaml", CONFIG)


def test_yaml_is_the_default(run: Run, write: Write) -> None:
    write("pod.yaml", POD)
    result = run("render", "-f", "pod.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    expected = yaml.safe_load(POD)
    expected["metadata"]["labels"] = {"team": "speech"}
    assert yaml.safe_load(result.stdout) == expected


def test_a_stream_keeps_its_order_and_what_no_step_touched(run: Run, write: Write) -> None:
    write("all.yaml", f"{CONFIG_MAP}---\n# nothing here\n---\n{POD}")
    result = run("render", "-f", "all.yaml")
    first, second = yaml.safe_load_all(result.stdout)
    assert first == yaml.safe_load(CONFIG_MAP)
    assert second["metadata"]["labels"] == {"team": "speech"}


def test_json_in_and_out(run: Run, write: Write) -> None:
    write("pod.json", json.dumps(yaml.safe_load(POD)))
    one = run("render", "-f", "pod.json", "-o", "json")
    assert json.loads(one.stdout)["metadata"] == {"name": "train", "labels": {"team": "speech"}}
    two = run("render", "-f", "pod.json", "-f", "pod.json", "-o", "json")
    whole = json.loads(two.stdout)
    assert (whole["apiVersion"], whole["kind"]) == ("v1", "List")
    assert [item["kind"] for item in whole["items"]] == ["Pod", "Pod"]


def test_a_list_is_taken_apart_as_by_kustomize(run: Run, write: Write) -> None:
    items = [yaml.safe_load(CONFIG_MAP), yaml.safe_load(POD)]
    write("list.yaml", yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    found = list(yaml.safe_load_all(run("render", "-f", "list.yaml").stdout))
    assert [obj["kind"] for obj in found] == ["ConfigMap", "Pod"]


def test_standard_input(run: Run) -> None:
    result = run("render", "-f", "-", stdin=POD)
    assert yaml.safe_load(result.stdout)["metadata"]["labels"] == {"team": "speech"}


def test_a_folder_is_read_as_kubectl_reads_it(run: Run, write: Write) -> None:
    for name in ("b.yml", "a.yaml", "c.json", "sub/d.yaml", "notes.txt"):
        write(f"in/{name}", json.dumps({"apiVersion": "v1", "kind": "Secret", "data": {"n": name}}))
    write("in/kubetailor.yaml", "chains: {}\n")  # a config is no manifest

    def names(*args: str) -> list[str]:
        return [obj["data"]["n"] for obj in yaml.safe_load_all(run("render", *args).stdout)]

    assert names("-f", "in") == ["a.yaml", "b.yml", "c.json"]
    assert names("-f", "in", "-R") == ["a.yaml", "b.yml", "c.json", "sub/d.yaml"]
    assert names("-f", "in/c.json", "-f", "in/a.yaml") == ["c.json", "a.yaml"]


def test_diff_shows_each_object_that_changes_and_exits_with_1(run: Run, write: Write) -> None:
    write("all.yaml", f"{CONFIG_MAP}---\n{POD}")
    result = run("render", "-f", "all.yaml", "-o", "diff")
    assert result.exit_code == 1
    assert result.stdout == (
        "--- Pod train (all.yaml:6)\n"
        "+++ Pod train (chain default, phase admit)\n"
        "@@ -2,6 +2,8 @@\n"
        " kind: Pod\n"
        " metadata:\n"
        "   name: train\n"
        "+  labels:\n"
        "+    team: speech\n"
        " spec:\n"
        "   containers:\n"
        "   - name: main\n"
    )


def test_diff_of_what_does_not_change_is_empty(run: Run, write: Write) -> None:
    write("map.yaml", CONFIG_MAP)
    result = run("render", "-f", "map.yaml", "-o", "diff")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_patch_is_one_line_for_each_object(run: Run, write: Write) -> None:
    write("all.yaml", f"{CONFIG_MAP}---\n{POD}")
    result = run("render", "-f", "all.yaml", "-o", "patch")
    assert result.exit_code == 0
    none, patch = map(json.loads, result.stdout.splitlines())
    assert none == []
    rendered = run("render", "-f", "all.yaml").stdout
    assert (
        jsonpatch.apply_patch(yaml.safe_load(POD), patch) == list(yaml.safe_load_all(rendered))[1]
    )


def test_check_names_what_would_change(run: Run, write: Write) -> None:
    write("all.yaml", f"{CONFIG_MAP}---\n{POD}")
    result = run("render", "-f", "all.yaml", "--check")
    assert result.exit_code == 1
    assert result.stdout == "all.yaml:6: Pod train would change\n"
    rendered = run("render", "-f", "all.yaml").stdout
    settled = run("render", "-f", "-", "--check", stdin=rendered)
    assert (settled.exit_code, settled.stdout) == (0, "")


def test_check_with_an_output_prints_that(run: Run, write: Write) -> None:
    write("pod.yaml", POD)
    result = run("render", "-f", "pod.yaml", "--check", "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["metadata"]["labels"] == {"team": "speech"}


def test_chain_beats_select(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("kubetailor.yaml", CONFIG + "  other: {}\nselect: [{chain: default}]\n")
    write("pod.yaml", POD)
    assert run("render", "-f", "pod.yaml", "--check").exit_code == 1
    assert run("render", "-f", "pod.yaml", "--check", "--chain", "other").exit_code == 0
    monkeypatch.setenv("KUBETAILOR_CHAIN", "other")
    assert run("render", "-f", "pod.yaml", "--check").exit_code == 0
    assert run("render", "-f", "pod.yaml", "--check", "--chain", "default").exit_code == 1


def test_config_is_found_by_option_environment_and_upwards(
    run: Run, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def label(*args: str) -> str:
        found = yaml.safe_load(run("render", "-f", "-", *args, stdin=POD).stdout)
        return str(found["metadata"]["labels"]["team"])

    other = write("other.yaml", CONFIG.replace("speech", "other"))
    (folder / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(folder / "deep" / "er")
    assert label() == "speech"
    monkeypatch.setenv("KUBETAILOR_CONFIG", str(other))
    assert label() == "other"
    assert label("--config", "../../kubetailor.yaml") == "speech"


PER_DOMAIN = """\
phases: [serialize, admit]
chains:
  default:
    steps:
      - use: labels
        with: {set: {team: speech}}
        when: {domain: production}
"""


def test_task_says_what_is_known(run: Run, write: Write) -> None:
    write("kubetailor.yaml", PER_DOMAIN)
    write("pod.yaml", POD)
    unknown = run("render", "-f", "pod.yaml", "--check")
    assert unknown.exit_code == 0
    assert unknown.stderr == (
        "Note: 1 condition of 1 object could not be decided and does not match; --task says what "
        "is known of the task\n"
    )
    known = run("render", "-f", "pod.yaml", "--check", "--task", "domain=production")
    assert (known.exit_code, known.stderr) == (1, "")
    other = run("render", "-f", "pod.yaml", "--check", "--task", "domain=development")
    assert (other.exit_code, other.stderr) == (0, "")


def test_what_cannot_be_decided_is_said_once(run: Run, write: Write) -> None:
    write("kubetailor.yaml", PER_DOMAIN)
    write("pods.yaml", "---\n".join([POD, POD, POD]))
    result = run("explain", "-f", "pods.yaml")
    assert result.exit_code == 0
    assert result.stderr == (
        "Note: 3 conditions of 3 objects could not be decided and do not match; --task says what "
        "is known of the task\n"
    )


def test_a_task_template_without_a_name_is_a_task_all_the_same(run: Run, write: Write) -> None:
    write("kubetailor.yaml", PER_DOMAIN.replace("domain: production", "task: '*.fit'"))
    write("task.json", json.dumps({**TASK, "id": {}}))
    result = run("render", "-f", "task.json", "--check")
    assert (result.exit_code, result.stderr) == (0, "")


def test_task_templates_run_the_phase_serialize(run: Run, write: Write) -> None:
    write("kubetailor.yaml", PER_DOMAIN)
    write("task.json", json.dumps(TASK))
    result = run("render", "-f", "task.json", "-o", "diff")
    assert result.exit_code == 1
    assert "+++ task a.b.fit (chain default, phase serialize)" in result.stdout
    assert "+      team: speech" in result.stdout


def test_what_is_deferred_is_said(run: Run, write: Write) -> None:
    write("kubetailor.yaml", PER_DOMAIN.replace("domain: production", "execution: nightly-*"))
    write("task.json", json.dumps(TASK))
    result = run("render", "-f", "task.json")
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout) == TASK
    assert result.stderr == (
        "Note: task.json:1: task a.b.fit: labels waits for the phase admit: execution is not "
        "known yet; --task gives it now\n"
    )
    decided = run("render", "-f", "task.json", "--check", "--task", "execution=nightly-1")
    assert decided.exit_code == 1


def test_phase_is_ours_to_choose(run: Run, write: Write) -> None:
    write("kubetailor.yaml", PER_DOMAIN.replace("domain: production", "phase: launch"))
    write("pod.yaml", POD)
    assert run("render", "-f", "pod.yaml", "--check").exit_code == 0
    assert run("render", "-f", "pod.yaml", "--check", "--phase", "launch").exit_code == 1


def test_warnings_go_to_stderr(run: Run, write: Write) -> None:
    write(
        "kubetailor.yaml",
        """\
        phases: [admit]
        chains:
          default:
            steps:
              - use: kueue
                with: {queue: gpus}
        """,
    )
    write("pod.yaml", POD.replace("Pod", "PodTemplate").replace("spec:", "template:"))
    result = run("render", "-f", "pod.yaml")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: pod.yaml:1: PodTemplate train: step 'kueue': ")
    assert "Warning" not in result.stdout


def test_what_a_plugin_prints_does_not_get_into_the_objects(run: Run, write: Write) -> None:
    write(
        "noisy.py",
        "from kubetailor.registry import Pod, transformer\n\nprint('imported')\n\n\n"
        "@transformer\ndef loud(pod: Pod) -> None:\n"
        "    print('running')\n    pod.label('a', 'b')\n",
    )
    write(
        "kubetailor.yaml",
        "plugins: [./noisy.py]\nchains: {default: {steps: [{use: noisy.loud}]}}\n",
    )
    write("pod.yaml", POD)
    result = run("render", "-f", "pod.yaml")
    assert yaml.safe_load(result.stdout)["metadata"]["labels"]["a"] == "b"
    assert result.stderr.split() == ["imported", "running"]
