"""Each transformer and each hook has an example in the reference that does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from reference_examples import EXAMPLES, example_of, hook_example

from kubetailor.registry import hookspecs
from kubetailor.registry.plugins import Plugins
from kubetailor.workloads import same

from ..schemas import check_core

CHECKOUT = Path(__file__).resolve().parents[2]
BUILT_IN = sorted(
    name
    for name, transformer in Plugins.load(entry_points=False).transformers.items()
    if transformer.plugin == "kubetailor"
)
HOOKS = sorted(name for name, value in vars(hookspecs).items() if hasattr(value, "kubetailor_spec"))


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_transformer_has_an_example_that_changes_something(name: str) -> None:
    example = example_of(name)
    assert example is not None, f"write docs/reference/examples/{name}.yaml"
    assert not same(example.given, example.becomes)
    for obj in (example.given, example.becomes):
        if "apiVersion" in obj and "." not in obj["apiVersion"]:
            check_core(obj)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_transformer_has_a_test(name: str) -> None:
    quoted = re.compile(rf'"{name}"')
    tests = (CHECKOUT / "tests" / "transformers").glob("test_*.py")
    assert any(quoted.search(path.read_text(encoding="utf-8")) for path in tests)


def test_no_example_is_of_something_else() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(BUILT_IN)
    assert {path.stem for path in (EXAMPLES / "hooks").glob("*.py")} == set(HOOKS)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_has_an_example_and_a_test(name: str) -> None:
    source = hook_example(name).read_text(encoding="utf-8")
    assert f"def {name}(" in source
    tests = (CHECKOUT / "tests").rglob("test_*.py")
    used = (path.read_text(encoding="utf-8") for path in tests if path != Path(__file__))
    assert any(f"def {name}(" in text for text in used)


def test_the_hooks_do_what_their_examples_say() -> None:
    paths = [str(hook_example(name)) for name in HOOKS]
    plugins = Plugins.load(paths, directory=CHECKOUT, entry_points=False).require()
    assert {"register_transformers.small", "register_transformers.large"} <= set(
        plugins.transformers
    )
    assert ("kubeflow.org", "Notebook") in plugins.kinds
    assert "h100-pool" in plugins.accelerators
    assert [name for name, _, _ in plugins.hook_calls("validate")] == ["validate"]
    group = click.Group()
    for plugin, function, _ in plugins.hook_calls("register_commands"):
        if plugin == "register_commands":
            function(cli=group)
    assert list(group.commands) == ["pools"]
