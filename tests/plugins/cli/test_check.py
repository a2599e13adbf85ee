from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .conftest import CONFIG, Run, Write

Install = Callable[[str, str, str], None]


def test_a_sound_config(run: Run, write: Write, folder: Path) -> None:
    write("kubetailor.yaml", CONFIG + "  small: {}\nselect: [{chain: default}]\n")
    result = run("check")
    assert (result.exit_code, result.stderr) == (0, "")
    first, second, last = result.stdout.splitlines()
    assert first == "chain default: 1 step (1 in steps)"
    assert second == "chain small: 0 steps"
    assert last.startswith(f"{folder}/kubetailor.yaml: 2 chains, 0 plugins, ")
    assert last.endswith(": no error")


def test_the_plugins_of_others_are_counted(run: Run, write: Write, distribution: Install) -> None:
    distribution("acme-shared", "acme_shared", "")
    write("team.py", "")
    write("kubetailor.yaml", "{plugins: [./team.py], chains: {}}")
    assert ": 0 chains, 2 plugins, " in run("check").stdout


def test_advice_is_no_error(run: Run, write: Write, folder: Path) -> None:
    write(
        "kubetailor.yaml",
        """\
        chains:
          default:
            steps:
              - use: priority_class
                with: {name: low}
                when: {labels: {team: speech}}
              - use: labels
                with: {set: {team: speech}}
        """,
    )
    result = run("check")
    assert result.exit_code == 0
    assert f"Advice: {folder}/kubetailor.yaml:4:9: step 'priority_class'" in result.stdout


FAULTY = """\
plugins: [./broken.py]
accelerators:
  a: {resorce: nvidia.com/gpu}
chains:
  default:
    steps:
      - use: labbels
      - use: broken.step
      - use: labels
        when: {domian: a}
  other:
    extends: default
    enforce:
      - use: priority_class
select:
  - {when: {kind: Job}, chain: nowhere}
  - {when: {kindd: Pod}, chain: other}
"""


def test_all_faults_are_said_once_with_their_places(run: Run, write: Write, folder: Path) -> None:
    write("kubetailor.yaml", FAULTY)
    write("broken.py", "1 / 0\n")
    result = run("check")
    assert (result.exit_code, result.stdout) == (2, "")
    file = f"{folder}/kubetailor.yaml"
    starts = [
        f"{file}:1:11: plugin 'broken': cannot be loaded from {folder}/broken.py: Zero",
        f"{file}:3:3: accelerator 'a': no field 'resorce'; did you mean resource?",
        f"{file}:7:9: no transformer 'labbels'; did you mean labels?",
        f"{file}:10:16: when: no field 'domian'; did you mean domain?",
        f"{file}:14:9: priority_class: the parameter 'name' is required",
        f"{file}:16:25: no chain 'nowhere'",
        f"{file}:17:13: when: no field 'kindd'; did you mean kind?",
    ]
    errors = result.stderr.splitlines()
    assert len(errors) == len(starts), result.stderr
    for error, start in zip(errors, starts, strict=True):
        assert error.startswith(f"Error: {start}")


def test_every_fault_of_the_form(run: Run, write: Write) -> None:
    write(
        "kubetailor.yaml",
        """\
        phases: [serialise]
        chians: {}
        strict: maybe
        """,
    )
    errors = run("check").stderr.splitlines()
    assert [error.split("kubetailor.yaml:")[1].split(": ")[0] for error in errors] == [
        "1:10",
        "3:1",
        "2:1",
    ]


def test_no_config(run: Run) -> None:
    result = run("check")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: no config: ")


def test_broken_installed_plugin(run: Run, write: Write, distribution: Install) -> None:
    write("kubetailor.yaml", CONFIG)
    distribution("acme-cracked", "acme_cracked", "raise RuntimeError('no licence')\n")
    result = run("check")
    assert result.exit_code == 2
    assert "plugin 'acme_cracked': cannot be loaded from acme-cracked 1.2: " in result.stderr
