from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Iterator

import click
import pytest
from click.testing import CliRunner

from kubetailor.plugins.cli.root import cli

from .conftest import Run, Write

Install = Callable[[str, str, str], None]
OWN = ["accelerators", "check", "explain", "kinds", "plugins", "render", "schema", "transformers"]

ACME = """\
import click

from kubetailor.registry import KubetailorError, hookimpl


@click.group()
def acme():
    "Commands of a team."


@acme.command()
def fail():
    "Always fail."
    raise KubetailorError("no quota left")


@hookimpl
def register_commands(cli):
    cli.add_command(acme)
"""


def commands(
    command: click.Command, ctx: click.Context, *path: str
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The path and the command of everything below a command, itself first."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            yield from commands(child, ctx, *path, name)


def test_every_command_has_help(run: Run) -> None:
    found = dict(commands(cli, click.Context(cli)))
    assert {(name,) for name in (*OWN, "flyte")} <= set(found)
    for option in ("-h", "--help"):
        for path in [(), *((name,) for name in OWN)]:
            result = run(*path, option)
            assert (result.exit_code, result.stderr) == (0, ""), path
            assert result.stdout.startswith(f"Usage: kubetailor {' '.join(path)}")
    for path, command in found.items():
        # By itself: the group of a host may first ask for what is not installed.
        helped = CliRunner().invoke(command, ["--help"], prog_name="it")
        assert helped.exit_code == 0, path
        assert helped.stdout.startswith("Usage: it"), path
        assert command.get_short_help_str(), path


def test_the_help_says_what_each_value_is() -> None:
    for path, command in commands(cli, click.Context(cli)):
        helped = CliRunner().invoke(command, ["--help"], prog_name="it")
        assert not re.search(r"\bTEXT\b", helped.stdout), path


def test_our_summaries_are_not_cut(run: Run) -> None:
    found = dict(commands(cli, click.Context(cli)))
    groups = {path: group for path, group in found.items() if isinstance(group, click.Group)}
    assert {(), ("flyte",), ("webhook",)} <= groups.keys()
    for path, group in groups.items():
        helped = CliRunner().invoke(group, ["--help"], prog_name="it", terminal_width=80)
        lines = helped.stdout.partition("Commands:")[2].splitlines()
        shown = {line.split()[0]: line for line in lines if line.strip()}
        ours = {name for (*above, name) in filter(None, found) if tuple(above) == path}
        assert ours == shown.keys()
        assert not [line for line in shown.values() if line.endswith("...")]


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"kubetailor {importlib.metadata.version('kubetailor')}\n"


def test_wrong_usage(run: Run) -> None:
    for args in (["rendr"], ["render"], ["render", "-f", "a", "-o", "xml"], ["check", "a"]):
        result = run(*args)
        assert (result.exit_code, result.stdout) == (2, ""), args
        assert "Error: " in result.stderr


@pytest.mark.parametrize("how", ["installed", "named by the config"])
def test_commands_of_plugins(run: Run, write: Write, distribution: Install, how: str) -> None:
    if how == "installed":
        distribution("acme-commands", "acme_commands", ACME)
    else:
        write("kubetailor.yaml", "plugins: [./acme_commands_too.py]\n")
        write("acme_commands_too.py", ACME)
    assert "acme          Commands of a team." in run("--help").stdout
    result = run("acme", "fail")
    assert (result.exit_code, result.stderr) == (2, "Error: no quota left\n")


BROKEN = {
    "at import": ("1 / 0\n", "ZeroDivisionError"),
    "at register_commands": (
        "from kubetailor.registry import hookimpl\n"
        "@hookimpl\ndef register_commands(cli): cli.none()\n",
        r"register_commands of \S+/brittle\.py: AttributeError: .* \(\S+/brittle\.py:3\)",
    ),
    "with a command that is there": (
        "import click\nfrom kubetailor.registry import hookimpl\n"
        "@hookimpl\ndef register_commands(cli): cli.add_command(click.Command('render'))\n",
        "there is a command 'render' already",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_plugin_hides_no_command(
    run: Run, write: Write, distribution: Install, what: str
) -> None:
    source, reason = BROKEN[what]
    write("kubetailor.yaml", "plugins: [./brittle.py]\n")
    write("brittle.py", source)
    distribution("acme-commands", "acme_commands", ACME)
    result = run("--help")
    assert result.exit_code == 0
    assert re.search(
        rf"^Warning: \S+/kubetailor\.yaml:1:11: plugin 'brittle': .*{reason}",
        result.stderr,
        re.MULTILINE,
    )
    for name in (*OWN, "acme", "flyte"):
        assert f"\n  {name}" in result.stdout
    assert run("acme", "fail").stderr.endswith("Error: no quota left\n")
    assert "Run the chain over manifests." in run("render", "--help").stdout


def test_config_that_cannot_be_read_hides_no_command(run: Run, write: Write) -> None:
    write("kubetailor.yaml", "plugins: [\n")
    result = run("--help")
    assert result.exit_code == 0
    assert "kubetailor.yaml:2:1: not YAML" in result.stderr
    assert "\n  flyte" in result.stdout
