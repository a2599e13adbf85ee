"""The schema says yes and no where `check` does, to a file as an editor reads it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from kubetailor.plugins.cli.root import cli

from .conftest import Run, Write

TEAM = """\
from kubetailor.registry import Pod, transformer


@transformer
def spot(pod: Pod, *, pool: str, tries: int = 3, title: str | None = None) -> None: ...


class Odd: ...


@transformer
def odd(pod: Pod, *, default: str = "a", odd: Odd | None = None) -> None: ...
"""
HEAD = "plugins: [./team.py]\n"


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> jsonschema.Draft202012Validator:
    folder = tmp_path_factory.mktemp("schema")
    config = folder / "kubetailor.yaml"
    config.write_text(f"{HEAD}accelerators: {{mine: {{resource: acme.io/gpu}}}}\n")
    (folder / "team.py").write_text(TEAM)
    result = CliRunner().invoke(cli, ["schema", "--config", str(config)])
    assert (result.exit_code, result.stderr) == (0, "")
    schema: dict[str, Any] = json.loads(result.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def definitions_of(validator: jsonschema.Draft202012Validator) -> dict[str, Any]:
    schema: Any = validator.schema
    definitions: dict[str, Any] = schema["$defs"]
    return definitions


def steps(*written: str) -> str:
    return "chains:\n  default:\n    steps:\n" + "".join(f"      - {step}\n" for step in written)


GOOD = {
    "hardly anything": "strict: true",
    "all of it": """\
block_plugins: []
phases: [serialize, launch, admit]
strict: false
accelerators:
  a: {resource: acme.io/gpu, per_gpu: {cpu: 12, memory: 85G}, by_count: {"4": {limits: {cpu: 48}}}}
  b: {extends: a, node_selector: {x: 1}, tolerations: [{key: a, operator: Exists}]}
flyte: {device_label: cloud.google.com/gke-accelerator}
chains:
  default: {}
  other: {extends: default, defaults: [], steps: null}
select:
  - {when: {any: [{domain: production}, {not: {labels: {team: "*"}}}]}, chain: other}
  - {chain: null}
overridable:
  - {use: labels, when: {phase: [launch, admit]}, allow: {set: {keys: ["example.com/*"]}}}
""",
    "scalars that stay text": steps("{use: labels, with: {set: {a: true, b: 1.10, c: yes, d: 7}}}"),
    "quantities": steps(
        "{use: resources, with: {limits: {cpu: 2, memory: 1Gi}, requests: {x: null}}}"
    ),
    "no parameters": steps("{use: shared_memory}", "{use: shared_memory, with: null}"),
    "dropped step": steps("{use: shared_memory, name: a}")
    + "  other: {extends: default, steps: [{use: null, name: a}]}",
    "nested": steps("{use: tolerations, with: {add: [{key: a, effect: NoSchedule}]}}"),
    "open": steps("{use: patch, with: {pod: {hostNetwork: true, priority: 7, x: [null]}}}"),
    "accelerator": "accelerators: {mine: {resource: acme.io/gpu}}\n"
    + steps("{use: gpu, with: {type: mine, count: 2}}"),
    "team's": steps("{use: team.spot, with: {pool: a, tries: 2, title: t}}"),
    "a type without a schema": steps("{use: team.odd, with: {default: 7}}"),
}
BAD = {
    "key": "chians: {}",
    "phase": "phases: [serialise]",
    "transformer": steps("{use: labbels}"),
    "step without use": steps("{name: a}"),
    "drop without a name": steps("{use: null}"),
    "parameter": steps("{use: labels, with: {sett: {a: b}}}"),
    "type": steps("{use: labels, with: {set: [a]}}"),
    "choice": steps("{use: labels, with: {on: [object, pod]}}"),
    "nested key": steps("{use: tolerations, with: {add: [{kee: a}]}}"),
    "accelerator": steps("{use: gpu, with: {type: nvidia-a100-80bg}}"),
    "required": steps("{use: priority_class}"),
    "required in with": steps("{use: priority_class, with: {}}"),
    "team's required": steps("{use: team.spot, with: {tries: 2}}"),
    "team's type": steps("{use: team.spot, with: {pool: a, tries: many}}"),
    "field of when": steps("{use: labels, when: {domian: a}}"),
    "empty when": steps("{use: labels, when: {}}"),
    "phase of when": steps("{use: labels, when: {phase: admission}}"),
    "nested when": steps("{use: labels, when: {any: [{kindd: Pod}]}}"),
    "field of an accelerator": "accelerators: {a: {resorce: acme.io/gpu}}",
    "overlay of an accelerator": 'accelerators: {a: {resource: x, by_count: {"4": {limit: {}}}}}',
    "rule without a chain": "select: [{when: {kind: Pod}}]",
}


@pytest.mark.parametrize("name", GOOD)
def test_what_check_accepts(
    validator: jsonschema.Draft202012Validator, run: Run, write: Write, name: str
) -> None:
    text = HEAD + GOOD[name]
    assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == []
    write("team.py", TEAM)
    write("kubetailor.yaml", text)
    result = run("check")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("name", BAD)
def test_what_check_refuses(
    validator: jsonschema.Draft202012Validator, run: Run, write: Write, name: str
) -> None:
    text = f"{HEAD}{BAD[name]}\n"
    assert not validator.is_valid(yaml.safe_load(text))
    write("team.py", TEAM)
    write("kubetailor.yaml", text)
    assert run("check").exit_code == 2


def test_it_is_of_use_to_an_editor(validator: jsonschema.Draft202012Validator) -> None:
    definitions = definitions_of(validator)
    uses = definitions["StepModel"]["properties"]["use"]["anyOf"]
    assert {"const": "priority_class", "description": "Set the priority class of the pods."} in uses
    labels = definitions["with.labels"]
    said = "Set and remove labels of the object and of its pods."
    assert labels["description"].partition("\n")[0] == said
    assert labels["properties"]["set"]["description"] == "label -> value."
    assert labels["properties"]["on_invalid"]["default"] == "error"
    spot = definitions["with.team.spot"]["properties"]
    assert spot["tries"] == {"default": 3, "type": "integer"}
    assert spot["title"]["anyOf"][0] == {"type": ["string", "number", "boolean"]}


def test_every_reference_leads_somewhere(validator: jsonschema.Draft202012Validator) -> None:
    definitions = definitions_of(validator)
    found: list[str] = []

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                found.append(part["$ref"])
            for item in part.values():
                collect(item)
        elif isinstance(part, list):
            for item in part:
                collect(item)

    collect(validator.schema)
    assert found
    assert {ref.removeprefix("#/$defs/") for ref in found} <= set(definitions)


def test_a_broken_plugin_is_a_warning(run: Run, write: Write) -> None:
    write("kubetailor.yaml", "plugins: [./broken.py]\n")
    write("broken.py", "1 / 0\n")
    result = run("schema")
    assert result.exit_code == 0
    assert "kubetailor.yaml:1:11: plugin 'broken': " in result.stderr
    assert "with.labels" in json.loads(result.stdout)["$defs"]


def test_that_of_an_override(run: Run, write: Write) -> None:
    write("team.py", TEAM)
    write("kubetailor.yaml", HEAD)
    schema = json.loads(run("schema", "override").stdout)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"steps": [{"use": "team.spot", "with": {"pool": "a"}}]})
    assert not validator.is_valid({"steps": [{"use": "team.spott"}]})
    assert not validator.is_valid({"chains": {}})
